"""A reproduction small enough for a unit test: the same code on a few instances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pzos.experiments.descriptions import RoutingExperiment, Scale, SecurityExperiment
from pzos.experiments.runs import RunStore, compute_missing
from pzos.experiments.tables import Context

TINY = Scale(
    "tiny",
    SecurityExperiment(dimensions=(2, 50, 100, 105, 150), repetitions=2, steps=260, bold_dimensions=(150,)),
    RoutingExperiment(instances=4, steps=60, bold_instances=3),
)


@pytest.fixture(scope="session")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Context]:
    """All runs of the tiny scale, computed once for the whole session."""
    folder: Path = tmp_path_factory.mktemp("reproduction")
    store = RunStore(folder / "runs.sqlite")
    routing = TINY.routing
    variants = {
        *routing.batch_variants(), *routing.radius_variants(), *routing.constrained_variants(), *routing.bold(),
        *(variant for pair in routing.batch_pairs() for variant in pair),
    }  # fmt: skip
    security = TINY.security.runs(0, (*TINY.security.base(), *TINY.security.bold()))
    specs = [*security, *routing.runs(0, tuple(sorted(variants, key=repr)))]
    compute_missing(specs, store)
    return lambda: Context(TINY, 0, folder, store)
