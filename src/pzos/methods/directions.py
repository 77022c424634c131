"""Where to probe: rules that draw the directions v_1, ..., v_Q of a step, by address.

Every direction of every rule is uniform on the unit sphere, hence E[d v v'] = I. What differs is what it depends on,
and that decides what an estimator built on it may claim:

=====================  ========================================  ==============================================
rule                   a direction depends on                    the estimate E[g | past] is unbiased
=====================  ========================================  ==============================================
:class:`Independent`   nothing else                              at every step (the theorem's setting)
:class:`Orthogonal`    the other directions of its own step      at every step, with a smaller second moment
:class:`Cycled`        the directions used since the last basis  over a whole basis at one x, not at single steps
=====================  ========================================  ==============================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from pzos.base.checks import Faults
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Vector
from pzos.methods.estimators import sphere_directions

#: How many numbers a cycled basis may hold by default; beyond, it is cut to fewer directions (32 MB).
BASIS_ENTRIES = 4_000_000


@runtime_checkable
class Directions(Protocol):
    """A rule that gives the directions of a step as a pure function of (seed, step, count, dimension)."""

    def __call__(self, keys: Keys, step: int, count: int, dimension: int) -> tuple[Vector, ...]:
        """Return ``count`` unit vectors of R^dimension for step ``step``."""
        ...


@dataclass(frozen=True, slots=True)
class Independent:
    """Independent directions, the paper's v_t ~ U(S^{d-1}) (Alg. PZOS): unbiased given the past at every step."""

    def __call__(self, keys: Keys, step: int, count: int, dimension: int) -> tuple[Vector, ...]:
        """Return the directions that PZOS and ZOS with the same seed use."""
        return sphere_directions(keys, step, count, dimension)


@dataclass(frozen=True, slots=True)
class Orthogonal:
    """Directions orthogonal to each other within a step, independent of all other steps.

    Each is uniform on the sphere and independent of the past, so every estimate of the family stays unbiased at
    every step. Its second moment shrinks: with Q = d the projections add up to the identity and the noise that
    independent directions leave is gone. Beyond d directions a further independent basis begins.
    """

    def __call__(self, keys: Keys, step: int, count: int, dimension: int) -> tuple[Vector, ...]:
        """Return the step's independent directions, made orthogonal in order (the first is unchanged)."""
        drawn = sphere_directions(keys, step, count, dimension)
        blocks = [np.array(drawn[at : at + dimension]) for at in range(0, count, dimension)]
        return tuple(row for block in blocks for row in orthonormal_rows(block))


@dataclass(frozen=True, slots=True)
class Cycled:
    """Directions taken one after the other from a random orthonormal basis, renewed when it is used up.

    Marginally uniform, but not independent of the past: the last direction of a basis is known once the others
    are. The unbiased claim therefore holds for the average over a whole basis at one x, not for single steps,
    and the paper's theorem does not cover it. In exchange a memory sees every direction once per d probes.

    ``length`` is the number of directions per basis: d by default, less where d^2 numbers would be too many.
    """

    length: int | None = None

    def __post_init__(self) -> None:
        faults = Faults("Cycled")
        whole = self.length is None or (isinstance(self.length, int | np.integer) and self.length >= 1)
        faults.check(whole, "length", self.length, "a whole number, 1 or more", "or None for a full basis")
        faults.raise_if_any()

    def __call__(self, keys: Keys, step: int, count: int, dimension: int) -> tuple[Vector, ...]:
        """Return directions number step * count, ..., step * count + count - 1 of the endless list of bases."""
        length = min(dimension, self.length or max(1, BASIS_ENTRIES // dimension))
        numbers = range(step * count, (step + 1) * count)
        return tuple(_frame(keys, number // length, length, dimension)[number % length] for number in numbers)


@lru_cache(maxsize=2)
def _frame(keys: Keys, number: int, length: int, dimension: int) -> Matrix:
    """Return a random orthonormal frame; remembered because a run asks for its rows one at a time."""
    drawn = [keys.direction(number, index, dimension, Role.BASIS) for index in range(length)]
    frame = orthonormal_rows(np.array(drawn))
    frame.flags.writeable = False
    return frame


def orthonormal_rows(rows: Matrix) -> Matrix:
    """Return the rows made orthonormal in order, by Gram-Schmidt done twice (orthogonal to rounding).

    ``einsum`` instead of LAPACK: the bits do not depend on the number of BLAS threads, and more rows extend
    fewer. Uniform independent rows give a uniformly distributed frame.
    """
    frame = np.empty_like(rows)
    for at, row in enumerate(rows):
        done = frame[:at]
        for _ in range(2):
            row = row - np.einsum("ij,i->j", done, np.einsum("ij,j->i", done, row))
            row /= np.sqrt(np.einsum("i,i->", row, row))
        frame[at] = row
    return frame
