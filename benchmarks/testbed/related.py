"""Methods of the related work on the test bed: each with its paper's schedule, tuned on a grid of twelve candidates.

Where a method leaves the step free, the grid is that of PZOS and ZOS: six sizes, constant or diminishing, at the
paper's radius. Where its schedule is its own, two values of another setting stand for the latter. The white-box line
BIG Hype knows the followers' Jacobian, which no solver of the package may.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from pzos.base.errors import PzosError
from pzos.methods.related import (
    GFM,
    PZOBO,
    SPSA,
    ZSOL,
    FlaxmanOnePoint,
    FollowerAgnostic,
    FrankWolfeZO,
    GFMPlus,
    GradientMappingZO,
    GuidedZO,
    KornowskiShamir,
    NesterovSpokoiny,
    TwoPhaseGFM,
    VarianceReducedZSOL,
    ZOStackelberg,
)
from pzos.methods.solver import AnySolver
from pzos.methods.steps import Power
from pzos.problem.problem import Problem
from testbed.cases import Case, Counter, Spent, Unsuited
from testbed.tuning import SIZES, Grid, Setting, run_solver, same, tuned, tuning_cases

Method = Callable[[Case, int, int], list[float]]
#: Runs of 2-GFM, and the share of the budget that judges them.
_ROUNDS, _JUDGING = 3, 0.2
#: A one-point estimate is as large as F itself: its steps are this much smaller.
_ONE_POINT = 1e-3
#: A guided direction has length one, and E[u u'] is smaller than I: its steps are this much longer.
_GUIDED = 10.0


class Row(NamedTuple):
    """The grid of a method, and what it does to a case first."""

    grid: Grid
    ready: Callable[[Case], Case] = same


def by_frank_wolfe(case: Case) -> Case:
    """Return the case with followers who answer by a Frank-Wolfe run; its values stay those of the exact ones."""
    if case.frank_wolfe is None:
        raise Unsuited(f"zo-stackelberg: {case.family}: expected a game with a model; leave this method out")
    old = case.problem
    return replace(case, problem=Problem(old.leader, case.frank_wolfe, old.x0, old.domain, old.sense, old.name))


def _plain(kind: Callable[..., AnySolver]) -> Row:
    return Row(lambda s: [kind(step=step, radius=s.radius) for step in s.steps])


def _gaussian(kind: Callable[..., AnySolver]) -> Row:
    """Probe as far as on the sphere: a normal vector is sqrt(d) long."""
    return Row(lambda s: [kind(step=step, radius=s.radius / s.dimension**0.5) for step in s.steps])


def _guided(s: Setting) -> Sequence[AnySolver]:
    """Take longer steps: E[u u'] is p p' at first and I/d in the end, not I."""
    sizes = [_GUIDED * size for size in SIZES]
    return [GuidedZO(size, s.radius, history=history) for size in sizes for history in (False, True)]


def _two_phase(s: Setting) -> Sequence[AnySolver]:
    """Spend the budget on the runs, and a share of it on judging them."""
    steps = max(1, int((1.0 - _JUDGING) * s.queries) // (2 * _ROUNDS))
    judging = max(1, int(_JUDGING * s.queries) // (2 * _ROUNDS))
    return [TwoPhaseGFM(step, s.radius, rounds=_ROUNDS, steps=steps, judging=judging) for step in s.steps]


ROWS: dict[str, Row] = {
    "pzobo": _gaussian(PZOBO),
    "guided": Row(_guided),
    "nesterov-spokoiny": _gaussian(NesterovSpokoiny),
    "zsol": _plain(ZSOL),
    "zsol-vr": _plain(VarianceReducedZSOL),
    "spsa": Row(
        lambda s: [
            SPSA(Power(size, 0.602, offset=0.05 * s.queries), Power(radius, 0.101))
            for size in SIZES
            for radius in (s.radius / s.dimension**0.5, s.radius)  # as far as on the sphere, or in each entry
        ]
    ),
    "flaxman": Row(
        lambda s: [
            FlaxmanOnePoint(Power(_ONE_POINT * size, 0.75), Power(radius, 0.25))
            for size in SIZES
            for radius in (5.0 * s.radius, 20.0 * s.radius)
        ]
    ),
    "follower-agnostic": Row(
        lambda s: [
            FollowerAgnostic(Power(size, 0.5), Power(radius, 0.25))
            for size in SIZES
            for radius in (s.radius, 3.0 * s.radius)
        ]
    ),
    "zo-stackelberg": Row(_plain(ZOStackelberg).grid, by_frank_wolfe),
    "gfm": _plain(GFM),
    "2-gfm": Row(_two_phase),
    "gfm-plus": Row(
        lambda s: [GFMPlus(size, s.radius, batch, large=10 * batch, period=10) for size in SIZES for batch in (1, 2)]
    ),
    "kornowski-shamir": Row(
        lambda s: [
            KornowskiShamir(size, s.radius, length=length)
            for size in SIZES
            for length in (0.02 * s.length, 0.1 * s.length)
        ]
    ),
    "gradient-mapping": _plain(GradientMappingZO),
    "frank-wolfe": Row(
        lambda s: [FrankWolfeZO(size, s.radius, reach=reach) for size in SIZES for reach in (s.length, 3.0 * s.length)]
    ),
}


def run_row(name: str, case: Case, queries: int, seed: int) -> list[float]:
    """Run a related method with the candidate that was best on the tuning instances at this budget."""
    grid, ready = ROWS[name]
    return run_solver(tuned(grid, case.name, case.noise, queries, ready), ready(case), queries, seed)


# ---- a white-box line -----------------------------------------------------------------------------------------------


def big_hype(case: Case, queries: int, seed: int) -> list[float]:
    """Run BIG Hype (key ``grontas2024bighype``) with exact answers and Jacobians, its first step tuned as the others'.

    x_{k+1} = x_k + beta (P_X[x_k - alpha_k grad F(x_k)] - x_k), alpha_k = alpha / (k + 1)^0.51, beta = 1/2 or 1. Their
    inner loop learns y* and its sensitivity to a tolerance; here both are exact, and counted as one query.
    """
    return _hypergradient(case, queries, *_best_gains(case.name, case.noise, queries))


def _hypergradient(case: Case, queries: int, alpha: float, beta: float) -> list[float]:
    gradient = case.white_box
    if gradient is None:
        raise Unsuited(f"big-hype: {case.family}: expected a game with a known Jacobian; leave this method out")
    counter, x, project = Counter(case, queries), case.problem.x0, case.problem.domain.project
    with contextlib.suppress(Spent):
        for k in range(queries):
            counter(x)
            x = x + beta * (project(x - alpha / (k + 1) ** 0.51 * gradient(x)[1]) - x)
    return counter.values


@cache
def _best_gains(name: str, noise: float, queries: int) -> tuple[float, float]:
    """Return the gains with the least mean gap on the tuning instances; steps of an exact gradient may be longer."""
    cases = tuning_cases(name, noise)

    def gap(gains: tuple[float, float]) -> float:
        try:
            runs = [(case, case.true_value(case.problem.x0), _hypergradient(case, queries, *gains)) for case in cases]
        except PzosError:  # a step so long was taken that the followers broke
            return float("inf")
        return float(np.mean([min(case.gap(value, start) for value in found) for case, start, found in runs]))

    return min(((30.0 * size, beta) for size in SIZES for beta in (0.5, 1.0)), key=gap)


#: Related methods and the white-box line of the literature, by name.
RELATED: dict[str, Method] = {**{name: partial(run_row, name) for name in ROWS}, "big-hype": big_hype}
