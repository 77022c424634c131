"""What a run gives back: its trace row by row, where its queries went, which points it remembers, and the result."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import copysign
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pzos.answers.table import Answers
from pzos.base.checks import aligned, counted, instance_of, one_of, positive
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.base.frames import spare_study
from pzos.base.keys import Keys, Role
from pzos.base.types import CACHED_SECONDS, Purpose, Query, Response, Sense, Vector
from pzos.methods.solver import NO_EXTRAS, Outcome, Stop, Task
from pzos.problem.leader import Leader
from pzos.problem.sense import AnySense, as_sense
from pzos.study.collected import Pair, as_table
from pzos.study.display import brief, brief_page, named_x, number, verdict

if TYPE_CHECKING:
    from pzos.methods.expecting import Expectation, Sensitivity
    from pzos.problem.problem import Known, Problem
    from pzos.stationarity.certificate import Certificate
    from pzos.stationarity.neighbours import NeighbourCertificate
    from pzos.study.standing import Standing

#: The columns every trace has; methods may add more (radius, predicted decrease, ...).
COLUMNS = ("step", "queries", "monitoring", "value", "gradient_norm_squared", "step_size", "seconds")

_COUNTS = ("step", "queries", "monitoring")


class Record(NamedTuple):
    """One closed step: where the leader stood and what it cost so far.

    ``queries`` counts the algorithm's queries answered when the step closed, ``monitoring`` those asked only to
    watch. ``value`` is F(x) in the problem's own sense (NaN if unknown).
    """

    step: int
    x: Vector
    queries: int
    monitoring: int
    value: float
    gradient_norm_squared: float
    step_size: float
    seconds: float
    extras: Mapping[str, float] = NO_EXTRAS

    def row(self) -> tuple[float, ...]:
        """Return the values of :data:`COLUMNS`: all but x and the extras."""
        return (self.step, *self[2:-1])


class Trace:
    """Columns by name: ``trace["value"]``; iterate for the names; ``to_csv`` and ``to_dataframe`` write it out.

    >>> trace = Trace()
    >>> trace.append(Record(0, np.zeros(1), 3, 0, 2.5, 1.0, 0.05, 0.0))
    >>> trace["value"]
    array([2.5])
    """

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []
        self._extras: dict[str, dict[int, float]] = {}

    def copy(self) -> Trace:
        """Return a trace of its own, to which later steps are not added."""
        copied = Trace()
        copied._rows = self._rows.copy()
        copied._extras = {name: values.copy() for name, values in self._extras.items()}
        return copied

    def append(self, record: Record) -> None:
        """Add one row."""
        for name, value in record.extras.items() if record.extras else ():
            self._extras.setdefault(name, {})[len(self._rows)] = value
        self._rows.append(record.row())

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the column names, the common ones first."""
        return COLUMNS + tuple(self._extras)

    def keys(self) -> tuple[str, ...]:
        """Return the column names, as a dictionary would."""
        return self.columns

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Trace({len(self)} steps: {', '.join(self.columns)})"

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Vector:
        if name in COLUMNS:
            at = COLUMNS.index(name)
            return np.array([row[at] for row in self._rows], dtype=np.float64)
        if name not in self._extras:
            raise InvalidInput(
                f"Trace: column = {name!r}: expected one of {', '.join(self.columns)}; check the spelling"
            )
        extras = self._extras[name]
        return np.array([extras.get(at, np.nan) for at in range(len(self._rows))], dtype=np.float64)

    def to_csv(self, path: str | Path) -> None:
        """Write the trace as CSV, every number with all its digits (a run can be compared bit for bit)."""
        columns = [self[name] for name in self.columns]
        with spare_study(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows([_exact(value) for value in row] for row in zip(*columns, strict=True))

    def to_dataframe(self) -> Any:
        """Return the trace as a pandas data frame (needs the extra ``dataframe``)."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtra("pandas", "dataframe", "Trace.to_dataframe") from error
        frame = pandas.DataFrame({name: self[name] for name in self.columns})
        return frame.astype(dict.fromkeys(_COUNTS, np.int64))


def _exact(value: float) -> str:
    short = float(value).is_integer() and abs(value) < 1e15
    minus_zero = value == 0 and copysign(1.0, value) < 0
    return str(int(value)) if short and not minus_zero else repr(float(value))


# ---- the ledger -------------------------------------------------------------------------------------------------

#: Purposes and fates as people read them, in the order they are shown.
NAMES = {
    Purpose.ITERATE.value: "at the iterate",
    Purpose.PROBE.value: "probes",
    Purpose.TRIAL.value: "trial points",
    Purpose.CERTIFICATE.value: "for the certificate",
    Purpose.MONITOR.value: "monitoring",
}
FAILED, CACHED = "failed", "cached"


def fate(purpose: str, seconds: float, failure: str) -> str:
    """Return under which name one answered query is counted."""
    if failure:
        return FAILED
    return CACHED if seconds == CACHED_SECONDS else NAMES[purpose]


def ordered(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are not zero in the order they are shown."""
    return {name: counts[name] for name in (*NAMES.values(), FAILED, CACHED) if counts.get(name)}


class Ledger:
    """Counts by batches, because that costs next to nothing; what is out of the ordinary is noted one by one."""

    def __init__(self) -> None:
        self._batches: dict[tuple[Purpose, ...], int] = {}
        self._apart: Counter[tuple[str, str]] = Counter()

    def close(self, purposes: tuple[Purpose, ...]) -> None:
        """Count a batch whose queries are all answered."""
        self._batches[purposes] = self._batches.get(purposes, 0) + 1

    def note(self, query: Query, response: Response, times: int = 1) -> None:
        """Note a query that failed or was answered by a cache; ``times`` = -1 takes that back."""
        self._apart[query.purpose.value, fate(query.purpose.value, response.seconds, response.failure)] += times

    def counts(self, monitoring: int, still_open: Iterable[Query] = ()) -> dict[str, int]:
        """Return how many queries went where; ``still_open`` are those answered of a batch that is not closed."""
        found: Counter[str] = Counter(
            NAMES[query.purpose.value] for query in still_open if query.purpose is not Purpose.MONITOR
        )
        found[NAMES[Purpose.MONITOR.value]] = monitoring
        for purposes, times in self._batches.items():
            for purpose in purposes:
                found[NAMES[purpose.value]] += times
        for (asked_for, name), times in self._apart.items():
            found[NAMES[asked_for]] -= times
            found[name] += times
        return ordered(found)


# ---- the points remembered --------------------------------------------------------------------------------------


class Selection:
    """The best iterate at which F is known, and x^R with R uniform on the steps 0, ..., T-1 taken so far."""

    def __init__(self, x0: Vector, sign: float, keys: Keys) -> None:
        self.best_value = float("nan")
        self.best_x = x0
        self.random_step = 0
        self.random_x = x0
        self._sign = sign
        self._keys = keys
        self._next_draw = 0
        self._draws = 0

    def consider(self, record: Record) -> None:
        """Keep the point of a record if it is the best so far (sign * F is what goes down)."""
        if record.value == record.value and not self._sign * (record.value - self.best_value) >= 0:
            self.best_value, self.best_x = record.value, record.x

    def tell(self, points: Sequence[Vector], answers: Sequence[Vector | None]) -> None:
        """Hear of the answers of a batch; only constraints on outcomes make something of them."""

    def extras(self, outcome: Outcome) -> Mapping[str, float]:
        """Return what a step puts on record besides the common columns."""
        return outcome.extras

    def reaches(self, target: float) -> bool:
        """Tell whether the best value is as good as the target."""
        return self._sign * (self.best_value - target) <= 0

    def ended(self, stop: Stop) -> Stop:
        """Return why a run ended."""
        return stop

    def draw(self, record: Record) -> None:
        """Keep x^R with R uniform on the steps so far, without storing the iterates; call it once per step.

        Item n of a stream replaces the kept one with probability 1/n; after item s the next replacement is item
        floor(s/u) + 1 with u uniform, so only O(log T) draws are made.
        """
        if record.step != self._next_draw:
            return
        self.random_step, self.random_x = record.step, record.x
        u = 1.0 - self._keys.uniform(Role.OUTPUT, self._draws)
        self._draws += 1
        self._next_draw = int((record.step + 1) / u)


#: Ends by which a run has done what it was asked to.
_SUCCESSES = (Stop.STEPS, Stop.QUERIES, Stop.SECONDS, Stop.TARGET, Stop.STATIONARY, Stop.CONVERGED, Stop.CALLBACK)


# ---- the result -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The outcome of a run. ``print(result)`` shows it in ten lines, ``print(result.table())`` all of it.

    ``x`` is the point to take and ``value`` F there (NaN if it was never queried): the last iterate, of the default
    method the best point answered, and where it found noise the one its model finds best, with F by that model (and
    where answers jump, and nobody knows whether they repeat themselves, with F as it was answered).
    ``best_x`` and ``best_value`` are the best iterate at which F is known; ``random_x`` is the paper's output x^R, R
    uniform on 0, ..., T-1.
    ``queries`` counts what the algorithm asked, ``monitoring`` what was asked only to watch it, the certificate's
    queries included; ``ledger`` says where all of them went (probes, trial points, failed, answered by a cache, ...).
    ``answers`` is the table of all answers, which other costs and problems can begin with.
    ``kept_in`` is the file of a durable run, which can go on from there.
    ``certificate`` speaks of ``x``: the default method ends with one, if its budget allows (else ``uncertified`` says
    why there is none), and :class:`pzos.StopWhenStationary` gives its latest.

    ``fun``, ``nfev``, ``success`` and ``message`` are SciPy's names for F at ``x``, all queries that were paid for,
    whether the run came to an end of its own or spent what it was given, and why it ended.

    With constraints on outcomes ``x`` and ``best_x`` are the told point of best F that keeps them (else the one that
    violates least, and ``stop`` says so), and ``standing`` how it stands to them.
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
    known: Known | None = field(default=None, repr=False)
    given: Answers | None = field(default=None, repr=False)
    told: tuple[Pair, ...] | None = field(default=(), repr=False)
    ledger: Mapping[str, int] = field(default_factory=dict)
    certificate: Certificate | NeighbourCertificate | None = None
    standing: Standing | None = None
    uncertified: str = ""
    kept_in: str = ""

    @property
    def unit(self) -> str:
        """Return the unit of F, as the problem says."""
        return "" if self.known is None else self.known.unit

    @property
    def fun(self) -> float:
        """Return F at ``x``."""
        return self.value

    @property
    def nfev(self) -> int:
        """Return how many queries were paid for in all: the method's, to monitor it, and for the certificate."""
        return self.queries + self.monitoring

    @property
    def success(self) -> bool:
        """Return whether the run ended by itself, at its target, or by spending what it was given."""
        return self.stop in _SUCCESSES

    @property
    def message(self) -> str:
        """Return why the run ended, in words."""
        return self.stop.value

    @property
    def violation(self) -> float:
        """Return the largest violation of a constraint at ``x`` in units of its scale; 0 without constraints."""
        return 0.0 if self.standing is None else self.standing.violation

    @property
    def active(self) -> tuple[str, ...]:
        """Return the names of the constraints that are at their limits at ``x``."""
        return () if self.standing is None else self.standing.active

    @property
    def multipliers(self) -> dict[str, float]:
        """Return by how much F would improve per unit of room in each constraint, as far as the method knows."""
        return {} if self.standing is None else self.standing.multipliers

    def rows(self) -> list[tuple[str, str]]:
        """Return what :meth:`table` prints, as (name, text) pairs."""
        goal = "lowest" if self.sense == "min" else "highest"
        rows = [
            ("problem", self.problem or f"unnamed, {counted(self.x.size, 'decision')}"),
            ("solver", self.solver),
            ("stopped", stop_words(self.stop)),
            ("x", named_x(self)),
            ("F at the last point", number(self.value, self.unit)),
            (f"{goal} F seen", number(self.best_value, self.unit)),
            ("steps", f"{self.steps}"),
            ("queries", f"{self.queries} by the algorithm, {self.monitoring} to monitor it"),
            ("seconds", f"{self.seconds:.3g}"),
            ("seed", f"{self.seed}"),
        ]
        if self.given is not None:
            rows.insert(8, ("known before", self.given.origin))
        if self.standing is not None:
            rows[4:6] = [("F at the point returned", number(self.value, self.unit)), *self.standing.rows()]
        if self.failures:
            rows.insert(8, ("failed queries", f"{self.failures}"))
        if self.explanation:
            rows.append(("why this method", self.explanation))
        if self.certificate is not None:
            rows.append(("certificate", self.certificate.sentence))
        elif self.uncertified:
            rows.append(("certificate", self.uncertified))
        return rows

    def table(self) -> str:
        """Return the verdict and all there is to say of the run, in two columns."""
        return f"{verdict(self)}\n{aligned(self.rows())}"

    def __repr__(self) -> str:
        return brief(self)

    def _repr_html_(self) -> str:
        return brief_page(self)

    @property
    def answers(self) -> Answers:
        """Return every answer of the run, and those it was begun with: of use to any other cost (``answers=``)."""
        if self.known is None:
            raise InvalidInput("result.answers: this result knows none: expected that of a study; use study.result()")
        return as_table(self.told, self.given, self.known)

    def what_if(self, leader: Leader, *, sense: AnySense | None = None) -> Expectation:
        """Return the decision and cost that the answers so far lead one to expect under another cost; no query."""
        from pzos.methods.expecting import expected

        instance_of(Leader, "a Leader", "e.g. pzos.leader_from_functions(...)").require("what_if", "leader", leader)
        task = self._task()
        wanted = task.known.sense if sense is None else as_sense("what_if", sense)
        return expected(replace(task, known=replace(task.known, leader=leader, sense=wanted)))

    def sensitivity(self, parameters: Iterable[str] | None = None, *, change: float = 0.1) -> Sensitivity:
        """Return what each parameter of the leader does to the best cost: to first order, and re-optimised; no query.

        ``parameters`` are names (all by default); ``change`` is by which part each is lowered and raised.
        """
        from pzos.methods.expecting import sensitivity

        positive("try 0.1").require("sensitivity", "change", change)
        return sensitivity(self._task(), parameters, change, self.best_x)

    def _task(self) -> Task:
        table = self.answers
        if self.known is None:
            raise InvalidInput("this result knows no problem: expected that of a study; use study.result()")
        told, old = table.split(self.known)
        return Task(self.known, Keys(self.seed), told or old)

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
        one_of(tuple(points), "choose the point").require("certify", "at", at)
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


def stop_words(stop: Stop) -> str:
    """Return why a run ended, by its name and in words."""
    return f"{stop.name.lower()}: {stop.value}"
