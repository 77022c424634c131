"""Runs made up for a test, so that a claim can be seen to hold and to fail."""

from __future__ import annotations

from typing import Any

import numpy as np

from pzos.experiments.descriptions import RunSpec, Variant
from pzos.experiments.tables import Pair, Runs, bands, normalised


def made_runs(algorithm: str, values: np.ndarray, **counts: Any) -> Runs:
    """Return runs with the values given, one row per instance; dimensions are 10, 20, ... unless said otherwise."""
    number, steps = values.shape
    variant = Variant(algorithm)  # type: ignore[arg-type]
    specs = tuple(RunSpec("routing", at, 100 + at, 0, 0.7, steps - 1, variant) for at in range(number))
    dimensions = np.asarray(counts.get("dimensions", 10.0 * np.arange(1, number + 1)))
    same = {name: np.full(number, counts.get(name, 0.0)) for name in ("projected", "slack")}
    return Runs(variant, specs, values, np.ones((number, steps - 1)), dimensions, same["projected"], same["slack"])


def made_pair(pzos: np.ndarray, zos: np.ndarray, **counts: Any) -> Pair:
    """Return a pair of made runs, normalised over both."""
    runs = made_runs("PZOS", pzos, **counts), made_runs("ZOS", zos, **counts)
    ours, theirs = normalised(runs)
    return Pair(*runs, ours, theirs, bands(ours), bands(theirs))
