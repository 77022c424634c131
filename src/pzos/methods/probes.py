"""Probes of the followers' response: along which directions v, at which points, and how the answers are read.

*Directions* v_1, ..., v_Q of a step are drawn by address. Every direction of every rule is uniform on the unit
sphere, hence E[d v v'] = I. What differs is what it depends on, and that decides what an estimator built on it may
claim:

=====================  ========================================  ==============================================
rule                   a direction depends on                    the estimate E[g | past] is unbiased
=====================  ========================================  ==============================================
:class:`Independent`   nothing else                              at every step (the theorem's setting)
:class:`Orthogonal`    the other directions of its own step      at every step, with a smaller second moment
:class:`Cycled`        the directions used since the last basis  over a whole basis at one x, not at single steps
=====================  ========================================  ==============================================

*Differences* plan the points to query along v and read the answers:

=================  ===============================  ========  ===================================================
rule               queries                          number    E[d (dy/run) v'] given x
=================  ===============================  ========  ===================================================
:class:`Central`   x, x + mu v_q, x - mu v_q        2 Q + 1   J y_mu(x): the paper's estimator
:class:`OneSided`  x, x + mu v_q                    Q + 1     J y_mu(x) as well: E[y*(x) v'] = 0
:class:`Midpoint`  x + mu v_q, x - mu v_q           2 Q       J y_mu(x), but the partial gradients are taken at
                                                              (x, mean of the answers): a bias of order mu
=================  ===============================  ========  ===================================================

With ``inside`` the probes are projected onto the domain and differences are divided by the displacement that was
really made. The follower is then never asked outside; near the boundary directions are no longer uniform, so that
the unbiased claim holds only where the ball of radius mu around x lies in the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from pzos.base.checks import check_fields, checked, whole
from pzos.base.keys import Keys, Role
from pzos.base.types import Matrix, Purpose, Vector, dot
from pzos.methods.estimators import Answers, Plan, Probe, answered_pairs, sphere_directions, two_point_plan
from pzos.problem.sets import Domain

#: A projected probe that moved less than this part of the radius tells nothing and is left out.
LEAST_MOVE = 1e-6
#: How many numbers a cycled basis may hold by default; beyond, it is cut to fewer directions (32 MB).
BASIS_ENTRIES = 4_000_000

# ---- directions -----------------------------------------------------------------------------------------------------


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

    length: int | None = checked(whole(1, "or None for a full basis").or_none(), default=None)

    def __post_init__(self) -> None:
        check_fields(self)

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


# ---- differences ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ProbePlan(Plan):
    """Points around x, with the unit vector and the length along which each difference will be taken."""

    x: Vector
    directions: tuple[Vector, ...]
    runs: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What the answers of a step say: a response ``y`` to take gradients at, and the answered differences.

    ``exact`` tells whether ``y`` is y*(x) itself, so that f(x, y) is F(x).
    """

    y: Vector
    exact: bool
    probes: tuple[Probe, ...]


@runtime_checkable
class Differences(Protocol):
    """A rule that plans probes along given directions, and reads their answers."""

    def plan(self, x: Vector, radius: float, directions: Sequence[Vector], domain: Domain) -> ProbePlan:
        """Plan the queries of a step."""
        ...

    def read(self, plan: ProbePlan, answers: Answers) -> Reading | None:
        """Return what the answers say, without the failed ones; None if there is no y to take gradients at."""
        ...


@dataclass(frozen=True, slots=True)
class _Symmetric:
    """What the symmetric rules share: the plan of the paper, moved into the domain with ``inside``."""

    inside: bool = False
    centred: ClassVar[bool]

    def plan(self, x: Vector, radius: float, directions: Sequence[Vector], domain: Domain) -> ProbePlan:
        """Plan x (if centred), x + mu v_1, x - mu v_1, x + mu v_2, ..."""
        plan = two_point_plan(x, radius, directions, centred=self.centred)
        if not self.inside:
            return ProbePlan(plan.points, plan.purposes, x, plan.directions, (2.0 * radius,) * len(directions))
        centre, probes = plan.points[: self.centred], tuple(domain.project(p) for p in plan.points[self.centred :])
        moves = [plus - minus for plus, minus in zip(probes[::2], probes[1::2], strict=True)]
        return ProbePlan(centre + probes, plan.purposes, x, *_displacements(moves, directions, radius))


@dataclass(frozen=True, slots=True)
class Central(_Symmetric):
    """y*(x) and symmetric differences, 2 Q + 1 queries: the plan of Alg. PZOS, unbiased for J y_mu."""

    centred = True

    def read(self, plan: ProbePlan, answers: Answers) -> Reading | None:
        """Return y*(x) and the differences of the pairs of which both answered."""
        if answers[0] is None:
            return None
        return Reading(answers[0], True, _paired_probes(plan, answers[1:]))


@dataclass(frozen=True, slots=True)
class Midpoint(_Symmetric):
    """Symmetric differences without y*(x), 2 Q queries: the mean of the answers stands for it.

    The mean lies within L_y mu of y*(x) (within O(mu^2) where y* is smooth). The partial gradients, and h, then
    depend on v, and the estimate is biased by at most

        L_g L_y mu (1 + |B| + sqrt(d) (L_y + |B|)),   B the remembered Jacobian (0 for PZOS),

    because E|u . v| <= 1/sqrt(d) for every unit vector u. No bias at all where f is linear in y with a
    constant grad_x f. F(x) is not learned; a study monitors it.
    """

    centred = False

    def read(self, plan: ProbePlan, answers: Answers) -> Reading | None:
        """Return the mean of the answered pairs with their differences."""
        sums = [plus + minus for _, plus, minus in answered_pairs(plan.directions, answers)]
        if not sums:
            return None
        return Reading(np.sum(sums, axis=0) / (2 * len(sums)), False, _paired_probes(plan, answers))


@dataclass(frozen=True, slots=True)
class OneSided:
    """y*(x) and one probe per direction, Q + 1 queries; unbiased for J y_mu because y*(x) does not depend on v:

        E[d/mu (y*(x + mu v) - y*(x)) v'] = d/mu E[y*(x + mu v) v'] = J y_mu(x)     (Lemma on J y_mu, App. C)

    What is lost is the second moment: all that holds of one-sided differences is E|H' g|^2 <= d^2 L_y^2 |g|^2, and
    y* = |x| attains it at x = 0, where symmetric ones have at most d^2/(d-1) L_y^2 |g|^2 (docs/theory.md). Where y* is
    smooth the two differ by O(mu). Noise of the followers weighs four times as much in the variance.
    """

    inside: bool = False

    def plan(self, x: Vector, radius: float, directions: Sequence[Vector], domain: Domain) -> ProbePlan:
        """Plan x, x + mu v_1, x + mu v_2, ...; with ``inside`` the side on which there is more room."""
        points = [x + radius * v for v in directions]
        purposes = (Purpose.ITERATE,) + (Purpose.PROBE,) * len(directions)
        if not self.inside:
            return ProbePlan((x, *points), purposes, x, tuple(directions), (radius,) * len(directions))
        sides = [
            (domain.project(point), domain.project(x - radius * v)) for point, v in zip(points, directions, strict=True)
        ]
        points = [max(pair, key=lambda point: _length(point - x)) for pair in sides]
        moves = [point - x for point in points]
        return ProbePlan((x, *points), purposes, x, *_displacements(moves, directions, radius))

    def read(self, plan: ProbePlan, answers: Answers) -> Reading | None:
        """Return y*(x) and the differences to it."""
        centre = answers[0]
        if centre is None:
            return None
        probes = tuple(
            Probe(v, answer - centre, run)
            for v, run, answer in zip(plan.directions, plan.runs, answers[1:], strict=True)
            if answer is not None and run > 0.0
        )
        return Reading(centre, True, probes)


def _displacements(
    moves: Sequence[Vector], directions: Sequence[Vector], radius: float
) -> tuple[tuple[Vector, ...], tuple[float, ...]]:
    """Return the directions and lengths of the moves that were made; length 0 where there was no room to move."""
    lengths = [_length(move) for move in moves]
    runs = tuple(length if length > LEAST_MOVE * radius else 0.0 for length in lengths)
    made = (move / run if run else v for move, run, v in zip(moves, runs, directions, strict=True))
    return tuple(made), runs


def _length(move: Vector) -> float:
    return float(dot(move, move) ** 0.5)


def _paired_probes(plan: ProbePlan, answers: Answers) -> tuple[Probe, ...]:
    moves = zip(plan.directions, plan.runs, strict=True)
    return tuple(Probe(v, plus - minus, run) for (v, run), plus, minus in answered_pairs(moves, answers) if run > 0.0)
