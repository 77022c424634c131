from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pzos.experiments.context import Context
from pzos.experiments.tables import bands, normalised, write_columns, write_trajectories


def test_normalisation_is_the_papers(computed: Callable[[], Context]) -> None:
    context = computed()
    pzos, zos = context.security("PZOS"), context.security("ZOS")
    scaled = normalised([pzos, zos])
    both = np.concatenate(scaled, axis=1)
    np.testing.assert_array_equal(both.min(axis=1), 0.0)
    np.testing.assert_array_equal(both.max(axis=1), 1.0)
    lowest = min(pzos.values[0].min(), zos.values[0].min())
    highest = max(pzos.values[0].max(), zos.values[0].max())
    np.testing.assert_array_equal(scaled[0][0], (pzos.values[0] - lowest) / (highest - lowest))


def test_both_algorithms_start_at_the_same_value(computed: Callable[[], Context]) -> None:
    context = computed()
    np.testing.assert_allclose(context.security("PZOS").values[:, 0], context.security("ZOS").values[:, 0], rtol=1e-14)


def test_bands_are_quantiles() -> None:
    band = bands(np.arange(101.0).reshape(101, 1))
    quantiles = [float(q[0]) for q in (band.lower_decile, band.lower_quartile, band.median, band.upper_quartile)]
    assert quantiles == [10.0, 25.0, 50.0, 75.0]
    assert float(band.upper_decile[0]) == 90.0


def test_trajectories_have_the_promised_columns(computed: Callable[[], Context], tmp_path: Path) -> None:
    runs = computed().security("ZOS")
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
