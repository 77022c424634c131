"""Worker processes that die, hang or are given what cannot travel: an answer or an error, never a wait for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import psutil
import pytest

import pzos
import unreliable
from durable_problem import bits
from pzos.answers import workers
from pzos.answers.processes import MARK
from pzos.answers.workers import Workers
from pzos.base.errors import FollowerFailure, FollowerTimeout, InvalidInput
from unreliable import Noting, gone

PATIENCE = 120.0
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups")


@pytest.fixture(scope="module")
def two() -> Iterator[Workers]:
    with Workers(2) as workers:
        yield workers


def test_jobs_in_any_number(two: Workers) -> None:
    assert [future.result(PATIENCE) for future in [two.submit(unreliable.double, n) for n in range(9)]] == list(
        range(0, 18, 2)
    )
    assert list(two.map(unreliable.double, [3, 4])) == [6, 8]


def test_errors_belong_to_the_one_who_submitted(two: Workers) -> None:
    with pytest.raises(ValueError, match="no equilibrium at 3"):
        two.submit(unreliable.crash, 3).result(PATIENCE)
    with pytest.raises(FollowerFailure, match="UnsendableError: no luck"):
        two.submit(unreliable.crash_unsendably, 3).result(PATIENCE)
    with pytest.raises(FollowerFailure, match="cannot be sent back"):
        two.submit(unreliable.unsendable, 3).result(PATIENCE)
    assert two.submit(unreliable.double, 4).result(PATIENCE) == 8


def test_what_cannot_be_pickled_is_refused_with_advice(two: Workers) -> None:
    with pytest.raises(InvalidInput, match=r"cannot be sent to another process .*top level of a module"):
        two.submit(lambda: 3)


def test_threads_of_the_numerical_libraries_are_pinned(two: Workers) -> None:
    found = two.submit(unreliable.blas_threads, None).result(PATIENCE)
    assert found
    assert set(found) == {1}


def test_a_job_whose_worker_dies_is_done_again(tmp_path: Path, two: Workers) -> None:
    follower, before = Noting(tmp_path, "die", times=2), two.deaths
    np.testing.assert_array_equal(two.submit(follower, np.ones(2)).result(PATIENCE), unreliable.kinked(np.ones(2)))
    assert follower.calls() == 3
    assert two.deaths == before + 2


def test_a_job_that_kills_every_worker_fails(tmp_path: Path) -> None:
    follower = Noting(tmp_path, "die")
    with Workers(1, resubmits=1) as workers, pytest.raises(FollowerFailure, match="died 2 times"):
        workers.submit(follower, np.ones(2)).result(PATIENCE)
    assert follower.calls() == 2


def test_a_time_out_ends_every_process_the_job_started(tmp_path: Path) -> None:
    follower = Noting(tmp_path, "hang", times=1)
    with Workers(1, timeout=5.0) as workers:
        with pytest.raises(FollowerTimeout, match="no answer within 5 s"):
            workers.submit(follower, np.ones(2)).result(PATIENCE)
        assert len(follower.started()) == 2  # one of them in a session of its own
        assert all(gone(process) for process in follower.started())
        np.testing.assert_array_equal(
            workers.submit(follower, np.ones(2)).result(PATIENCE), unreliable.kinked(np.ones(2))
        )


def test_a_child_that_holds_the_pipe_is_not_waited_for(tmp_path: Path) -> None:
    follower = Noting(tmp_path, "leave a child and die", times=1)
    with Workers(1) as workers:
        answer = workers.submit(follower, np.ones(2)).result(PATIENCE)
        assert workers.deaths == 1
    np.testing.assert_array_equal(answer, unreliable.kinked(np.ones(2)))
    assert len(follower.started()) == 1
    os.kill(follower.started()[0], signal.SIGKILL)  # it has left everything behind: nobody but us knows of it


def test_a_time_out_reaches_what_was_forked_twice(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux lets a worker adopt what was forked twice without a program of its own")
    follower = Noting(tmp_path, "fork twice and hang")
    with Workers(1, timeout=5.0) as workers, pytest.raises(FollowerTimeout, match="no answer within 5 s"):
        workers.submit(follower, np.ones(2)).result(PATIENCE)
    assert len(follower.started()) == 1
    assert all(gone(process) for process in follower.started())


def test_what_a_dead_worker_has_left_is_ended(tmp_path: Path) -> None:
    follower = Noting(tmp_path, "leave a program and die", times=1)
    with Workers(1) as workers:
        workers.submit(follower, np.ones(2)).result(PATIENCE)
        assert len(follower.started()) == 1
        assert all(gone(process) for process in follower.started())


DRIVER = """
import sys, time, numpy as np, pzos
from pathlib import Path
from unreliable import Noting
if __name__ == "__main__":
    workers = pzos.Workers(2, start_method=sys.argv[3])
    for _ in range(2):
        workers.submit(Noting(Path(sys.argv[1]), sys.argv[2]), np.ones(2))
    time.sleep(600)
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.parametrize("how", ["hang", "hang, deaf"])
def test_workers_end_with_a_driver_that_is_killed(tmp_path: Path, how: str, method: str) -> None:
    program = tmp_path / "driver.py"
    program.write_text(DRIVER)
    follower = Noting(tmp_path, how)
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, program, tmp_path, how, method]
    with subprocess.Popen(command, env=where) as driver:
        try:
            wait_until(lambda: len(follower.started()) == (4 if how == "hang" else 2))
            family = psutil.Process(driver.pid).children(recursive=True)
        finally:
            driver.kill()
    assert {process.pid for process in family} >= set(follower.started())
    assert all(gone(process.pid) for process in family)


def test_the_drill_on_a_small_scale(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "kill_kinds.py"), "1", "workers", "command on workers", "batched"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_worker_that_dies_idle_costs_no_query() -> None:
    with Workers(1, resubmits=0) as workers:
        assert workers.submit(unreliable.double, 3).result(PATIENCE) == 6
        (worker,) = workers.alive
        os.kill(worker.process_id, signal.SIGKILL)
        assert workers.submit(unreliable.double, 4).result(PATIENCE) == 8
        assert workers.deaths == 0


def test_workers_that_never_come_to_the_job_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def stillborn(context: object) -> None:
        raise workers._NeverBegun

    monkeypatch.setattr(workers, "_Worker", stillborn)
    with Workers(1) as none, pytest.raises(FollowerFailure, match="21 worker processes died before"):
        none.submit(unreliable.double, 3).result(PATIENCE)


def test_a_worker_with_many_dead_children_is_replaced() -> None:
    with Workers(1, resubmits=0) as one:
        used = {one.submit(unreliable.with_orphans, 2).result(PATIENCE) for _ in range(101)}
        assert one.deaths == 0
    assert len(used) == (2 if sys.platform == "linux" else 1)  # elsewhere others adopt them


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_running_job_can_be_stopped(tmp_path: Path) -> None:
    follower = Noting(tmp_path, "hang")
    with Workers(1) as workers:
        future = workers.submit(follower, np.ones(2))
        wait_until(lambda: len(follower.started()) == 2)
        future.stop()
        with pytest.raises(CancelledError):
            future.result(timeout=PATIENCE)
    assert all(gone(process) for process in follower.started())


def test_closed_workers_take_no_more() -> None:
    workers = Workers(1)
    workers.shutdown()
    workers.shutdown()
    with pytest.raises(RuntimeError, match="closed"):
        workers.submit(unreliable.double, 3)


def test_a_program_that_forgets_to_close_its_workers_ends(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import time, pzos\n"
        "if __name__ == '__main__':\n"
        "    workers = pzos.Workers(2)\n"
        "    print(workers.submit(abs, -3).result())\n"
        "    workers.submit(time.sleep, 600)\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)


def test_a_program_without_its_main_guard_is_told(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import pzos\nwith pzos.Workers(1) as workers:\n    workers.submit(abs, -3).result()\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert 'under  if __name__ == "__main__":' in done.stderr


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"count": 0}, "count"),
        ({"count": 2, "timeout": -1.0}, "timeout"),
        ({"count": 2, "start_method": "x"}, "start_method"),
    ],
)
def test_bad_arguments(given: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        Workers(**given)  # type: ignore[arg-type]


def test_the_bits_are_the_serial_ones(two: Workers) -> None:
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0.0 * x, lambda x, y: 2.0 * y)
    game = pzos.Problem(leader, unreliable.kinked, x0=np.linspace(1.0, 2.0, 3))
    serial, pooled = (pzos.solve(game, pzos.PZOS(batch=2), steps=6, executor=executor) for executor in (None, two))
    assert bits(serial) == bits(pooled)


def test_the_life_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here in a thread, without what would change the process of the tests."""
    lived: list[str] = []
    monkeypatch.setattr(workers.os, "setsid", lambda: lived.append("own group"), raising=False)
    monkeypatch.setattr(workers.signal, "signal", lambda *_: lived.append("deaf to Ctrl-C"))
    monkeypatch.setattr(workers.os, "register_at_fork", lambda **_: lived.append("pipe of its own"), raising=False)
    monkeypatch.setattr(workers, "adopt_orphans", lambda: lived.append("orphans"))
    monkeypatch.setattr(workers, "pin_threads", lambda: lived.append("one thread"))
    monkeypatch.setenv(MARK, "")
    ours, theirs = Pipe()
    life = threading.Thread(target=workers.work, args=(theirs, "/mark"), daemon=True)
    life.start()
    assert ours.recv() == "ready"
    assert lived == ["own group", "deaf to Ctrl-C", "orphans", "pipe of its own", "one thread"]
    assert os.environ[MARK] == "/mark"
    ours.send_bytes(workers.packed((unreliable.double, (3,), {})))
    assert ours.recv() == "taken up"
    assert ours.recv() == (True, 6)
    ours.send_bytes(b"no job")
    assert ours.recv() == "taken up"
    good, error = ours.recv()
    assert not good
    assert "a worker cannot find the follower" in str(error)
    ours.close()
    life.join(PATIENCE)
    assert not life.is_alive()


def test_what_cannot_travel_back_is_said_in_words() -> None:
    good, error = workers.outcome(unreliable.unsendable, (3,), {})
    assert (good, type(error)) == (False, FollowerFailure)
    good, error = workers.outcome(unreliable.crash_unsendably, (3,), {})
    assert (good, str(error)) == (False, "UnsendableError: no luck")
