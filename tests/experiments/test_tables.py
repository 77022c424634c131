"""Normalisation, bands, claims and files of numbers: each against what it says it is."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from experiments.made import made_pair, made_runs
from pzos.experiments.tables import (
    Context,
    bands,
    exceptions,
    normalised,
    write_columns,
    write_trajectories,
)


def test_normalisation_is_the_papers(computed: Callable[[], Context]) -> None:
    context = computed()
    pzos, zos = (context.runs("security", v) for v in context.scale.security.base())
    scaled = normalised([pzos, zos])
    both = np.concatenate(scaled, axis=1)
    np.testing.assert_array_equal(both.min(axis=1), 0.0)
    np.testing.assert_array_equal(both.max(axis=1), 1.0)
    lowest = min(pzos.values[0].min(), zos.values[0].min())
    highest = max(pzos.values[0].max(), zos.values[0].max())
    np.testing.assert_array_equal(scaled[0][0], (pzos.values[0] - lowest) / (highest - lowest))


def test_both_algorithms_start_at_the_same_value(computed: Callable[[], Context]) -> None:
    context = computed()
    pzos, zos = (context.runs("security", v) for v in context.scale.security.base())
    np.testing.assert_allclose(pzos.values[:, 0], zos.values[:, 0], rtol=1e-14)


def test_bands_are_quantiles() -> None:
    band = bands(np.arange(101.0).reshape(101, 1))
    quantiles = [float(q[0]) for q in (band.lower_decile, band.lower_quartile, band.median, band.upper_quartile)]
    assert quantiles == [10.0, 25.0, 50.0, 75.0]
    assert float(band.upper_decile[0]) == 90.0


def test_trajectories_have_the_promised_columns(computed: Callable[[], Context], tmp_path: Path) -> None:
    context = computed()
    runs = context.runs("security", context.scale.security.base()[1])
    write_trajectories(tmp_path / "t.csv", [(runs, normalised([runs])[0])])
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = ["instance", "dimension", "algorithm", "batch", "radius", "step", "queries", "value", "normalised"]
    assert list(rows[0]) == names
    assert len(rows) == runs.values.size
    assert rows[3]["queries"] == "6"
    assert float(rows[5]["value"]) == runs.values[0, 5]


def test_written_floats_come_back_exactly(tmp_path: Path) -> None:
    values = np.array([0.1, 1e300, -3.0, 2.5e-17])
    write_columns(tmp_path / "c.csv", {"v": values})
    assert [float(line) for line in (tmp_path / "c.csv").read_text().splitlines()[1:]] == values.tolist()
    assert (tmp_path / "c.csv").read_text().splitlines()[3] == "-3"  # whole numbers are written as such


def test_an_instance_where_nothing_moved_is_normalised_to_zero() -> None:
    (scaled,) = normalised([made_runs("PZOS", np.full((2, 3), 7.0))])
    np.testing.assert_array_equal(scaled, 0.0)


def test_exceptions_are_named_by_their_seeds() -> None:
    runs = made_runs("PZOS", np.zeros((3, 2)))
    assert exceptions(runs, np.array([True, False, False])) == "; exceptions (seeds): [101, 102]"
    assert exceptions(runs, np.full(3, True)) == ""


def test_columns_of_a_pair_are_its_bands() -> None:
    rows = np.linspace(0.0, 1.0, 22).reshape(2, 11)
    pair = made_pair(rows, rows[::-1])
    columns = pair.columns("_mu1")
    assert list(columns)[:5] == [f"pzos_mu1_{name}" for name in ("median", "q25", "q75", "q10", "q90")]
    np.testing.assert_array_equal(columns["zos_mu1_q90"], pair.their_bands.upper_decile)
    np.testing.assert_allclose(pair.our_bands.quartile_range, columns["pzos_mu1_q75"] - columns["pzos_mu1_q25"])
    kept = pair.our_bands.until(np.arange(11) < 4)
    np.testing.assert_array_equal(kept.median, pair.our_bands.median[:4])
    np.testing.assert_array_equal(kept.upper_decile, pair.our_bands.upper_decile[:4])


def test_runs_are_read_from_the_store_once(computed: Callable[[], Context]) -> None:
    context = computed()
    variant = context.scale.routing.base()[0]
    assert context.runs("routing", variant) is context.runs("routing", variant)
    assert [spec.instance for spec in context.specs("routing", variant)] == [0, 1, 2, 3]
