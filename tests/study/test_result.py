"""What a run gives back: its table and its points, its trace bit for bit, x^R, and where every query went."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

import pzos
from instances import problem, response, responses
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.base.keys import Keys
from pzos.methods.smoothing import PZOS, ZOS
from pzos.methods.solver import Stop
from pzos.report.from_file import story_of_file
from pzos.report.story import ledger_of
from pzos.solving import solve
from pzos.study.result import COLUMNS, Record, Selection, Trace
from pzos.testing import small_problem


def table(result):
    return dict(result.rows())


def test_the_table_says_what_happened():
    result = solve(small_problem(), ZOS(batch=2), steps=7, seed=3)
    rows = table(result)
    assert rows["problem"] == "a small kinked problem"
    assert rows["stopped"] == "steps: all steps were taken"
    assert rows["queries"] == "28 by the algorithm, 8 to monitor it"
    assert (rows["steps"], rows["seed"]) == ("7", "3")
    assert rows["lowest F seen"] == f"{result.best_value:.8g}"
    assert "failed queries" not in rows
    assert all(len(line) > 0 for line in result.table().splitlines())


def test_a_value_that_was_never_queried_is_said_to_be_unknown():
    result = solve(small_problem("max"), ZOS(), steps=2, monitor=False)
    assert table(result)["F at the last point"] == "not known (it was not queried)"
    assert "highest F seen" in table(result)


@pytest.mark.parametrize(
    ("limits", "stop"),
    [
        ({"steps": 2}, Stop.STEPS),
        ({"queries": 7}, Stop.QUERIES),
        ({"seconds": 1e-9}, Stop.SECONDS),
        ({"target": 1e9}, Stop.TARGET),
    ],
)
def test_every_limit_has_its_reason(limits, stop):
    assert solve(small_problem(), PZOS(), **limits).stop is stop


def test_best_last_and_random_points():
    result = solve(small_problem(), PZOS(), steps=40)
    values = result.trace["value"]
    assert result.best_value == np.min(values)
    assert 0 <= result.random_step < 40
    assert result.value == values[-1]
    assert not np.shares_memory(result.x, result.best_x)


def test_certify_refuses_an_unknown_point():
    problem = small_problem()
    with pytest.raises(InvalidInput, match="'last', 'best' or 'random'"):
        solve(problem, PZOS(), steps=1).certify(problem, delta=0.1, at="first")
    with pytest.raises(InvalidInput, match=r"at = \[\]"):
        solve(problem, PZOS(), steps=1).certify(problem, delta=0.1, at=[])


ANY = st.floats(allow_nan=True, allow_infinity=True)


def read(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: np.array([float(row[i]) for row in rows]) for i, name in enumerate(header)}


def row(step: int, value: float = 0.0, seconds: float = 0.0, **extras: float) -> Record:
    return Record(step, np.zeros(1), 3 * step, 0, value, 1.0, 0.05, seconds, extras)


@given(st.lists(st.tuples(ANY, ANY), max_size=6))
@example([(-0.0, 0.1), (1e300, 5e-324), (float("nan"), float("-inf"))])
def test_csv_round_trips_every_bit(tmp_path_factory: Any, values: list[tuple[float, float]]) -> None:
    trace = Trace()
    for step, (value, seconds) in enumerate(values):
        trace.append(row(step, value, seconds))
    path = tmp_path_factory.mktemp("trace") / "trace.csv"
    trace.to_csv(path)
    found = read(path)
    assert tuple(found) == COLUMNS
    for name in COLUMNS:
        ours, theirs = trace[name], found[name]
        np.testing.assert_array_equal(theirs, ours)
        known = ~np.isnan(ours)
        assert theirs[known].tobytes() == ours[known].tobytes()


def test_extra_columns_are_nan_where_a_step_had_none() -> None:
    trace = Trace()
    trace.append(row(0))
    trace.append(row(1, radius=0.5))
    trace.append(row(2, radius=0.25, model=1.0))
    assert trace.columns == (*COLUMNS, "radius", "model")
    assert list(trace) == list(trace.columns)
    assert len(trace) == 3
    np.testing.assert_array_equal(trace["radius"], [np.nan, 0.5, 0.25])
    np.testing.assert_array_equal(trace["model"], [np.nan, np.nan, 1.0])


def test_an_unknown_column_names_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"column = 'F': expected one of step, queries, .*; check the spelling"):
        Trace()["F"]


def test_a_copy_does_not_grow() -> None:
    trace = Trace()
    trace.append(row(0, radius=1.0))
    copy = trace.copy()
    trace.append(row(1, radius=2.0))
    assert len(copy) == 1
    assert copy["radius"].tolist() == [1.0]


def test_data_frames(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="the extra 'dataframe' is not installed")
    result = pzos.solve(problem(), pzos.PZOS(), steps=4)
    frame = result.to_dataframe()
    assert tuple(frame.columns) == COLUMNS
    assert frame["step"].tolist() == [0, 1, 2, 3, 4]
    assert frame["queries"].dtype == np.int64
    np.testing.assert_array_equal(frame["value"], result.trace["value"])
    result.to_csv(tmp_path / "run.csv")
    np.testing.assert_array_equal(read(tmp_path / "run.csv")["value"], frame["value"])


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r'pip install "pzos\[dataframe\]"'):
        Trace().to_dataframe()


def test_the_columns_of_a_run() -> None:
    trace = pzos.solve(problem(), pzos.ZOS(step=0.02, batch=2), steps=3).trace
    assert trace["step"].tolist() == [0, 1, 2, 3]
    assert trace["queries"].tolist() == [4, 8, 12, 12]
    assert trace["monitoring"].tolist() == [1, 2, 3, 4]
    assert trace["step_size"][:3].tolist() == [0.02] * 3
    assert np.isfinite(trace["value"]).all()
    assert (np.diff(trace["seconds"]) >= 0).all()
    assert (trace["gradient_norm_squared"][:3] > 0).all()
    assert np.isnan(trace["gradient_norm_squared"][3])


# ---- results -----------------------------------------------------------------------------------------------


def test_a_result_reads_as_a_table() -> None:
    result = pzos.solve(problem(name="tolls"), pzos.PZOS(step=0.05, radius=0.1), steps=3, seed=11)
    verdict, *lines = result.table().splitlines()
    assert verdict.startswith("F = ")
    names = [line.split("  ")[0] for line in lines]
    assert names == [
        "problem",
        "solver",
        "stopped",
        "x",
        "F at the last point",
        "lowest F seen",
        "steps",
        "queries",
        "seconds",
        "seed",
    ]
    text = dict(zip(names, (line.split("  ", 1)[1].strip() for line in lines), strict=True))
    assert text["problem"] == "tolls"
    assert text["solver"] == "PZOS(step=0.05, radius=0.1, batch=1, inside=False)"
    assert text["stopped"] == "steps: all steps were taken"
    assert text["queries"] == "9 by the algorithm, 1 to monitor it"
    assert text["seed"] == "11"
    assert float(text["lowest F seen"]) == pytest.approx(result.best_value, rel=1e-7)
    starts = {line.index(text[name]) for name, line in zip(names, lines, strict=True)}
    assert len(starts) == 1, "the right column is aligned"


def test_a_result_of_maximisation_and_of_unknown_f() -> None:
    result = pzos.solve(problem(sense="max"), pzos.ZOS(), steps=2, monitor=False)
    assert "highest F seen" in result.table()
    assert result.table().count("not known (it was not queried)") == 2
    assert "unnamed, 5 decisions" in result.table()


def test_stop_reasons_are_an_enumeration_with_messages() -> None:
    wanted = {"STEPS", "QUERIES", "SECONDS", "TARGET", "STATIONARY", "INTERRUPTED"}
    assert wanted <= {stop.name for stop in Stop}
    assert all(len(stop.value) > 8 for stop in Stop)


def test_plot_draws_and_writes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    figure = pzos.solve(problem(), pzos.PZOS(), steps=5).plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert figure.axes[0].get_ylabel() == "F(x)"
    assert len(figure.axes[0].lines) == 2
    assert pzos.solve(problem(), pzos.ZOS(), steps=2, monitor=False).plot() is not None


def record(step: int, value: float = float("nan")) -> Record:
    return Record(step, np.array([float(step)]), 0, 0, value, 0.0, 0.0, 0.0)


def drawn(seed: int, steps: int) -> int:
    selection = Selection(np.zeros(1), 1.0, Keys(seed))
    for step in range(steps):
        selection.draw(record(step))
    assert selection.random_x[0] == selection.random_step
    return selection.random_step


@pytest.mark.parametrize("steps", [1, 2, 5, 13])
def test_r_is_uniform_over_seeds(steps: int) -> None:
    seeds = 3000
    counts = np.bincount([drawn(seed, steps) for seed in range(seeds)], minlength=steps)
    assert counts.size == steps
    expected = seeds / steps
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    freedom = steps - 1
    assert chi_square <= freedom + 4 * np.sqrt(2 * freedom) + 1e-9


def test_the_same_seed_draws_the_same_step() -> None:
    assert [drawn(seed, 50) for seed in range(20)] == [drawn(seed, 50) for seed in range(20)]


def test_a_longer_run_keeps_the_draw_or_takes_a_later_one() -> None:
    for seed in range(50):
        assert drawn(seed, 40) in {drawn(seed, 20), *range(20, 40)}


def test_the_best_ignores_what_is_not_known_and_keeps_the_first_of_equals() -> None:
    for sign, best in ((1.0, 1), (-1.0, 3)):
        selection = Selection(np.zeros(1), sign, Keys(0))
        assert np.isnan(selection.best_value)
        for step, value in enumerate([np.nan, 1.0, np.nan, 3.0, 1.0, 3.0, 2.0]):
            selection.consider(record(step, value))
        assert selection.best_x[0] == best
        assert selection.best_value == float(best)


SOLVER = pzos.PZOS(step=0.05, radius=0.1)


def total(result: pzos.Result) -> int:
    return sum(result.ledger.values())


@pytest.mark.parametrize(
    ("solver", "expected"),
    [
        (pzos.PZOS(step=0.05, radius=0.1, batch=2), {"at the iterate": 6, "probes": 24, "monitoring": 1}),
        (pzos.ZOS(step=0.05, radius=0.1), {"probes": 12, "monitoring": 7}),
        (pzos.CompositeTrustRegion(), {"probes": 4, "trial points": 2}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_by_purpose(solver: pzos.PZOS, expected: dict[str, int]) -> None:
    result = pzos.solve(problem(), solver, steps=6)
    assert dict(result.ledger) == expected
    assert total(result) == result.queries + result.monitoring


def test_failures_are_taken_from_their_purpose() -> None:
    study = pzos.Study(problem().known(), SOLVER, steps=2)
    first = study.ask()
    study.fail(first[1], "crashed")
    for query in (first[0], first[2]):
        study.tell(query, response(query.x))
    for query in study.ask():
        study.tell(query, response(query.x))
    for query in study.ask():
        study.fail(query, "crashed")
    assert study.result().ledger == {"at the iterate": 2, "probes": 3, "failed": 2}


def test_an_open_batch_and_an_interruption_count_what_was_answered() -> None:
    study = pzos.Study(problem().known(), SOLVER, steps=2)
    query = study.ask()[2]
    study.tell(query, response(query.x))
    assert study.result().ledger == {"probes": 1}
    study.interrupt()
    assert study.result().ledger == {"probes": 1}


@pytest.mark.parametrize("batched", [False, True])
def test_answers_of_a_cache_are_counted_apart(tmp_path: Path, batched: bool) -> None:
    follower = pzos.batched(responses) if batched else response
    cached = problem(pzos.Cached(follower, tmp_path / "answers.cache", name="demand"))
    paid = pzos.solve(cached, SOLVER, steps=4)
    free = pzos.solve(cached, SOLVER, steps=4, path=tmp_path / "free.study")
    assert paid.ledger == {"at the iterate": 4, "probes": 8, "monitoring": 1}
    assert free.ledger == {"cached": 13}
    assert story_of_file(tmp_path / "free.study").ledger == {"cached": 13}
    longer = pzos.solve(cached, SOLVER, steps=5)
    assert longer.ledger["cached"] == (12 if batched else 13)  # what ended the short run is now one of a batch
    assert total(longer) == longer.queries + longer.monitoring


def test_trial_points_are_told_apart_by_what_became_of_them(tmp_path: Path) -> None:
    solver = pzos.CompositeTrustRegion()
    result = pzos.solve(problem(), solver, queries=25, path=tmp_path / "trust.study")
    told = ledger_of(result)
    assert told["start"] == 1
    assert told["accepted"] >= 1
    assert sum(told.values()) == result.queries + result.monitoring
    values = result.trace["value"]
    lower = [k for k in range(1, values.size) if values[k] < np.nanmin(values[:k])]
    tried = np.flatnonzero(np.isfinite(result.trace["accepted"]))
    assert told["accepted"] == len(set(lower) & set(tried.tolist()))
    assert story_of_file(tmp_path / "trust.study", problem(), solver).ledger == told


def test_the_certificate_of_a_default_run_is_counted_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "default.study"
    result = pzos.solve(problem(), queries=20, path=path, certificate=True)
    assert result.certificate is not None
    assert result.ledger["for the certificate"] == result.certificate.queries
    assert total(result) == result.queries + result.monitoring
    story = story_of_file(path, problem(), pzos.CompositeTrustRegion())
    assert story.ledger == ledger_of(result)
    assert story.certificate == str(result.certificate)
