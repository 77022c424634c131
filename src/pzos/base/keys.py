"""Random numbers by address: the only file of the package that touches ``numpy.random``.

A draw is a pure function of (seed, role, step, index, attempt), through the counter-based generator Philox: the key
holds the seed and the role, the upper words of the counter hold step, index and attempt. Nothing is consumed, so there
is nothing to save or restore; asking twice gives the same numbers, a larger batch extends the smaller one, and
PZOS and ZOS with the same seed run on the same directions.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import IntEnum
from math import sqrt

import numpy as np
from numpy.random import Generator, Philox

from pzos.base.checks import check_fields, checked, set_fields, whole
from pzos.base.types import Matrix, Vector, dot

#: What a seed must be: it fills one word of the generator's key.
A_SEED = whole(0, "try seed=0", most=2**64 - 1, expected="a whole number from 0 to 2**64 - 1")


class Role(IntEnum):
    """What a random number is for. Numbers are part of the file format: never reuse or renumber one."""

    DIRECTION = 1
    OUTPUT = 2
    NOISE = 3
    INSTANCE = 4
    BASIS = 5
    CERTIFICATE = 6
    REGION = 7
    PROBE = 8


class _Reused(threading.local):
    """One generator per thread whose state is set before each use: making a new one costs ten times more."""

    def __init__(self) -> None:
        self.philox = Philox(key=0)
        self.generator = Generator(self.philox)
        self.counter = np.zeros(4, dtype=np.uint64)
        self.key = np.zeros(2, dtype=np.uint64)
        self.keyed = (0, 0)
        self.state = self.philox.state
        self.state["state"] = {"counter": self.counter, "key": self.key}
        self.state["buffer_pos"] = 4  # the buffer is empty: the next draw starts at the counter


_reused = _Reused()


@dataclass(frozen=True, slots=True)
class Keys:
    """The random numbers of one run.

    >>> bool((Keys(0).direction(3, 0, 5) == Keys(0).direction(3, 0, 5)).all())
    True
    """

    seed: int = checked(A_SEED, default=0)

    def __post_init__(self) -> None:
        check_fields(self)
        set_fields(self, seed=int(self.seed))

    def generator(self, role: Role, step: int = 0, index: int = 0, attempt: int = 0) -> Generator:
        """Return a generator of its own for this address, free to be consumed.

        ``attempt`` counts how often the same thing has failed before: with the same numbers it would fail again.
        """
        key = np.array([self.seed, int(role)], dtype=np.uint64)
        counter = np.array([0, attempt, index, step], dtype=np.uint64)
        return Generator(Philox(key=key, counter=counter))

    def _at(self, role: Role, step: int, index: int) -> Generator:
        reused = _reused
        reused.counter[2] = index
        reused.counter[3] = step
        if (self.seed, role) != reused.keyed:
            reused.key[:] = reused.keyed = (self.seed, role)
        reused.philox.state = reused.state
        return reused.generator

    def direction(self, step: int, index: int, dimension: int, role: Role = Role.DIRECTION) -> Vector:
        """Return v_{step, index}, uniform on the unit sphere of R^dimension.

        A normal vector divided by its norm is uniform on the sphere; the norm is zero with probability zero.
        """
        v: Vector = self._at(role, step, index).standard_normal(dimension)
        v /= sqrt(dot(v, v))
        return v

    def basis(self, step: int, dimension: int, role: Role = Role.BASIS) -> Matrix:
        """Return a uniformly distributed orthonormal basis of R^dimension, one direction per row."""
        q, r = np.linalg.qr(self._at(role, step, 0).standard_normal((dimension, dimension)))
        basis: Matrix = np.ascontiguousarray((q * np.sign(np.diagonal(r))).T)
        return basis

    def uniform(self, role: Role, step: int, index: int = 0) -> float:
        """Return a number uniform on [0, 1)."""
        return float(self._at(role, step, index).random())
