"""Methods by name, for those who choose one on the command line, in a file or with ``method="..."``."""

from __future__ import annotations

import importlib
from typing import Any

from pzos.base.checks import Faults, nearest
from pzos.methods.solver import SOLVER, AnySolver

#: What stands for "choose one for me".
DEFAULT = "default"
_HOMES = {
    "pzos.methods.smoothing": ("PZOS", "ZOS"),
    "pzos.methods.memory": ("MemoryPZOS", "SecantPZOS"),
    "pzos.methods.trust_region.solver": ("CompositeTrustRegion",),
    "pzos.methods.trust_region.constrained": ("ConstrainedTrustRegion",),
    "pzos.methods.related": (
        "FlaxmanOnePoint", "FollowerAgnostic", "FrankWolfeZO", "GFM", "GFMPlus", "GradientMappingZO", "GuidedZO",
        "KornowskiShamir", "NesterovSpokoiny", "PZOBO", "SPSA", "TwoPhaseGFM", "VarianceReducedZSOL", "ZOStackelberg",
        "ZSOL",
    ),
}  # fmt: skip
#: Every method that can be had without further settings, and the module it is in.
METHODS = {name: home for home, names in _HOMES.items() for name in names}
_KNOWN = {name.lower(): name for name in METHODS}


def kind_named(faults: Faults, argument: str, name: Any) -> type | None:
    """Return the class of the method of that name, in any case; what is none is noted, with the nearest name."""
    known = _KNOWN.get(str(name).lower())
    if known is not None:
        kind: type = getattr(importlib.import_module(METHODS[known]), known)
        return kind
    meant = nearest(str(name), (DEFAULT, *METHODS))
    hint = f"did you mean {meant!r}?" if meant else f"one of {', '.join((DEFAULT, *METHODS))}"
    faults.check(False, argument, name, "the name of a method", hint)
    return None


def as_method(where: str, method: Any) -> AnySolver | None:
    """Return a solver given by name or as it is; None for the default."""
    if method is None or (isinstance(method, str) and method.lower() == DEFAULT):
        return None
    faults = Faults(where)
    if isinstance(method, str):
        kind = kind_named(faults, "method", method)
        faults.raise_if_any()
        found: AnySolver = kind()  # type: ignore[misc]  # a class, or the line before has raised
        return found
    SOLVER.require(where, "method", method)
    given: AnySolver = method
    return given
