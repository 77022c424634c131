"""Any executor, and a Dask cluster whose workers are killed: no wait for ever, the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import pzos
import unreliable
from durable_problem import bits
from pzos.answers.cluster import DaskExecutor, Renewed, as_executor
from pzos.base.errors import FollowerFailure, InvalidInput, PzosError
from pzos.durable.log import read_study
from unreliable import Noting, kinked

PATIENCE = 120.0
HERE = Path(__file__).parents[1]


def game(follower: Any = kinked) -> pzos.Problem:
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0.0 * x, lambda x, y: 2.0 * y)
    return pzos.Problem(leader, follower, x0=np.linspace(1.0, 2.0, 3))


def solved(executor: Any = None, follower: Any = kinked, steps: int = 4) -> bytes:
    return bits(pzos.solve(game(follower), pzos.PZOS(batch=2), steps=steps, executor=executor))


def pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


def test_places() -> None:
    with ThreadPoolExecutor(1) as threads:
        assert as_executor(threads) is threads
    with as_executor(1, timeout=3.0) as workers:
        assert isinstance(workers, pzos.Workers)
        assert workers.timeout == 3.0
    for place in (None, True, 3.5):
        with pytest.raises(InvalidInput, match="place"):
            as_executor(place)


def test_a_pool_that_breaks_is_renewed_and_its_work_done_again(tmp_path: Path) -> None:
    with Renewed(pool) as executor:
        assert solved(executor, Noting(tmp_path, "die", times=2)) == solved()
        assert executor.resubmitted >= 1


def test_a_query_that_kills_every_pool_fails(tmp_path: Path) -> None:
    with Renewed(pool, resubmits=1) as executor, pytest.raises(FollowerFailure, match="lost with its worker 2 times"):
        solved(executor, Noting(tmp_path, "die"))


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("resubmits", [0, 1])
def test_a_query_that_breaks_pools_costs_no_other(resubmits: int) -> None:
    with Renewed(pool, resubmits=resubmits) as executor:
        killer, *innocent = [executor.submit(unreliable.die_at, 3, value) for value in (3, 4, 5, 6)]
        assert [future.result(PATIENCE) for future in innocent] == [4, 5, 6]
        with pytest.raises(FollowerFailure, match="lost with its worker 2 times"):
            killer.result(PATIENCE)


def test_a_follower_that_cannot_be_pickled_gets_advice() -> None:
    with pool() as executor, pytest.raises(InvalidInput, match=r"cannot be sent .*top level of a module"):
        solved(executor, lambda x: x)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    import dask

    # the workers find the test modules by the path of the driver
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *sys.path])
    # a killed worker that takes longer than this to come back (15 s by default) is struck off, for good
    slow_machine = {"distributed.deploy.lost-worker-timeout": f"{PATIENCE:g}s"}
    with (
        dask.config.set(slow_machine),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as made,
    ):
        made.wait_for_workers(2)
        yield made


@pytest.fixture(scope="module")
def dask(cluster: Any) -> Iterator[DaskExecutor]:
    with DaskExecutor(cluster.scheduler_address) as executor:
        yield executor


@pytest.mark.filterwarnings("default")  # Dask's own, in its own threads
class TestDask:
    """One small cluster for all of these."""

    def test_same_bits(self, cluster: Any) -> None:
        cluster.wait_for_workers(2)
        with DaskExecutor(cluster.scheduler_address) as dask:
            assert dask.size == 2
            assert solved(dask) == solved()

    def test_seeded_and_batched_followers(self, dask: DaskExecutor) -> None:
        for follower in (pzos.batched(np.abs), pzos.seeded(lambda x, generator: x + generator.normal(size=3))):
            assert solved(dask, follower) == solved(None, follower)

    def test_errors_arrive_as_they_are(self, dask: DaskExecutor) -> None:
        with pytest.raises(FollowerFailure, match=r"query 0\.\d .*no equilibrium"):
            solved(dask, unreliable.crash)

    def test_what_cannot_be_sent_gets_advice(self, dask: DaskExecutor) -> None:
        lock = threading.Lock()
        with pytest.raises(InvalidInput, match=r"cannot be sent .*top level of a module"):
            solved(dask, lambda x: x + lock.locked())

    def test_short_jobs_travel_together_and_fail_alone(self, dask: DaskExecutor) -> None:
        assert dask.submit(unreliable.double, 1).result(PATIENCE) == 2  # from here on jobs are known to be short
        jobs = [(unreliable.double, at) for at in range(6)] + [(unreliable.crash, 0), (unreliable.crash_unsendably, 0)]
        *good, crash, unsendable = [dask.submit(function, value) for function, value in jobs]
        assert [future.result(PATIENCE) for future in good] == [0, 2, 4, 6, 8, 10]
        with pytest.raises(ValueError, match="no equilibrium at 0"):
            crash.result(PATIENCE)
        with pytest.raises(FollowerFailure, match="UnsendableError: no luck"):
            unsendable.result(PATIENCE)

    def test_threads_are_pinned(self, dask: DaskExecutor) -> None:
        assert set(dask.submit(unreliable.blas_threads, None).result(PATIENCE)) == {1}

    def test_killed_workers(self, dask: DaskExecutor, cluster: Any, tmp_path: Path) -> None:
        assert solved(dask, Noting(tmp_path, "die", times=2)) == solved()
        cluster.wait_for_workers(2)
        os.kill(next(nanny.pid for nanny in cluster.workers.values() if nanny.pid), signal.SIGKILL)
        assert solved(dask) == solved()

    @pytest.mark.parametrize("deaths", [0, 2])
    def test_answers_in_any_order(self, dask: DaskExecutor, tmp_path: Path, deaths: int) -> None:
        path, follower = tmp_path / "a.study", Noting(tmp_path, "die", times=deaths)
        settings = {"queries": 12, "order": "told", "workers": 2, "certificate": False, "progress": False}
        result = pzos.solve(game(follower), executor=dask, path=path, **settings)
        assert result.queries == 12
        assert not result.failures
        events = read_study(path).events
        out = np.cumsum([1 if event.response is None else -1 for event in events])
        assert out.max() == 2  # as many as there are said to be: one that died may not be back yet
        with ThreadPoolExecutor(1) as nobody:  # all is in the file
            again = pzos.solve(game(follower), executor=nobody, path=path, **settings)
        assert bits(again) == bits(result)
        assert len(read_study(path).answers) == 12

    def test_a_front_in_any_order(self, dask: DaskExecutor, tmp_path: Path) -> None:
        path, problem = tmp_path / "front.study", game()
        spent = pzos.leader_from_functions(lambda x, y: float(x @ x), lambda x, y: 2.0 * x, lambda x, y: 0.0 * y)
        settings = {"queries": 12, "order": "told", "workers": 2, "path": path, "progress": False}
        found = pzos.front(problem, [problem.leader, spent], executor=dask, **settings)
        assert [query.index for query, _ in found.result.told or ()] == [0] * 12
        out = np.cumsum([1 if event.response is None else -1 for event in read_study(path).events])
        assert out.max() == 2
        with ThreadPoolExecutor(1) as nobody:  # all is in the file
            again = pzos.front(problem, [problem.leader, spent], executor=nobody, **settings)
        assert np.array_equal(again.points, found.points)

    def test_retries_on_a_cluster(self, dask: DaskExecutor, tmp_path: Path) -> None:
        follower = Noting(tmp_path, "raise", times=2)
        tolerance = pzos.Tolerance(attempts=5, wait=0.0)
        result = pzos.solve(game(follower), pzos.PZOS(batch=2), steps=4, executor=dask, tolerance=tolerance)
        assert bits(result) == solved()

    def test_the_command_line(self, cluster: Any, tmp_path: Path) -> None:
        (tmp_path / "model.py").write_text(
            "import numpy as np, pzos\n"
            "leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y)\n"
            "problem = pzos.Problem(leader, lambda x: np.abs(x - 0.3), x0=np.ones(2))\n"
        )
        command = [
            sys.executable,
            "-m",
            "pzos",
            "solve",
            "model.py:problem",
            "--steps",
            "3",
            "--json",
            "--solver",
            "MemoryPZOS",
        ]
        runs = [
            subprocess.run([*command, *more], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
            for more in ([], ["--dask", cluster.scheduler_address])
        ]
        assert [run.returncode for run in runs] == [0, 0], runs[1].stderr
        answers = [[line for line in run.stdout.splitlines() if "seconds" not in line] for run in runs]
        assert answers[0] == answers[1]


def listening() -> set[tuple[str, int]]:
    """Return where this process and all it started can be reached."""
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = [place for process in family for place in process.net_connections("inet")]
    return {tuple(place.laddr) for place in found if place.status == psutil.CONN_LISTEN}


def pages(executor: Any) -> list[str]:
    """Return which of Dask's pages are shown by the scheduler and the workers."""
    known = executor.client.scheduler_info(n_workers=-1)
    ports = [port for server in (known, *known["workers"].values()) for port in server["services"].values()]
    return [page for port in ports for page in pages_at(port)]


def pages_at(port: int) -> list[str]:
    shown = []
    for page in ("status", "info/main/workers.html", "metrics", "json/counts.json"):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10.0):
                shown.append(page)
        except OSError:
            continue
    return shown


@pytest.mark.filterwarnings("default")
def test_a_cluster_of_our_own_is_for_this_machine_alone() -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    before = listening()
    with as_executor("local:1") as executor:
        assert executor.submit(abs, -3).result(PATIENCE) == 3
        ours = listening() - before
        assert {address for address, _ in ours} == {"127.0.0.1"}
        assert pages(executor) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.filterwarnings("default")
def test_a_query_that_kills_dask_workers_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    import dask

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *sys.path]))
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as made,
        distributed.Client(made, set_as_default=False) as client,
        DaskExecutor(client, resubmits=1) as executor,
    ):
        assert executor.submit(unreliable.double, 1).result(PATIENCE) == 2  # from here on jobs travel together
        killer, *innocent = [executor.submit(unreliable.die_at, 3, value) for value in (3, 4, 5, 6)]
        assert [future.result(PATIENCE) for future in innocent] == [4, 5, 6]
        with pytest.raises(FollowerFailure, match="lost with its worker 2 times"):
            killer.result(PATIENCE)


@pytest.mark.filterwarnings("default")
def test_a_cluster_without_workers_fails_its_jobs() -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None, silence_logs=50) as made,
        distributed.Client(made, set_as_default=False) as client,
        DaskExecutor(client, patience=0.5) as executor,
        pytest.raises(FollowerFailure, match=r"no worker for 0\.5 s"),
    ):
        executor.submit(abs, -3).result(PATIENCE)


def test_no_scheduler_there() -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    with pytest.raises(PzosError, match="no scheduler answers"):
        DaskExecutor("tcp://127.0.0.1:9", patience=1.0)


@pytest.mark.parametrize("address", ["local:", "local:0", "local:many"])
def test_bad_local_addresses(address: str) -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    with pytest.raises(InvalidInput, match="local:N"):
        as_executor(address)
