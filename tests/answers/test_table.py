"""Tables of answers: merging is associative, every file gives back what was written, faults are all said at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import durable_problem
import pzos
from pzos.answers.table import Column

COLUMNS = ("x", "y", "seconds", "gap", "failure", "source", "told", "follower", "trust", "decisions", "responses")


def same(a: pzos.Answers, b: pzos.Answers) -> bool:
    return all(_equal(getattr(a, name), getattr(b, name)) for name in COLUMNS)


def _equal(a: Any, b: Any) -> bool:
    return np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) else a == b


NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)
TEXTS = st.sampled_from(["", "a.study", "=1+1", "by hand, twice", "ümlaut 'quoted'"])


@st.composite
def tables(draw: st.DrawFn, widths: tuple[int, int] = (2, 2)) -> pzos.Answers:
    count = draw(st.integers(1, 5))
    few = st.sampled_from([0.0, -0.0, 1.0, 2.5])
    x = draw(st.lists(st.lists(few, min_size=widths[0], max_size=widths[0]), min_size=count, max_size=count))
    y = draw(st.lists(st.lists(NUMBERS, min_size=widths[1], max_size=widths[1]), min_size=count, max_size=count))
    texts = {
        name: draw(st.lists(TEXTS, min_size=count, max_size=count)) for name in ("source", "told", "failure", "trust")
    }
    seconds = draw(st.lists(NUMBERS, min_size=count, max_size=count))
    return pzos.Answers(x, y, seconds=seconds, **texts)


@given(tables(), tables(), tables())
@settings(deadline=None, max_examples=60)
def test_merging_is_associative_and_a_table_adds_nothing_to_itself(
    a: pzos.Answers, b: pzos.Answers, c: pzos.Answers
) -> None:
    assert same((a + b) + c, a + (b + c))
    assert same(a + a + b + a, a + b)


@given(tables())
@settings(deadline=None, max_examples=40)
def test_csv_gives_back_every_bit(tmp_path_factory: pytest.TempPathFactory, table: pzos.Answers) -> None:
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    table = table.labelled(source="here")
    assert same(pzos.Answers.open(table.write(path)), table)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_names_and_units_survive_a_file(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    table = pzos.Answers(
        [[1.0, 2.0], [3.0, 1e-300]], [[0.1], [0.2]], gap=[1e-9, np.nan], failure=["", "no fuel"], source="made",
        told="2026-01-02", follower="cars", decisions=["toll", ("weight", "kg")], responses=[("flow", "veh/h")],
    )  # fmt: skip
    read = pzos.Answers.open(table.write(tmp_path / f"table.{ending}"))
    assert same(read, table)
    assert read.decisions == (Column("toll"), Column("weight", "kg"))
    assert np.isnan(read.y[1]).all()
    assert read.pairs()[0][1] == pytest.approx([0.1])
    assert len(read.pairs()) == 1


def test_a_study_is_a_table_of_its_answers(tmp_path: Path) -> None:
    game = durable_problem.problem()
    result = pzos.solve(game, queries=6, certificate=False, path=tmp_path / "a.study")
    table = pzos.Answers.open(tmp_path / "a.study")
    assert len(table) == 6
    assert set(table.source) == {"a.study"}
    assert table.x.tobytes() == result.answers.x.tobytes()
    assert table.y.tobytes() == result.answers.y.tobytes()
    assert all(np.array_equal(y, game.follower.respond(x, None)) for x, y in table.pairs())
    assert table.follower == result.answers.follower
    assert "Counted" in table.follower[0]


def test_what_export_writes_can_be_read(tmp_path: Path) -> None:
    from pzos.cli.main import main

    pzos.solve(durable_problem.problem(), queries=4, certificate=False, path=tmp_path / "a.study")
    assert main(["export", str(tmp_path / "a.study"), str(tmp_path / "a.csv")]) == 0
    table, study = pzos.Answers.open(tmp_path / "a.csv"), pzos.Answers.open(tmp_path / "a.study")
    assert table.x.tobytes() == study.x.tobytes()
    assert table.y.tobytes() == study.y.tobytes()
    assert set(table.source) == {"a.csv"}


def test_ones_own_columns_are_named(tmp_path: Path) -> None:
    (tmp_path / "measured.csv").write_text("day,north,south,cars\n1,0.5,1.5,100\n2,0.25,1.0,120\n")
    table = pzos.Answers.open(tmp_path / "measured.csv", x=["north", "south"], y=["cars"])
    assert table.x.tolist() == [[0.5, 1.5], [0.25, 1.0]]
    assert table.y.ravel().tolist() == [100.0, 120.0]
    assert table.decisions == (Column("north"), Column("south"))


def test_contradictions_are_noise_inside_a_source_and_errors_between_two() -> None:
    noisy = pzos.Answers([[0.0], [0.0], [1.0]], [[1.0], [1.2], [2.0]], source="a")
    (found,) = noisy.contradictions
    assert found.noise
    assert found.rows == (0, 1)
    assert found.difference == pytest.approx(0.2)
    assert [float(y[0]) for _, y in noisy.pairs()] == [1.0, 1.2, 2.0]
    both = pzos.Answers([[0.0]], [[1.0]], source="a") + pzos.Answers([[-0.0]], [[3.0]], source="b")
    (found,) = both.contradictions
    assert not found.noise
    assert "sources disagree" in repr(both)
    assert [float(y[0]) for _, y in both.pairs()] == [3.0]
    rounding = pzos.Answers([[0.0], [0.0]], [[1.0], [1.0 + 1e-15]])
    assert not rounding.contradictions
    assert len(rounding.pairs()) == 1


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: pzos.Answers([[1.0]], [[1.0], [2.0]]), ["1 rows, as x has"]),
        (lambda: pzos.Answers([[np.nan]], [[np.inf]]), ["x[0, 0] = nan", "y[0, 0] = inf"]),
        (lambda: pzos.Answers("no", [["text"]]), ["x = 'no'", "y = [['text']]"]),
        (lambda: pzos.Answers([[1.0]], [[1.0]], source=3, seconds="no", decisions=["a", "b"]),
         ["source = 3", "seconds = 'no'", "decisions"]),
        (lambda: pzos.Answers([[1.0]], [[1.0]], decisions=["a"]) + pzos.Answers([[1.0]], [[1.0, 2.0]], decisions=["b"]),
         ["a and b", "y = 2: expected 1 columns"]),
        (lambda: pzos.Answers([[1.0]], [[1.0]]).merge(3), ["other = 3"]),
    ],
)  # fmt: skip
def test_all_faults_are_said_at_once(made: Any, words: list[str]) -> None:
    with pytest.raises(pzos.InvalidInput) as error:
        made()
    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", ["no column of x", "no column of y"]),
        ("x0,y0\n1\n", [":2: has 1 cells"]),
        ("x0,y0\n1,two\n,3\n", [":2: y0 = 'two'", ":3: x0 is blank"]),
        ("x0,x0,y0\n1,2,3\n", ["'x0' is there more than once"]),
        ("x0,x2,y0\n1,2,3\n", ["x0, x1, ..., each once"]),
        ("x0,y0\n", ["no rows"]),
        ("x0,y0\n1_0,2\n", ["x0 = '1_0'"]),
    ],
)
def test_a_file_is_refused_with_its_lines(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(pzos.InvalidInput) as error:
        pzos.Answers.open(tmp_path / "bad.csv")
    assert all(word in str(error.value) for word in words), error.value


def test_nothing_is_written_onto_a_study(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    pzos.solve(durable_problem.problem(), queries=2, certificate=False, path=path)
    with pytest.raises(pzos.InvalidInput, match="holds a study"):
        pzos.Answers([[1.0]], [[1.0]]).write(path)
    with pytest.raises(pzos.InvalidInput, match="leave x and y out"):
        pzos.Answers.open(path, x=["a"])


def test_a_table_shows_what_it_is() -> None:
    table = pzos.Answers([[0.0], [1.0]], [[1.0], [2.0]], source=["a", "b"], failure=["", "late"], decisions=["toll"])
    text = repr(table)
    assert "2, of 1 entries, to 1 decisions" in text
    assert "a (1), b (1)" in text
    assert "toll" in text
    assert "failed" in text
