"""How far to go: numbers, schedules and rules for the step size alpha_t, and schedules for the radius.

A schedule fixes alpha_t beforehand, as a frozen callable of the iteration t = 0, 1, 2, ... A step rule needs no tuning:
it computes alpha_t from x_0, x_t and g_t. It is a frozen value too; what it has seen is another value, part of the
solver's state.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

from pzos.base.checks import Faults, at_least, check_fields, checked, positive, set_fields, shown, whole
from pzos.base.errors import InvalidInput
from pzos.base.types import Vector, dot

#: What a step, a radius or a length must be where it is a number, and the number of directions of a step.
POSITIVE = positive("try 0.05", "a positive finite number")
BATCH = whole(1, "try batch=1")

# ---- schedules ----------------------------------------------------------------------------------------------------


@runtime_checkable
class Schedule(Protocol):
    """A positive number for every iteration."""

    def __call__(self, t: int) -> float:
        """Return the value at iteration t, counted from 0 as in the paper's loops."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value at every iteration."""

    value: float = checked(POSITIVE)

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "value", float(self.value))

    def __call__(self, t: int) -> float:
        """Return the constant."""
        return self.value


@dataclass(frozen=True, slots=True)
class Diminishing:
    """``scale`` / sqrt(t), with t counted from 1 (Sec. 5.2: 0.05 / sqrt(t)): the first step is ``scale``."""

    scale: float = checked(POSITIVE)

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "scale", float(self.scale))

    def __call__(self, t: int) -> float:
        """Return scale / sqrt(t + 1)."""
        return float(self.scale / (t + 1) ** 0.5)


@dataclass(frozen=True, slots=True)
class Power:
    """``scale`` / (t + ``offset``)^``power``, with t counted from 1: the gains of stochastic approximation."""

    scale: float = checked(POSITIVE)
    power: float = checked(at_least(0.0, "a number >= 0", "0.5 is that of Diminishing"))
    offset: float = checked(at_least(0.0, "a number >= 0", "0 starts at once"), default=0.0)

    def __post_init__(self) -> None:
        check_fields(self)
        set_fields(self, scale=float(self.scale), power=float(self.power), offset=float(self.offset))

    def __call__(self, t: int) -> float:
        """Return scale / (t + 1 + offset)^power."""
        return float(self.scale / (t + 1 + self.offset) ** self.power)


def value_at(schedule: float | Schedule, t: int) -> float:
    """Return what a number or a schedule says at iteration t."""
    if not callable(schedule):
        return schedule
    said = schedule(t)
    if type(said) is float and 0.0 < said < inf:  # the usual case, in short
        return said
    if not POSITIVE.holds(said):
        raise InvalidInput(
            f"schedule {shown(schedule)}: value {shown(said)} at t = {t}: expected a positive finite number; "
            "a schedule is called with t = 0, 1, 2, ..."
        )
    return float(said)


# ---- rules --------------------------------------------------------------------------------------------------------


class StepState(NamedTuple):
    """What a rule has seen: the longest distance from x_0 (0: nothing yet) and the (weighted) sum of |g|^2."""

    reach: float = 0.0
    total: float = 0.0


@runtime_checkable
class StepRule(Protocol):
    """A rule alpha_t = rule(past, x_0, x_t, g_t)."""

    def next_step(
        self, past: StepState, radius: float, from_start: Vector, gradient: Vector
    ) -> tuple[float, StepState]:
        """Return alpha_t and what is seen now; ``from_start`` is x_t - x_0 and ``radius`` the smoothing radius."""
        ...


@dataclass(frozen=True, slots=True)
class _DistanceRule:
    """A rule whose step is a distance over gradients; the distance is the longest so far, ``initial`` at first."""

    initial: float | None = checked(POSITIVE.or_none(), default=None)

    def __post_init__(self) -> None:
        check_fields(self)

    def _reach(self, past: StepState, radius: float, from_start: Vector) -> float:
        return max(past.reach or self.initial or radius, sqrt(dot(from_start, from_start)))


@dataclass(frozen=True, slots=True)
class DoG(_DistanceRule):
    """Distance over gradients: alpha_t = max_{s <= t} |x_s - x_0| / sqrt(sum_{s <= t} |g_s|^2).

    (Ivgi, Hinder and Carmon, "DoG is SGD's best friend", ICML 2023.) The one number it needs, the length of the first
    move, is the smoothing radius unless ``initial`` says otherwise: a length on which the user already lets the
    response be probed. The reach then grows to the distance of the solution within a logarithmic number of
    steps. It pays where the noise of g dies out, as with a memory; on plain PZOS it does not.
    """

    def next_step(
        self, past: StepState, radius: float, from_start: Vector, gradient: Vector
    ) -> tuple[float, StepState]:
        """Return reach / sqrt(total)."""
        reach = self._reach(past, radius, from_start)
        total = past.total + dot(gradient, gradient)
        return (reach / sqrt(total) if total > 0.0 else 0.0), StepState(reach, total)


@dataclass(frozen=True, slots=True)
class DoWG(_DistanceRule):
    """Distance over weighted gradients: alpha_t = r_t^2 / sqrt(sum_{s <= t} r_s^2 |g_s|^2), r_t the reach.

    (Khaled, Mishchenko and Jin, NeurIPS 2023.) Bolder than :class:`DoG`: estimates from before the reach had grown
    weigh little. ``initial`` as there.
    """

    def next_step(
        self, past: StepState, radius: float, from_start: Vector, gradient: Vector
    ) -> tuple[float, StepState]:
        """Return reach^2 / sqrt(weighted total)."""
        reach = self._reach(past, radius, from_start)
        total = past.total + reach * reach * dot(gradient, gradient)
        return (reach * reach / sqrt(total) if total > 0.0 else 0.0), StepState(reach, total)


Step = float | Schedule | StepRule


def next_step(
    step: Step, t: int, past: StepState, radius: float, from_start: Vector, gradient: Vector
) -> tuple[float, StepState]:
    """Return alpha_t of a number, a schedule or a rule, with what the rule has seen now."""
    if _is_rule(step):
        return step.next_step(past, radius, from_start, gradient)
    return value_at(step, t), past  # type: ignore[arg-type]  # not a rule


def _is_rule(step: Step) -> TypeGuard[StepRule]:
    return hasattr(step, "next_step")  # isinstance of a protocol costs as much as the whole rule


# ---- what a setting must be ---------------------------------------------------------------------------------------


class _ScheduleOr(NamedTuple):
    """A positive number, a schedule, or an instance of one of the other ``kinds``; never a class of these."""

    kinds: tuple[type, ...] = ()

    def note(self, faults: Faults, argument: str, value: Any) -> bool:
        """Note a fault unless the value is one of these; returns whether it is."""
        if isinstance(value, type):
            remedy = f"make one, e.g. {value.__name__}(0.05)"
            return faults.check(False, argument, value, "a number or a schedule", remedy)
        return callable(value) or isinstance(value, self.kinds) or POSITIVE.note(faults, argument, value)


SCHEDULE, STEP = _ScheduleOr(), _ScheduleOr((StepRule,))
