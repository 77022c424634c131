"""How a budget of queries is split: what the method may spend, and what is kept for the certificate of its point."""

from __future__ import annotations

from typing import Any, NamedTuple

from pzos.base.checks import Faults, is_whole, whole
from pzos.methods.solver import AnySolver, Certifiable, Stop
from pzos.problem.problem import Known
from pzos.stationarity.bounds import FEWEST_QUERIES
from pzos.study.result import Result

#: One part in so many is kept for the certificate, and none of a budget smaller than so many times what it needs.
_SHARE, _SMALL = 10, 4
#: Ends after which there is time, and a point worth certifying.
_CERTIFIED_ENDS = (Stop.STEPS, Stop.QUERIES, Stop.TARGET, Stop.CONVERGED)


class Purse(NamedTuple):
    """What the ``method`` may spend, and so many queries for the certificate: of the ``budget``, or on top (None)."""

    method: int | None
    certificate: int
    fewest: int = 0
    budget: int | None = None

    def require_able(self, solver: AnySolver) -> None:
        """Raise InvalidInput if a certificate is wanted of a solver that does not know on which scale."""
        faults = Faults("solve")
        able = not self.certificate or isinstance(solver, Certifiable)
        faults.check(
            able, "certificate", True, "the default solver", "call result.certify(problem, delta=...) or pzos certify"
        )
        faults.raise_if_any()

    def left_for_certificate(self, result: Result) -> tuple[int, str]:
        """Return how many queries the certificate of a result may have; 0 for none, and why."""
        if not self.certificate:
            return 0, ""
        if result.stop not in _CERTIFIED_ENDS:
            return 0, f"none: {result.message}"
        if self.budget is None:
            return self.certificate, ""
        left = self.budget - result.nfev
        if left >= self.fewest:
            return min(self.certificate, left), ""
        return 0, (
            f"none: it takes {self.fewest} queries, and of {self.budget} there are {max(left, 0)} left; give "
            f"{_SMALL * self.fewest} or more, or ask for one on top (certificate=True, --certificate {self.fewest})"
        )


def purse_of(known: Known, queries: Any, certificate: bool | int | None) -> Purse:
    """Return how ``queries`` are split; ``certificate`` None keeps a part of them, True or a number comes on top.

    >>> from pzos.testing import small_problem
    >>> purse_of(small_problem().known(), 500, None)[:2], purse_of(small_problem().known(), 60, None)[:2]
    ((450, 50), (60, 33))
    """
    if certificate is False:
        return Purse(queries, 0)
    if certificate is not None and certificate is not True:
        whole(FEWEST_QUERIES, "or True or False").require("solve", "certificate", certificate)
        return Purse(queries, int(certificate))
    if certificate is True or not is_whole(queries, 1):  # without a budget, or with one that the study refuses
        return Purse(queries, FEWEST_QUERIES)
    gridded = known.grid is not None
    fewest = min(FEWEST_QUERIES, 2 * known.dimension + 1) if gridded else FEWEST_QUERIES
    share = max(fewest, int(queries) // _SHARE)
    method = int(queries) - share if queries >= _SMALL * fewest else int(queries)
    return Purse(method, share, fewest, int(queries))
