"""Step-size and radius schedules as frozen callables of the iteration t = 0, 1, 2, ..."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pzos.base.checks import Faults, shown
from pzos.base.errors import InvalidInput
from pzos.base.types import as_number


@runtime_checkable
class Schedule(Protocol):
    """A positive number for every iteration."""

    def __call__(self, t: int) -> float:
        """Return the value at iteration t, counted from 0 as in the paper's loops."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value at every iteration."""

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", positive("Constant", "value", self.value))

    def __call__(self, t: int) -> float:
        """Return the constant."""
        return self.value


@dataclass(frozen=True, slots=True)
class Diminishing:
    """``scale`` / sqrt(t), with t counted from 1 (Sec. 5.2: 0.05 / sqrt(t)): the first step is ``scale``."""

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("Diminishing", "scale", self.scale))

    def __call__(self, t: int) -> float:
        """Return scale / sqrt(t + 1)."""
        return float(self.scale / (t + 1) ** 0.5)


def positive(where: str, argument: str, value: object) -> float:
    """Return ``value`` as a float if it is a positive finite number."""
    faults = Faults(where)
    check_positive(faults, argument, value)
    faults.raise_if_any()
    return float(value)  # type: ignore[arg-type]  # checked above


def check_positive(faults: Faults, argument: str, value: object) -> bool:
    """Note a fault unless ``value`` is a positive finite number."""
    number = as_number(value)
    ok = number is not None and 0 < number < float("inf")
    return faults.check(ok, argument, value, "a positive finite number", "try 0.05")


def check_schedule(faults: Faults, argument: str, value: object) -> bool:
    """Note a fault unless ``value`` is a positive number or a schedule."""
    if isinstance(value, type):
        return faults.check(False, argument, value, "a number or a schedule", f"make one, e.g. {value.__name__}(0.05)")
    if callable(value):
        return True
    return check_positive(faults, argument, value)


def value_at(schedule: float | Schedule, t: int) -> float:
    """Return what a number or a schedule says at iteration t."""
    if not callable(schedule):
        return schedule
    said = schedule(t)
    number = as_number(said)
    if number is None or not 0 < number < float("inf"):
        raise InvalidInput(
            f"schedule {shown(schedule)}: value {shown(said)} at t = {t}: expected a positive finite number; "
            "a schedule is called with t = 0, 1, 2, ..."
        )
    return number


def plain(value: float | Schedule) -> float | Schedule:
    """Return a number as a Python float (float32 would round what is computed with it), a schedule as it is."""
    return value if callable(value) else float(value)
