"""The trace: columns by name, CSV that round-trips bit for bit, data frames, and results that read well."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

import pzos
from instances import problem
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.methods.solver import Stop
from pzos.study.result import COLUMNS, Record, Trace

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
    lines = repr(result).splitlines()
    names = [line.split("  ")[0] for line in lines]
    assert names == [
        "problem",
        "solver",
        "stopped",
        "F at the last point",
        "lowest F seen",
        "steps",
        "queries",
        "seconds",
        "seed",
    ]
    text = dict(zip(names, (line.split("  ", 1)[1].strip() for line in lines), strict=True))
    assert text["problem"] == "tolls"
    assert text["solver"] == "PZOS(step=0.05, radius=0.1, batch=1)"
    assert text["stopped"] == "steps: all steps were taken"
    assert text["queries"] == "9 by the algorithm, 1 to monitor it"
    assert text["seed"] == "11"
    assert float(text["lowest F seen"]) == pytest.approx(result.best_value, rel=1e-7)
    starts = {line.index(text[name]) for name, line in zip(names, lines, strict=True)}
    assert len(starts) == 1, "the right column is aligned"


def test_a_result_of_maximisation_and_of_unknown_f() -> None:
    result = pzos.solve(problem(sense="max"), pzos.ZOS(), steps=2, monitor=False)
    assert "highest F seen" in repr(result)
    assert repr(result).count("not known (it was not queried)") == 2
    assert "unnamed, 5 decisions" in repr(result)


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
