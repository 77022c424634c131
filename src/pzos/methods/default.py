"""The default: which method ``pzos.solve(problem)`` uses when none is named, and why, in words.

The composite trust region needed the fewest queries of our methods on the games measured (``benchmarks/queries.py``, an
earlier version of it); ``docs/failures.md`` says where peers are ahead (``benchmarks/unseen.py``).
What is left to choose is how much it remembers; scale, structure, noise, jumps and wrong answers it finds out for
itself.
"""

from __future__ import annotations

from dataclasses import replace

from pzos.base.checks import Faults, counted
from pzos.methods.penalty import PENALISED, ExactPenalty
from pzos.methods.solver import AnySolver, Constrained
from pzos.methods.trust_region.constrained import ConstrainedTrustRegion
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.problem.problem import Known
from pzos.problem.structure import Bounded, Conserved, OwnEffect, declared

#: Numbers the model may hold for its points alone; 16 million are 128 MB.
_MEMORY = 16_000_000
_MOST_POINTS = 400
_FEWEST_POINTS = 20
_NAMES = {OwnEffect: "own effects", Conserved: "a conservation law", Bounded: "bounds of the answers"}


def choose(known: Known, budget: int | None = None, risk: float = 0.05, batch: int = 1) -> tuple[AnySolver, str]:
    """Return a configured solver for the known part of a problem, with the reasons in words."""
    n = known.dimension
    declared(known.structure)
    points = None
    if n * _MOST_POINTS > _MEMORY:
        points = max(_MEMORY // n, _FEWEST_POINTS)
    kept = points if points is not None else min(max(2 * n, 100), _MOST_POINTS)
    names = [_NAMES[type(item)] for item in known.structure]
    facts = f"declared: {' and '.join(names)}, dropped if the answers contradict" if names else "nothing declared"
    spend = "" if budget is None else f", at most {counted(budget, 'query')}"
    asked = "one query" if batch == 1 else f"{batch} queries"
    explanation = (
        f"composite trust region, {asked} per step: f is known, so it is minimised on a model of the response that "
        f"remembers up to {kept} answers; {counted(n, 'decision')}{spend}; {facts}; the scale of x, structure, noise "
        "and jumps in the answers are found out on the way. It has no guarantee of its own: a certificate "
        "(result.certificate), from fresh queries, says how good its point is"
    )
    if known.outcomes is not None:
        explanation += (
            f". {counted(len(known.outcomes), 'constraint')} on outcomes, known like f: trial points keep them with a "
            f"margin for a risk of {risk:g} each, as far as the model knows"
        )
    return suited(known, CompositeTrustRegion(batch=batch, points=points), risk), explanation


def suited(known: Known, solver: AnySolver, risk: float = 0.05) -> AnySolver:
    """Return the solver as it takes the constraints on outcomes of a problem: itself where there are none."""
    if known.outcomes is None or isinstance(solver, Constrained):
        return solver
    if isinstance(solver, CompositeTrustRegion):
        return ConstrainedTrustRegion(solver, risk)
    return ExactPenalty(solver) if isinstance(solver, PENALISED) else solver


def ending_at(where: str, solver: AnySolver, xtol: float | None, ftol: float | None) -> AnySolver:
    """Return the solver with tolerances at which it ends; InvalidInput if it knows none."""
    if xtol is None and ftol is None:
        return solver
    if isinstance(solver, ConstrainedTrustRegion):
        return replace(solver, within=replace(solver.within, xtol=xtol, ftol=ftol))
    if isinstance(solver, CompositeTrustRegion):
        return replace(solver, xtol=xtol, ftol=ftol)
    faults = Faults(where)
    for name, value in (("xtol", xtol), ("ftol", ftol)):
        remedy = f"leave {name} out, or take the default method"
        faults.check(value is None, name, value, f"none, which {type(solver).__name__} does not know", remedy)
    raise faults.error()
