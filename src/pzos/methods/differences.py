"""Finite differences of the followers' response: which points to query along v, and how to read the answers.

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
from typing import Protocol, runtime_checkable

import numpy as np

from pzos.base.types import Purpose, Vector, dot
from pzos.methods.estimators import Answers, Plan, Probe
from pzos.problem.sets import Domain

#: A projected probe that moved less than this part of the radius tells nothing and is left out.
LEAST_MOVE = 1e-6


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
class Central:
    """y*(x) and symmetric differences, 2 Q + 1 queries: the plan of Alg. PZOS, unbiased for J y_mu."""

    inside: bool = False

    def plan(self, x: Vector, radius: float, directions: Sequence[Vector], domain: Domain) -> ProbePlan:
        """Plan x, x + mu v_1, x - mu v_1, x + mu v_2, ..."""
        return _symmetric_plan(x, radius, directions, domain if self.inside else None, centred=True)

    def read(self, plan: ProbePlan, answers: Answers) -> Reading | None:
        """Return y*(x) and the differences of the pairs of which both answered."""
        if answers[0] is None:
            return None
        return Reading(answers[0], True, _paired_probes(plan, answers[1:]))


@dataclass(frozen=True, slots=True)
class Midpoint:
    """Symmetric differences without y*(x), 2 Q queries: the mean of the answers stands for it.

    The mean lies within L_y mu of y*(x) (within O(mu^2) where y* is smooth). The partial gradients, and h, then
    depend on v, and the estimate is biased by at most

        L_g L_y mu (1 + |B| + sqrt(d) (L_y + |B|)),   B the remembered Jacobian (0 for PZOS),

    because E|u . v| <= 1/sqrt(d) for every unit vector u. No bias at all where f is linear in y with a
    constant grad_x f. F(x) is not learned; a study monitors it.
    """

    inside: bool = False

    def plan(self, x: Vector, radius: float, directions: Sequence[Vector], domain: Domain) -> ProbePlan:
        """Plan x + mu v_1, x - mu v_1, x + mu v_2, ..."""
        return _symmetric_plan(x, radius, directions, domain if self.inside else None, centred=False)

    def read(self, plan: ProbePlan, answers: Answers) -> Reading | None:
        """Return the mean of the answered pairs with their differences."""
        sums = [
            plus + minus
            for plus, minus in zip(answers[::2], answers[1::2], strict=True)
            if plus is not None and minus is not None
        ]
        if not sums:
            return None
        return Reading(np.sum(sums, axis=0) / (2 * len(sums)), False, _paired_probes(plan, answers))


@dataclass(frozen=True, slots=True)
class OneSided:
    """y*(x) and one probe per direction, Q + 1 queries; unbiased for J y_mu because y*(x) does not depend on v:

        E[d/mu (y*(x + mu v) - y*(x)) v'] = d/mu E[y*(x + mu v) v'] = J y_mu(x)     (Lemma on J y_mu, App. C)

    The second-moment bound of the symmetric difference holds as well, since |y*(x + mu v) - y*(x)| <= L_y mu.
    What is lost: the curvature of y* no longer cancels in single differences (an error of O(mu) in each, none in
    the mean), and noise of the followers weighs four times as much in the variance.
    """

    inside: bool = False

    def plan(self, x: Vector, radius: float, directions: Sequence[Vector], domain: Domain) -> ProbePlan:
        """Plan x, x + mu v_1, x + mu v_2, ...; with ``inside`` the side on which there is more room."""
        points, moves = [x], []
        for v in directions:
            point = x + radius * v
            if self.inside:
                point = max(domain.project(point), domain.project(x - radius * v), key=lambda p: _length(p - x))
            points.append(point)
            moves.append((v, radius) if not self.inside else _displacement(point - x, v, radius))
        purposes = (Purpose.ITERATE,) + (Purpose.PROBE,) * len(directions)
        return ProbePlan(tuple(points), purposes, x, tuple(v for v, _ in moves), tuple(run for _, run in moves))

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


def _symmetric_plan(
    x: Vector, radius: float, directions: Sequence[Vector], domain: Domain | None, *, centred: bool
) -> ProbePlan:
    points: list[Vector] = [x] if centred else []
    moves = []
    for v in directions:
        offset = radius * v
        plus, minus = x + offset, x - offset
        if domain is not None:
            plus, minus = domain.project(plus), domain.project(minus)
        points += [plus, minus]
        moves.append((v, 2.0 * radius) if domain is None else _displacement(plus - minus, v, radius))
    purposes = (Purpose.ITERATE,) * centred + (Purpose.PROBE,) * (2 * len(directions))
    return ProbePlan(tuple(points), purposes, x, tuple(v for v, _ in moves), tuple(run for _, run in moves))


def _displacement(move: Vector, v: Vector, radius: float) -> tuple[Vector, float]:
    """Return the direction and length of a move; length 0 where there was no room to move."""
    run = _length(move)
    return (move / run, run) if run > LEAST_MOVE * radius else (v, 0.0)


def _length(move: Vector) -> float:
    return float(dot(move, move) ** 0.5)


def _paired_probes(plan: ProbePlan, answers: Answers) -> tuple[Probe, ...]:
    probes = []
    for q, (v, run) in enumerate(zip(plan.directions, plan.runs, strict=True)):
        plus, minus = answers[2 * q], answers[2 * q + 1]
        if plus is not None and minus is not None and run > 0.0:
            probes.append(Probe(v, plus - minus, run))
    return tuple(probes)
