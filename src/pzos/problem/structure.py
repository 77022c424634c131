"""What a user may declare about the followers: frozen values for ``Problem(structure=[...])``.

Each is a prior, never a constraint: the composite trust region lets the declared structure compete with none on
predicting the followers' next answers, so a wrong declaration costs queries but does not break a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, Must, frozen_array, frozen_bounds, shown
from pzos.base.types import Matrix, Vector


@dataclass(frozen=True, slots=True)
class OwnEffect:
    """Decision i acts first of all on answer i (needs d_x = d_y): the Jacobian is near a diagonal matrix."""


@dataclass(frozen=True, slots=True, eq=False)
class Conserved:
    """The answers keep A y constant; ``a`` None stands for A = (1, ..., 1), a constant total.

    ``b`` is the constant itself where it is known. The model does not need it, because it always passes through
    an answer that was seen; it is kept for checks.
    """

    a: Matrix | None = None
    b: Vector | None = None

    def laws(self, size: int) -> Matrix:
        """Return A for answers of this size."""
        return np.ones((1, size)) if self.a is None else self.a


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """Every answer lies between ``lower`` and ``upper`` (numbers or one per entry of y)."""

    lower: Vector
    upper: Vector


Structure = OwnEffect | Conserved | Bounded


def own_effect() -> OwnEffect:
    """Declare that decision i acts mainly on answer i.

    >>> own_effect()
    OwnEffect()
    """
    return OwnEffect()


def conserved(A: npt.ArrayLike | None = None, b: npt.ArrayLike | None = None) -> Conserved:
    """Declare that A y = b whatever the leader does; by default that the sum of y is constant.

    >>> conserved().laws(3)
    array([[1., 1., 1.]])
    """
    faults = Faults("conserved")
    laws = None if A is None else frozen_array(faults, "A", A)
    constants = None if b is None else frozen_array(faults, "b", b)
    faults.raise_if_any()
    if laws is not None:
        laws = np.atleast_2d(laws)
        matrix = faults.check(laws.ndim == 2, "A", A, "a matrix, one law per row", "give one row per conserved sum")
        finite = faults.check(bool(np.isfinite(laws).all()), "A", A, "finite numbers", "remove NaN and infinity")
        if matrix and finite:
            independent = bool(np.linalg.matrix_rank(laws) == laws.shape[0])
            faults.check(independent, "A", A, "independent rows", "drop laws that follow from the others")
    if constants is not None:
        constants = np.atleast_1d(constants)
        rows = 1 if laws is None else laws.shape[0]
        faults.check(constants.shape == (rows,), "b", b, f"{rows} numbers, one per law", "match the rows of A")
    faults.raise_if_any()
    return Conserved(laws, constants)


def answers_between(lower: npt.ArrayLike, upper: npt.ArrayLike) -> Bounded:
    """Declare lower <= y <= upper; each bound is a number or one per entry, infinite if open."""
    return Bounded(*frozen_bounds("answers_between", lower, upper))


def answers_nonnegative() -> Bounded:
    """Declare that no answer is below zero; answers at zero are then read as censored.

    >>> float(answers_nonnegative().lower)
    0.0
    """
    return answers_between(0.0, np.inf)


#: The old names, which sound like the sets :class:`pzos.Box` and :class:`pzos.Nonnegative` but are about answers.
box = answers_between
nonnegative = answers_nonnegative


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """The declarations of a problem, sorted out."""

    own_effect: bool = False
    conserved: Conserved | None = None
    bounds: Bounded | None = None


A_DECLARATION = Must(
    lambda item: isinstance(item, Structure),
    "declarations",
    "use pzos.own_effect(), conserved(), answers_nonnegative() or answers_between()",
)


def declared(structure: Iterable[Any]) -> Declared:
    """Sort out ``Problem.structure``; complain about what is no declaration, and about one given twice."""
    faults = Faults("structure")
    found: dict[type, Any] = {}
    for item in structure:
        if A_DECLARATION.note(faults, "structure", item):
            if type(item) in found:
                faults.add(f"structure: {shown(item)} is declared twice; give each kind once")
            found[type(item)] = item
    faults.raise_if_any()
    return Declared(OwnEffect in found, found.get(Conserved), found.get(Bounded))
