"""``pzos demo``: a table, a picture, and the order of the methods that the table claims."""

from __future__ import annotations

import numpy as np
import pytest

from pzos.cli import demo
from pzos.cli.main import main

pytest.importorskip("matplotlib")
from matplotlib.image import imread


@pytest.fixture(scope="module")
def results():
    return demo.demo_results(seed=0)


def test_every_method_spends_the_same_queries_and_starts_at_the_same_point(results):
    assert max(result.queries for result in results.values()) <= demo._QUERIES
    starts = {round(result.trace["value"][0], 9) for result in results.values() if result.trace["value"][0] > 0}
    assert len(starts) == 1


def test_gaps_go_from_one_to_zero_and_never_up(results):
    gaps = demo.gaps(results)
    assert min(gap[-1] for gap in gaps.values()) == 0.0
    for gap in gaps.values():
        assert gap[0] == pytest.approx(1.0)
        assert np.all(np.diff(gap) <= 0)


def test_memory_beats_the_paper_and_the_default_beats_memory(results):
    last = {name: gap[-1] for name, gap in demo.gaps(results).items()}
    assert last["default"] < last["PZOS with memory"] < last["PZOS"] < last["ZOS"]


def test_the_table_has_a_row_per_method(results):
    lines = demo.table(results).splitlines()
    assert [line[:18].strip() for line in lines[1:-1]] == list(results)


def test_the_picture_is_drawn(results, tmp_path):
    demo.draw(results, tmp_path / "demo.png")
    picture = imread(tmp_path / "demo.png")
    assert picture.shape[0] >= 500
    assert picture.std() > 0.05


def test_the_command_prints_the_table_why_and_where_the_picture_is(results, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "demo_results", lambda seed: results)
    assert main(["demo", "--out", str(tmp_path / "deep" / "out")]) == 0
    told = capsys.readouterr().out
    assert told.startswith(demo.table(results))
    assert f"default: {results['default'].explanation}" in told
    assert told.endswith(f"picture: {tmp_path / 'deep' / 'out' / 'demo.png'}\n")
    assert (tmp_path / "deep" / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")
