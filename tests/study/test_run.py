"""The one loop: iterate and drive, interruption, the logger, and the bar on a terminal that is silence in a pipe."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pzos
from instances import START, cost, problem, response
from pzos import Stop

SOLVER = pzos.PZOS(step=0.02, radius=0.1)


def test_iterate_is_a_generator_of_records_that_may_be_left() -> None:
    study = pzos.Study(problem().known(), SOLVER, steps=50)
    seen = []
    for record in pzos.iterate(study, pzos.Oracle(response)):
        seen.append(record)
        if len(seen) == 3:
            break
    assert [record.step for record in seen] == [0, 1, 2]
    assert study.result().stop is Stop.RUNNING
    assert study.result().steps == 3
    whole = pzos.drive(study, pzos.Oracle(response))  # and taken up again
    np.testing.assert_array_equal(whole.x, pzos.solve(problem(), SOLVER, steps=50).x)


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("at", [1, 5, 8])
def test_ctrl_c_in_the_follower_returns_the_partial_result(at: int, threads: int) -> None:
    calls = count(1)

    def interrupted(x: Any) -> Any:
        if next(calls) == at:
            raise KeyboardInterrupt
        return response(x)

    if threads:
        with ThreadPoolExecutor(threads) as pool:
            result = pzos.solve(problem(interrupted), SOLVER, steps=100, executor=pool)
    else:
        result = pzos.solve(problem(interrupted), SOLVER, steps=100)
        assert result.queries == at - 1
    assert result.stop is Stop.INTERRUPTED
    assert result.steps == (at - 1) // 3
    np.testing.assert_array_equal(result.x, iterate_after(result.steps))
    assert "interrupted by the user" in repr(result)
    assert result.monitoring == 0


@given(at=st.integers(1, 60), where=st.sampled_from(["follower", "leader"]))
@settings(deadline=None, max_examples=60)
def test_whenever_ctrl_c_comes_every_answer_is_counted(at: int, where: str) -> None:
    """Ctrl-C in the follower costs that answer; in the leader it waits until the books are in order."""
    passed = {"follower": 0, "leader": 0}
    answered = 0

    def note(place: str) -> None:
        passed[place] += 1
        if where == place and passed[place] == at:
            signal.raise_signal(signal.SIGINT)

    def follower(x: Any) -> Any:
        nonlocal answered
        note("follower")
        y = response(x)
        answered += 1
        return y

    def value(x: Any, y: Any) -> float:
        note("leader")
        return float(y @ y + x.sum())

    leader = pzos.leader_from_functions(value, lambda x, y: 0.0 * x + 1.0, lambda x, y: 2.0 * y)
    result = pzos.solve(pzos.Problem(leader, follower, START), pzos.PZOS(batch=2), steps=6)
    assert result.queries + result.monitoring == answered
    assert sum(result.ledger.values()) == answered
    if passed[where] < at:
        assert result.stop is Stop.STEPS
    elif where == "follower" or result.steps < 6:
        assert result.stop is Stop.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_does_not_wait() -> None:
    def value(x: Any, y: Any) -> float:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("nothing has happened")

    leader = pzos.leader_from_functions(value, lambda x, y: 0.0 * x, lambda x, y: 2.0 * y)
    result = pzos.solve(pzos.Problem(leader, response, START), pzos.PZOS(), steps=6)
    assert (result.stop, result.steps) == (Stop.INTERRUPTED, 0)


def test_in_another_thread_nothing_is_done_about_signals() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(pzos.solve, problem(), SOLVER, steps=3).result(60.0).stop is Stop.STEPS


def iterate_after(steps: int) -> Any:
    return pzos.solve(problem(), SOLVER, steps=steps, monitor=False).x if steps else START


def test_a_real_signal() -> None:
    calls = [0]

    def signalled(x: Any) -> Any:
        calls[0] += 1
        if calls[0] == 7:
            signal.raise_signal(signal.SIGINT)
        return response(x)

    result = pzos.solve(problem(signalled), SOLVER, steps=100)
    assert result.stop is Stop.INTERRUPTED
    assert result.steps == 2


def test_batched_followers_are_interrupted_too() -> None:
    def interrupted(rows: Any) -> Any:
        raise KeyboardInterrupt

    result = pzos.solve(problem(pzos.batched(interrupted)), SOLVER, steps=9)
    assert (result.stop, result.steps, result.queries) == (Stop.INTERRUPTED, 0, 0)
    np.testing.assert_array_equal(result.x, START)
    np.testing.assert_array_equal(result.random_x, START)


def test_a_batched_follower_is_asked_for_what_is_open_alone() -> None:
    rows: list[int] = []

    def counting(points: Any) -> Any:
        rows.append(len(points))
        return np.abs(points[:, :2])

    leader = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
    study = pzos.Study(pzos.Problem(leader, response, START).known(), pzos.ZOS(batch=3), steps=1)
    study.tell(study.ask()[2], [7.0, 7.0])  # told by someone else: it stands
    result = pzos.drive(study, pzos.Oracle(pzos.batched(counting)))
    assert rows == [6, 1]
    assert result.queries == 6


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_a_run_that_diverges_ends_with_advice() -> None:
    with pytest.raises(
        pzos.InvalidLeader, match=r"step \d+: leader: f\(x, y\) = inf.*take a smaller step or restrict it"
    ):
        pzos.solve(problem(), pzos.PZOS(step=1e9), steps=1000)


def test_the_result_knows_its_values() -> None:
    result = pzos.solve(problem(), SOLVER, steps=10)
    assert result.value == cost(result.x, response(result.x))
    assert result.best_value == cost(result.best_x, response(result.best_x))
    assert result.seconds > 0


def test_the_logger_tells_and_nothing_is_printed(caplog: Any, capsys: Any) -> None:
    with caplog.at_level(logging.DEBUG, logger="pzos"):
        pzos.solve(problem(name="tolls"), SOLVER, steps=2)
    assert [r.name for r in caplog.records] == ["pzos", "pzos"]
    assert "start: tolls, PZOS(step=0.02" in caplog.text
    assert "all steps were taken after 2 steps and 6 queries: F = " in caplog.text
    assert tuple(capsys.readouterr()) == ("", "")
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("pzos").handlers)


SOURCE = str(Path(pzos.__file__).resolve().parent.parent)
PROGRAM = """
import sys, time, numpy as np, pzos
leader = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
def follower(x):
    time.sleep(0.02)
    return abs(x)
problem = pzos.Problem(leader, follower, np.ones(2), name="tolls")
settings = eval(sys.argv[1])
assert pzos.solve(problem, pzos.PZOS(), **settings).steps >= 1
"""


def environment() -> dict[str, str]:
    changed = {"PYTHONPATH": SOURCE, "TERM": "xterm", "COLUMNS": "100", "PYTHONWARNINGS": "error"}
    dropped = ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    return {**{k: v for k, v in os.environ.items() if k not in dropped}, **changed}


def command(settings: dict[str, Any]) -> list[str]:
    return [sys.executable, "-c", PROGRAM, repr(settings)]


def on_a_terminal(settings: dict[str, Any]) -> tuple[int, str]:
    """Run the program with standard error on a terminal and return its exit code and what it showed."""
    pty = pytest.importorskip("pty", reason="no terminals of this kind on this system")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command(settings), stdout=subprocess.PIPE, stderr=theirs, env=environment())
    os.close(theirs)
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux says so when the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    output = process.communicate(timeout=60)[0]
    assert output == b""
    return process.returncode, shown.decode(errors="replace")


def test_silence_in_a_pipe() -> None:
    done = subprocess.run(
        command({"steps": 3}), capture_output=True, text=True, env=environment(), check=False, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("settings", "unit"),
    [({"steps": 12}, "/12 steps"), ({"queries": 36}, "/36 queries"), ({"seconds": 0.8}, "/1 seconds")],
)
def test_a_bar_on_a_terminal(settings: dict[str, Any], unit: str) -> None:
    pytest.importorskip("rich", reason="the extra 'cli' is not installed")
    code, shown = on_a_terminal(settings)
    assert code == 0, shown
    assert "tolls" in shown
    assert unit in shown
    assert "F = " in shown
    assert "Traceback" not in shown


def test_a_bar_may_be_refused() -> None:
    code, shown = on_a_terminal({"steps": 3, "progress": False})
    assert (code, shown) == (0, "")


def test_without_rich_there_is_no_bar_and_asking_for_one_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from instances import problem

    monkeypatch.setattr("pzos.study.run.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert pzos.solve(problem(), pzos.PZOS(), steps=1).steps == 1
    with pytest.raises(pzos.MissingExtra, match=r'a progress bar needs .*pip install "pzos\[cli\]"'):
        pzos.solve(problem(), pzos.PZOS(), steps=1, progress=True)


def test_no_standard_error_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from instances import problem

    monkeypatch.setattr(sys, "stderr", None)
    assert pzos.solve(problem(), pzos.PZOS(), steps=1).steps == 1
