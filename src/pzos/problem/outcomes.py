"""Outcome constraints: what the leader wants to hold of the followers' answer, known functions with g(x, y) <= 0.

Like the cost, g is known and smooth, with exact derivatives in both arguments; only y*(x) has to be asked for. A
constraint of the kind g = 0 is kept as two sides, -tolerance <= g <= tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, frozen_bounds, frozen_indices, number, positive, shown
from pzos.base.errors import InvalidLeader
from pzos.base.types import FLOAT64, Matrix, Vector, all_finite
from pzos.problem.leader import Leader, OneFunction, cost_function

#: (x, y, weights) -> (sum_k w_k dg_k/dx, sum_k w_k dg_k/dy)
PullFunction = Callable[[Vector, Vector, Vector], tuple[Any, Any]]
#: The same for every row of a matrix of weights.
PullsFunction = Callable[[Vector, Vector, Matrix], tuple[Any, Any]]
#: The scale of a constraint is the span of so many first answers: later ones may have looked far away.
SPANNED = 12
#: With what probability a trial point may violate a constraint.
RISK = number(lambda risk: 0.0 < risk <= 0.5, "a probability above 0, up to 0.5", "try risk=0.05")


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Constraints g_k(x, y) <= 0, each with a name, behind one door that checks what comes back.

    Build them with :func:`outcomes_from_functions`, :func:`pzos.outcomes_from_jax`, :func:`pzos.outcomes_from_torch` or
    :func:`caps`.
    """

    value_function: OneFunction
    pull_function: PullFunction
    names: tuple[str, ...]
    pulls_function: PullsFunction | None = None

    def __len__(self) -> int:
        return len(self.names)

    def values(self, x: Vector, y: Vector) -> Vector:
        """Return g(x, y), one number per name; 0 or less where a constraint holds."""
        returned = self.value_function(x, y)
        array = np.atleast_1d(np.asarray(returned))
        if array.dtype != FLOAT64 or array.shape != (len(self),):
            raise InvalidLeader(
                f"outcomes: g(x, y) = {shown(returned)} (shape {array.shape}, dtype {array.dtype}): expected "
                f"{len(self)} float64 numbers, one per name ({', '.join(self.names)}); return as many"
            )
        if not all_finite(array):
            entry = int(np.nonzero(~np.isfinite(array))[0][0])
            raise InvalidLeader(
                f"outcomes: {self.names[entry]!r} is {array[entry]}: expected a finite number; "
                "repair the constraint there"
            )
        return array

    def pull(self, x: Vector, y: Vector, weights: Vector) -> tuple[Vector, Vector]:
        """Return the gradients of weights . g with respect to x and to y."""
        grad_x, grad_y = self.pull_function(x, y, weights)
        return _checked(grad_x, "x", x.shape), _checked(grad_y, "y", y.shape)

    def pulls(self, x: Vector, y: Vector, weights: Matrix) -> tuple[Matrix, Matrix]:
        """Return the gradients of weights . g for every row of weights, one row each."""
        if self.pulls_function is None:
            pulled = [self.pull(x, y, row) for row in weights]
            grads = ([grad[side] for grad in pulled] for side in (0, 1))
            grad_x, grad_y = (np.array(grad).reshape(len(weights), -1) for grad in grads)
            return grad_x, grad_y
        grad_x, grad_y = self.pulls_function(x, y, weights)
        return _checked(grad_x, "x", (len(weights), x.size)), _checked(grad_y, "y", (len(weights), y.size))

    def leader_of(self, weights: npt.ArrayLike) -> Leader:
        """Return weights . g as a cost, for example to have its gradients checked by :func:`pzos.check_leader`."""
        w = np.array(np.broadcast_to(np.asarray(weights, dtype=np.float64), (len(self),)))

        def everything(x: Vector, y: Vector) -> tuple[float, Vector, Vector]:
            return float(w @ self.values(x, y)), *self.pull(x, y, w)

        return Leader(lambda x, y: float(w @ self.values(x, y)), everything, "weighted outcomes")


def _checked(gradient: Any, which: str, shape: tuple[int, ...]) -> Matrix:
    array = np.asarray(gradient)
    if array.dtype != FLOAT64 or array.shape != shape or not all_finite(array.ravel()):
        raise InvalidLeader(
            f"outcomes: the product of weights with dg/d{which} is {shown(gradient)} (shape {array.shape}, dtype "
            f"{array.dtype}): expected shape {shape}, float64 and finite; return (weights . dg/dx, weights . dg/dy)"
        )
    return array


def outcomes_from_functions(
    value: OneFunction,
    pull: PullFunction,
    *,
    names: str | Iterable[str],
    equal: Mapping[str, float] | None = None,
) -> Outcomes:
    """Build constraints g(x, y) <= 0 from hand-written functions.

    ``value(x, y)`` returns one number per name; ``pull(x, y, w)`` returns the products w . dg/dx and w . dg/dy, as long
    as x and as y. ``equal`` names the entries that must be zero, each with the tolerance that is allowed.

    >>> import numpy as np
    >>> cap = outcomes_from_functions(lambda x, y: y - 3.0, lambda x, y, w: (0 * x, w), names=["north", "south"])
    >>> cap.values(np.zeros(1), np.array([1.0, 4.0]))
    array([-2.,  1.])
    """
    where = "outcomes_from_functions"
    return two_sided(where, made(where, value, pull, names), equal)


def caps(
    upper: npt.ArrayLike,
    entries: npt.ArrayLike | None = None,
    *,
    lower: npt.ArrayLike | None = None,
    names: Iterable[str] | None = None,
) -> Outcomes:
    """Keep entries of the answer at or below ``upper`` and, if given, at or above ``lower``; infinity is no bound.

    ``entries`` are numbers of entries of y (by default the first ones, as many as there are bounds).

    >>> caps([2.0, 5.0], [0, 3]).names
    ('y[0] <= 2', 'y[3] <= 5')
    """
    low, high = frozen_bounds("caps", -np.inf if lower is None else lower, upper)
    faults = Faults("caps")
    wanted = np.arange(max(low.size, high.size)) if entries is None else entries
    places = frozen_indices(faults, "entries", wanted)
    faults.raise_if_any()
    places = np.zeros(0, dtype=np.int64) if places is None else places
    faults.check(bool((places >= 0).all()), "entries", entries, "numbers from 0 up", "count from the front")
    for name, side in (("upper", high), ("lower", low)):
        faults.check(side.ndim == 0 or side.size == places.size, name, side, f"one number, or {places.size}",
                     "one per entry")  # fmt: skip
    said = [f"y[{entry}]" for entry in places] if names is None else list(names)
    faults.check(len(said) == places.size, "names", said, f"{places.size} names", "one per entry")
    faults.raise_if_any()
    high, low = np.broadcast_to(high, places.shape), np.broadcast_to(low, places.shape)
    above, below = np.nonzero(np.isfinite(high))[0], np.nonzero(np.isfinite(low))[0]
    titles = [f"{said[i]} <= {high[i]:g}" for i in above] + [f"{said[i]} >= {low[i]:g}" for i in below]
    at = places[np.concatenate([above, below])]
    signs = np.concatenate([np.ones(above.size), -np.ones(below.size)])
    limits = np.concatenate([high[above], -low[below]])

    def value(x: Vector, y: Vector) -> Vector:
        return np.asarray(signs * y[at] - limits)

    def pulls(x: Vector, y: Vector, weights: Matrix) -> tuple[Matrix, Matrix]:
        grad = np.zeros((len(weights), y.size))
        for row, weight in zip(grad, weights, strict=True):
            np.add.at(row, at, signs * weight)
        return np.zeros((len(weights), x.size)), grad

    def pull(x: Vector, y: Vector, weights: Vector) -> tuple[Vector, Vector]:
        grad_x, grad_y = pulls(x, y, weights[None])
        return grad_x[0], grad_y[0]

    return made("caps", value, pull, titles, pulls)


def joined(parts: Iterable[Outcomes]) -> Outcomes:
    """Return several sets of constraints as one."""
    parts = tuple(parts)
    ends = np.cumsum([0, *(len(part) for part in parts)])

    def value(x: Vector, y: Vector) -> Vector:
        return np.concatenate([part.values(x, y) for part in parts])

    def pull(x: Vector, y: Vector, weights: Vector) -> tuple[Vector, Vector]:
        pulled = [part.pull(x, y, weights[a:b]) for part, a, b in zip(parts, ends[:-1], ends[1:], strict=True)]
        return sum((g for g, _ in pulled), np.zeros(x.size)), sum((g for _, g in pulled), np.zeros(y.size))

    return made("outcomes", value, pull, [name for part in parts for name in part.names])


def made(
    where: str, value: OneFunction, pull: PullFunction, names: str | Iterable[str], pulls: PullsFunction | None = None
) -> Outcomes:
    """Return the constraints, once functions and names are checked."""
    faults = Faults(where)
    cost_function("pass the function itself").note(faults, "value", value)
    faults.check(callable(pull), "pull", pull, "a function of (x, y, weights)", "return both products")
    titles = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else ()
    named = bool(titles) and all(isinstance(name, str) and name for name in titles)
    faults.check(named and len(set(titles)) == len(titles), "names", names, "a name of its own for each constraint",
                 'try names=["loss", "flow"]')  # fmt: skip
    faults.raise_if_any()
    return Outcomes(value, pull, titles, pulls)


def two_sided(where: str, base: Outcomes, equal: Mapping[str, float] | None) -> Outcomes:
    """Return the constraints with those named in ``equal`` as two sides: g <= tolerance and -g <= tolerance."""
    if not equal:
        return base
    faults = Faults(where)
    for name, tolerance in equal.items():
        faults.check(name in base.names, "equal", name, f"names out of {list(base.names)}", "check the spelling")
        positive("how far from zero is near enough?").note(faults, f"equal[{name!r}]", tolerance)
    faults.raise_if_any()
    below = [entry for entry, name in enumerate(base.names) if name in equal]
    entries = np.concatenate([np.arange(len(base)), np.array(below)])
    signs = np.repeat([1.0, -1.0], [len(base), len(below)])
    allowed = np.array([float(equal.get(base.names[entry], 0.0)) for entry in entries])

    def own(weights: Matrix) -> Matrix:
        return np.array([np.bincount(entries, signs * row, len(base)) for row in weights])

    def value(x: Vector, y: Vector) -> Vector:
        return np.asarray(signs * base.values(x, y)[entries] - allowed)

    def pull(x: Vector, y: Vector, weights: Vector) -> tuple[Vector, Vector]:
        return base.pull(x, y, own(weights[None])[0])

    def pulls(x: Vector, y: Vector, weights: Matrix) -> tuple[Matrix, Matrix]:
        return base.pulls(x, y, own(weights))

    upper = [f"{name} (above)" if name in equal else name for name in base.names]
    return made(where, value, pull, [*upper, *(f"{base.names[entry]} (below)" for entry in below)], pulls)


def as_outcomes(faults: Faults, outcomes: Any) -> Outcomes | None:
    """Return constraints given as one :class:`Outcomes` or several; None where there are none."""
    if outcomes is None or isinstance(outcomes, Outcomes):
        return outcomes
    parts = list(outcomes) if isinstance(outcomes, Iterable) else [outcomes]
    if not faults.check(all(isinstance(part, Outcomes) for part in parts), "outcomes", outcomes,
                        "pzos.Outcomes, or a list of them", "build them with pzos.outcomes_from_jax(g)"):  # fmt: skip
        return None
    return faults.made(joined, parts) if parts else None
