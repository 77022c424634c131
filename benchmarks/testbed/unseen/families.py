"""All families of the protocol: importing this module fills the registry."""

from __future__ import annotations

from testbed.unseen import apart, fresh, games, noisy, rough, shown, simulated, smooth
from testbed.unseen.instance import FAMILIES, Family, Instance

MODULES = (smooth, rough, simulated, noisy, games, fresh, shown, apart)


def of_half(half: str) -> list[Family]:
    """Return the families of one part, or of all ("all")."""
    return [item for item in FAMILIES.values() if half in (item.half, "all")]


def make(name: str, seed: int) -> Instance:
    """Return one instance by the name of its family."""
    if name not in FAMILIES:
        raise ValueError(f"family {name!r}: expected one of {', '.join(FAMILIES)}")
    return FAMILIES[name].instance(seed)
