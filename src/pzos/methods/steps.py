"""Step rules that need no tuning: the step size follows from the iterates and the estimates themselves.

A rule is a frozen value; what it has seen is another value, part of the solver's state. Where a number or a schedule
(:mod:`pzos.methods.schedules`) fixes alpha_t beforehand, a rule computes it from x_0, x_t and g_t.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Protocol, TypeGuard, runtime_checkable

from pzos.base.checks import Faults
from pzos.base.types import Vector, dot
from pzos.methods.schedules import Schedule, check_positive, check_schedule, value_at


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
class DoG:
    """Distance over gradients: alpha_t = max_{s <= t} |x_s - x_0| / sqrt(sum_{s <= t} |g_s|^2).

    (Ivgi, Hinder and Carmon, "DoG is SGD's best friend", ICML 2023.) The one number it needs, the length of the first
    move, is the smoothing radius unless ``initial`` says otherwise: a length on which the user already lets the
    response be probed. The reach then grows to the distance of the solution within a logarithmic number of
    steps. It pays where the noise of g dies out, as with a memory; on plain PZOS it does not.
    """

    initial: float | None = None

    def __post_init__(self) -> None:
        _check_initial("DoG", self.initial)

    def next_step(
        self, past: StepState, radius: float, from_start: Vector, gradient: Vector
    ) -> tuple[float, StepState]:
        """Return reach / sqrt(total)."""
        reach = _reach(past, self.initial or radius, from_start)
        total = past.total + dot(gradient, gradient)
        return (reach / sqrt(total) if total > 0.0 else 0.0), StepState(reach, total)


@dataclass(frozen=True, slots=True)
class DoWG:
    """Distance over weighted gradients: alpha_t = r_t^2 / sqrt(sum_{s <= t} r_s^2 |g_s|^2), r_t the reach.

    (Khaled, Mishchenko and Jin, NeurIPS 2023.) Bolder than :class:`DoG`: estimates from before the reach had grown
    weigh little. ``initial`` as there.
    """

    initial: float | None = None

    def __post_init__(self) -> None:
        _check_initial("DoWG", self.initial)

    def next_step(
        self, past: StepState, radius: float, from_start: Vector, gradient: Vector
    ) -> tuple[float, StepState]:
        """Return reach^2 / sqrt(weighted total)."""
        reach = _reach(past, self.initial or radius, from_start)
        total = past.total + reach * reach * dot(gradient, gradient)
        return (reach * reach / sqrt(total) if total > 0.0 else 0.0), StepState(reach, total)


Step = float | Schedule | StepRule


def check_step(faults: Faults, argument: str, value: object) -> bool:
    """Note a fault unless ``value`` is a positive number, a schedule or a step rule."""
    return isinstance(value, StepRule) or check_schedule(faults, argument, value)


def next_step(
    step: Step, t: int, past: StepState, radius: float, from_start: Vector, gradient: Vector
) -> tuple[float, StepState]:
    """Return alpha_t of a number, a schedule or a rule, with what the rule has seen now."""
    if _is_rule(step):
        return step.next_step(past, radius, from_start, gradient)
    return value_at(step, t), past  # type: ignore[arg-type]  # not a rule


def _is_rule(step: Step) -> TypeGuard[StepRule]:
    return hasattr(step, "next_step")  # isinstance of a protocol costs as much as the whole rule


def _reach(past: StepState, initial: float, from_start: Vector) -> float:
    return max(past.reach or initial, sqrt(dot(from_start, from_start)))


def _check_initial(where: str, initial: float | None) -> None:
    faults = Faults(where)
    if initial is not None:
        check_positive(faults, "initial", initial)
    faults.raise_if_any()
