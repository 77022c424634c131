"""What a run gives back: points, trace, why it stopped, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pzos.base.errors import InvalidInput
from pzos.base.types import Sense, Vector
from pzos.methods.solver import Stop
from pzos.study.trace import Trace

if TYPE_CHECKING:
    from pzos.problem.problem import Problem
    from pzos.stationarity.certificate import Certificate


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The outcome of a run. ``print(result)`` shows it as a table.

    ``x`` is the last iterate and ``value`` F there (NaN if it was never queried); ``best_x`` and ``best_value``
    are the best iterate at which F is known; ``random_x`` is the paper's output x^R, R uniform on 0, ..., T-1.
    ``queries`` counts what the algorithm asked, ``monitoring`` what was asked only to watch it, the certificate's
    queries included; ``ledger`` says where all of them went (probes, trial points, failed, answered by a cache, ...).
    ``certificate`` speaks of ``x``: the default method ends with one, and :class:`pzos.StopWhenStationary` gives its
    latest.
    """

    x: Vector
    value: float
    best_x: Vector
    best_value: float
    random_x: Vector
    random_step: int
    trace: Trace
    stop: Stop
    steps: int
    queries: int
    monitoring: int
    failures: int
    seconds: float
    seed: int
    sense: Sense
    problem: str
    solver: str
    explanation: str = ""
    x0: Vector | None = None
    ledger: Mapping[str, int] = field(default_factory=dict)
    certificate: Certificate | None = None

    def rows(self) -> list[tuple[str, str]]:
        """Return what :meth:`__repr__` prints, as (name, text) pairs."""
        goal = "lowest" if self.sense == "min" else "highest"
        rows = [
            ("problem", self.problem or f"unnamed, {self.x.size} decisions"),
            ("solver", self.solver),
            ("stopped", f"{self.stop.name.lower()}: {self.stop.value}"),
            ("F at the last point", _number(self.value)),
            (f"{goal} F seen", _number(self.best_value)),
            ("steps", f"{self.steps}"),
            ("queries", f"{self.queries} by the algorithm, {self.monitoring} to monitor it"),
            ("seconds", f"{self.seconds:.3g}"),
            ("seed", f"{self.seed}"),
        ]
        if self.failures:
            rows.insert(7, ("failed queries", f"{self.failures}"))
        if self.explanation:
            rows.append(("why this method", self.explanation))
        if self.certificate is not None:
            rows.append(("certificate", self.certificate.sentence))
        return rows

    def __repr__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    def to_csv(self, path: str | Path) -> None:
        """Write the trace as CSV."""
        self.trace.to_csv(path)

    def to_dataframe(self) -> Any:
        """Return the trace as a pandas data frame."""
        return self.trace.to_dataframe()

    def certify(self, problem: Problem, *, delta: float, at: str = "last", **settings: Any) -> Certificate:
        """Certify the result's point from fresh queries; see :func:`pzos.stationarity.certify` for ``settings``.

        ``at`` is "last" (``x``), "best" (``best_x``) or "random" (``random_x``, of which the paper's theorem speaks).
        A result does not hold the followers, so the problem is given again.
        """
        from pzos.stationarity.certificate import certify

        points = {"last": self.x, "best": self.best_x, "random": self.random_x}
        if at not in points:
            raise InvalidInput(f"certify: at = {at!r}: expected 'last', 'best' or 'random'; choose the point")
        return certify(problem, points[at], delta=delta, **settings)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw F against queries; returns the matplotlib figure and, with ``path``, writes it there."""
        from pzos.report.drawing import plot_result

        return plot_result(self, path)

    def report(self, path: str | Path, problem: Problem | None = None, certificate: Certificate | None = None) -> Path:
        """Write one self-contained HTML page about this result (extra ``report``) and return where it is.

        With its ``problem`` the page also shows the leader's set and, for road networks, the map; with a
        ``certificate`` (:meth:`certify`) what it says.
        """
        from pzos.report.page import write_report
        from pzos.report.story import story_of

        return write_report([story_of(self, problem=problem, certificate=certificate)], path)


def _number(value: float) -> str:
    return "not known (it was not queried)" if value != value else f"{value:.8g}"
