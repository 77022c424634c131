"""The leader: a known, smooth cost f(x, y) with exact partial gradients in both arguments, and a check of these.

What a leader returns is checked at the door; :func:`check_leader` compares its gradients with finite differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, Must, instance_of, number, shown
from pzos.base.errors import InvalidLeader
from pzos.base.types import FLOAT64, LeaderValue, Vector, all_finite, float_array
from pzos.problem.differences import check_gradients

OneFunction = Callable[[Vector, Vector], Any]
AllFunction = Callable[[Vector, Vector], tuple[Any, Any, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Leader:
    """f with its two partial gradients behind one door that checks what comes back.

    Build one with :func:`leader_from_functions`, :func:`pzos.leader_from_jax` or :func:`pzos.leader_from_torch`.
    Calling it gives a :class:`LeaderValue`; ``value`` gives f alone, for methods that need no gradient (ZOS).
    ``parameters`` are numbers in the cost that may be changed (:meth:`with_parameters`): prices, weights, targets.
    ``remark()`` says what was found out about the cost itself, if anything.
    """

    value_function: OneFunction
    all_function: AllFunction
    name: str = "leader"
    parameters: Mapping[str, float] = field(default_factory=dict)
    remake: Callable[[Mapping[str, float]], Leader] | None = None
    remark: Callable[[], str] = str

    def with_parameters(self, **changed: float) -> Leader:
        """Return the leader with other values of some of its parameters."""
        faults = Faults(f"{self.name}.with_parameters")
        if self.remake is None:
            raise InvalidLeader(f"{self.name}: has no parameters: expected some; make it with parameters={{...}}")
        for name, value in changed.items():
            listed = ", ".join(self.parameters)
            if faults.check(name in self.parameters, name, value, f"a parameter: {listed}", "check the spelling"):
                A_NUMBER.note(faults, name, value)
        faults.raise_if_any()
        return parametric(self.remake, {**self.parameters, **{name: float(v) for name, v in changed.items()}})

    def __call__(self, x: Vector, y: Vector) -> LeaderValue:
        """Return f(x, y), grad_x f(x, y) and grad_y f(x, y)."""
        returned = self.all_function(x, y)
        try:
            value, grad_x, grad_y = returned
        except (TypeError, ValueError) as error:
            raise InvalidLeader(
                f"{self.name}: value_and_gradients returned {shown(returned)}: expected three things; "
                "return (value, grad_x, grad_y)"
            ) from error
        if type(value) is float and isfinite(value) and _is_like(grad_x, x) and _is_like(grad_y, y):
            return LeaderValue(value, grad_x, grad_y)  # the usual case, in short
        return LeaderValue(
            self._checked_value(value),
            self._checked_gradient(grad_x, "grad_x", x.size),
            self._checked_gradient(grad_y, "grad_y", y.size),
        )

    def value(self, x: Vector, y: Vector) -> float:
        """Return f(x, y) alone."""
        return self._checked_value(self.value_function(x, y))

    def _checked_value(self, value: Any) -> float:
        # A plain float is by far the commonest answer; everything else goes the long way round.
        if type(value) is not float:
            array = np.asarray(value)
            if array.size != 1 or array.dtype not in (np.float64, np.int64):
                raise InvalidLeader(
                    f"{self.name}: f(x, y) = {shown(value)} (dtype {array.dtype}): expected one float64 number; "
                    "return a float, and compute in float64, not float32"
                )
            value = float(array.reshape(()))
        if not isfinite(value):
            raise InvalidLeader(
                f"{self.name}: f(x, y) = {value}: expected a finite number; "
                "if x has run away take a smaller step or restrict it by a domain, else repair the cost there"
            )
        return float(value)

    def _checked_gradient(self, gradient: Any, which: str, size: int) -> Vector:
        array = gradient if type(gradient) is np.ndarray else np.asarray(gradient)
        if array.dtype != FLOAT64 or array.shape != (size,):
            raise InvalidLeader(
                f"{self.name}: {which} has shape {array.shape} and dtype {array.dtype}: "
                f"expected shape ({size},) and dtype float64; return one float64 entry per entry of {which[-1]}"
            )
        if not all_finite(array):
            entry = int(np.nonzero(~np.isfinite(array))[0][0])
            raise InvalidLeader(
                f"{self.name}: {which}[{entry}] = {array[entry]}: expected finite numbers; "
                "check the gradient with pzos.check_leader"
            )
        return array


def _is_like(gradient: Any, argument: Vector) -> bool:
    """Tell in one pass whether a gradient is as it must be; what is doubtful goes the long way round."""
    return (
        type(gradient) is np.ndarray
        and gradient.dtype is FLOAT64
        and gradient.shape == argument.shape
        and isfinite(gradient.dot(gradient))
    )


A_NUMBER = number(isfinite, "a finite number", "give one number per name")


def parametric(make: Callable[[Mapping[str, float]], Leader], parameters: Mapping[str, float]) -> Leader:
    """Return the leader that ``make`` makes of these parameters, and that can be made of others."""
    return replace(make(parameters), parameters=dict(parameters), remake=make)


def checked_parameters(where: str, parameters: Any) -> dict[str, float]:
    """Return parameters of a cost as they must be: numbers by name."""
    faults = Faults(where)
    if instance_of(Mapping, "numbers by name", 'try {"price": 2.0}').note(faults, "parameters", parameters):
        for name, value in parameters.items():
            A_NUMBER.note(faults, f"parameters[{name!r}]", value)
    faults.raise_if_any()
    return {str(name): float(value) for name, value in parameters.items()}


def cost_function(remedy: str) -> Must:
    """A function of (x, y)."""
    return Must(callable, "a function of (x, y)", remedy)


def leader_from_functions(
    value: OneFunction,
    grad_x: OneFunction | None = None,
    grad_y: OneFunction | None = None,
    *,
    value_and_gradients: AllFunction | None = None,
    name: str = "leader",
    parameters: Mapping[str, float] | None = None,
) -> Leader:
    """Build a leader from hand-written functions of (x, y).

    Give ``value`` with ``grad_x`` and ``grad_y``; or ``value`` with one ``value_and_gradients`` that returns all
    three at once, where they share work. With ``parameters`` all of them take these by name as well:
    ``value(x, y, price=...)``. Where the gradients are first used they are compared with differences of ``value``, and
    a wrong one is an error that names the entry.

    >>> import numpy as np
    >>> f = leader_from_functions(lambda x, y: float(x @ y), lambda x, y: y, lambda x, y: x)
    >>> f(np.array([1.0, 2.0]), np.array([3.0, 4.0])).value
    11.0
    """
    faults = Faults("leader_from_functions")
    cost_function("pass the function itself").note(faults, "value", value)
    if value_and_gradients is not None:
        cost_function("let it return (value, grad_x, grad_y)").note(faults, "value_and_gradients", value_and_gradients)
    else:
        for argument, function in (("grad_x", grad_x), ("grad_y", grad_y)):
            cost_function("give both partial gradients").note(faults, argument, function)
    faults.raise_if_any()
    if parameters is not None:

        def make(given: Mapping[str, float]) -> Leader:
            others = [function and partial(function, **given) for function in (grad_x, grad_y)]
            both = value_and_gradients and partial(value_and_gradients, **given)
            return leader_from_functions(partial(value, **given), *others, value_and_gradients=both, name=name)

        return parametric(make, checked_parameters("leader_from_functions", parameters))

    def all_at_once(x: Vector, y: Vector) -> tuple[Any, Any, Any]:
        return value(x, y), grad_x(x, y), grad_y(x, y)  # type: ignore[misc]  # checked above

    return Leader(value, _Compared(name, value, value_and_gradients or all_at_once), name)


class _Compared:
    """Gradients written by hand, compared with differences where they are first used (and until they agree)."""

    __slots__ = ("agree", "by_hand", "name", "value")

    def __init__(self, name: str, value: OneFunction, by_hand: AllFunction) -> None:
        self.name, self.value, self.by_hand, self.agree = name, value, by_hand, False

    def __call__(self, x: Vector, y: Vector) -> tuple[Any, Any, Any]:
        returned = self.by_hand(x, y)
        if not self.agree:
            plain = Leader(self.value, lambda *_: returned, self.name)
            at = plain(x, y)
            check_gradients(self.name, plain.value, x, y, at.value, at.grad_x, at.grad_y)
            self.agree = True
        return returned


@dataclass(frozen=True, slots=True)
class WrongEntry:
    """One gradient entry that disagrees with the finite difference of f."""

    gradient: str
    entry: int
    claimed: float
    measured: float


@dataclass(frozen=True, slots=True)
class LeaderReport:
    """What :func:`check_leader` found. It is truthy if both gradients agree with f."""

    worst_error: float
    tolerance: float
    wrong: tuple[WrongEntry, ...]

    def __bool__(self) -> bool:
        return not self.wrong

    def __repr__(self) -> str:
        if self:
            return f"both gradients agree with f (worst relative error {self.worst_error:.1e})"
        lines = [f"{len(self.wrong)} gradient entries disagree with finite differences of f:"]
        lines += [
            f"  {w.gradient}[{w.entry}]: the leader says {w.claimed:.6g}, differences say {w.measured:.6g}"
            for w in self.wrong[:10]
        ]
        if len(self.wrong) > 10:
            lines.append(f"  ... and {len(self.wrong) - 10} more")
        return "\n".join(lines)


def check_leader(
    leader: Leader, x: npt.ArrayLike, y: npt.ArrayLike, *, tolerance: float = 1e-6, entries: int = 200
) -> LeaderReport:
    """Compare grad_x f and grad_y f at (x, y) with central differences, entry by entry.

    At most ``entries`` entries of each gradient are looked at, evenly spread. The error is relative to the
    larger of the two values, of the typical size of the gradient, and of 1e-6 |f|, so that neither tiny entries nor
    the rounding of a large f in the differences raise alarms.
    """
    faults = Faults("check_leader")
    instance_of(Leader, "a Leader", "build one with leader_from_functions").note(faults, "leader", leader)
    x, y = _smooth_point(faults, "x", x), _smooth_point(faults, "y", y)
    faults.raise_if_any()
    by_hand = leader.all_function
    if isinstance(by_hand, _Compared):  # what is wrong is to be reported, not raised
        leader = replace(leader, all_function=by_hand.by_hand)
    at = leader(x, y)
    wrong: list[WrongEntry] = []
    worst = 0.0
    for name, gradient, which in (("grad_x", at.grad_x, 0), ("grad_y", at.grad_y, 1)):
        typical = float(np.sqrt(np.mean(gradient**2))) if gradient.size else 0.0
        for entry in np.unique(np.linspace(0, gradient.size - 1, min(entries, gradient.size)).astype(int)):
            measured = _central_difference(leader, (x, y), which, int(entry))
            scale = max(abs(measured), abs(gradient[entry]), typical, 1e-6 * max(1.0, abs(at.value)))
            error = abs(measured - gradient[entry]) / scale
            worst = max(worst, error)
            if error > tolerance:
                wrong.append(WrongEntry(name, int(entry), float(gradient[entry]), measured))
    return LeaderReport(worst, tolerance, tuple(wrong))


def _smooth_point(faults: Faults, name: str, value: npt.ArrayLike) -> Vector:
    try:
        vector = np.atleast_1d(float_array(value))
    except (TypeError, ValueError):
        vector = np.full(1, np.nan)
    ok = vector.ndim == 1 and vector.size > 0 and bool(np.isfinite(vector).all())
    faults.check(ok, name, value, "a vector of finite numbers", "give a point where f is smooth")
    return vector


def _central_difference(leader: Leader, point: tuple[Vector, Vector], which: int, entry: int) -> float:
    """Fourth-order central difference of f in one entry: exact to about 1e-10 for a smooth cost."""
    step = 1e-3 * max(1.0, abs(float(point[which][entry])))

    def value(offset: float) -> float:
        moved = [point[0].copy(), point[1].copy()]
        moved[which][entry] += offset
        return leader.value(moved[0], moved[1])

    near = value(step) - value(-step)
    far = value(2 * step) - value(-2 * step)
    return (8.0 * near - far) / (12.0 * step)
