"""``pzos watch STUDY``: a live view in the terminal, from another process, without disturbing the run.

The study file is opened read-only; new answers are read as they arrive, and nothing is ever written or locked.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pzos.base.checks import Faults, aligned, positive, printable, whole
from pzos.base.errors import MissingExtra
from pzos.base.types import Purpose
from pzos.cli.description import add_names, sources
from pzos.cli.printing import sparkline
from pzos.durable.contents import StoredAnswer, stored_answers
from pzos.durable.log import Log, open_log
from pzos.study.display import number

if TYPE_CHECKING:
    from pzos.problem.problem import Problem

_WIDTH = 48
_NAMES = 14
_RECENT = 20
_INTERVAL = positive("try --interval 1", "seconds, more than 0")
_LIMIT = whole(1, "or leave it out").or_none()
_TELLS_VALUE = (Purpose.ITERATE.value, Purpose.TRIAL.value, Purpose.MONITOR.value)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos watch``."""
    parser.add_argument("study", metavar="STUDY", type=Path, help="the TOML file of a study, or the study file")
    add_names(parser, solver=False)
    parser.add_argument("--queries", type=int, metavar="N", help="the budget of the run, to estimate the time left")
    parser.add_argument("--steps", type=int, metavar="N", help="the steps of the run, to estimate the time left")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="time between two looks")
    parser.add_argument("--once", action="store_true", help="look once, print, and end")


def run(args: argparse.Namespace) -> int:
    """Look until the study has ended or Ctrl-C; with ``--once`` or in a pipe look once."""
    faults = Faults("watch")
    _INTERVAL.note(faults, "--interval", args.interval)
    _LIMIT.note(faults, "--queries", args.queries)
    _LIMIT.note(faults, "--steps", args.steps)
    faults.raise_if_any()
    (source,) = sources("watch", [args.study], args)
    queries = args.queries or source.settings.get("queries")
    steps = args.steps or source.settings.get("steps")
    view = View(source.path, source.problem, queries, steps)
    with closing(open_log(source.path, read_only=True)) as log:
        view.take_in(log)
        if args.once or not sys.stdout.isatty():
            sys.stdout.write(printable(aligned(view.rows(), _NAMES)) + "\n")
            return 0
        _live(view, log, args.interval)
    return 0


def _live(view: View, log: Log, interval: float, pause: Callable[[float], None] = time.sleep) -> None:
    try:
        from rich.live import Live
        from rich.markup import escape
        from rich.panel import Panel
        from rich.table import Table
    except ImportError as error:
        raise MissingExtra("rich", "cli", "a live view") from error

    def panel() -> Panel:
        grid = Table.grid(padding=(0, 2))
        for name, text in view.rows():
            grid.add_row(f"[bold]{name}[/bold]", escape(printable(text)))
        return Panel(grid, title=view.path.name, expand=False)

    with Live(panel(), refresh_per_second=4, transient=False) as live:
        while not view.ended:
            pause(interval)
            view.take_in(log)
            live.update(panel())


@dataclass
class View:
    """What has been seen of a study so far."""

    path: Path
    problem: Problem | None = None
    queries: int | None = None
    steps: int | None = None
    header: dict[str, Any] = field(default_factory=dict)
    seen: int = 0
    withdrawn: int = 0
    own: int = 0
    monitoring: int = 0
    failures: int = 0
    step: int = -1
    elapsed: float = 0.0
    state: str = ""
    looks: dict[int, set[int]] = field(default_factory=dict)
    values: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come."""
        return self.state.startswith("ended")

    def take_in(self, log: Log) -> None:
        """Read the answers that have arrived since the last look."""
        log.more()
        if log.contents.withdrawn != self.withdrawn:  # what stands is counted anew
            vars(self).update(vars(View(self.path, self.problem, self.queries, self.steps)))
            self.withdrawn = log.contents.withdrawn
        self.header = log.contents.header or {}
        for row in stored_answers(log.contents.events[self.seen :]):
            self._count(row)
        self.seen = len(log.contents.events)
        self.state = log.contents.state

    def _count(self, row: StoredAnswer) -> None:
        if row.final:
            self.looks.setdefault(row.step, set())
        elif row.step in self.looks:
            before = self._taken_over(row.step)
            self.looks[row.step].add(row.index)
            change = self._taken_over(row.step) - before
            self.own, self.monitoring = self.own + change, self.monitoring - change
        self.own += row.purpose != Purpose.MONITOR.value
        self.monitoring += row.purpose == Purpose.MONITOR.value
        self.failures += bool(row.failure)
        if not row.final:  # the last look at F is no step
            self.step = max(self.step, row.step)
        self.elapsed = max(self.elapsed, row.elapsed)
        self.times.append(row.elapsed)
        if self.problem is not None and not row.failure and row.purpose in _TELLS_VALUE:
            self.values.append(self.problem.leader.value(row.x, row.y))

    def _taken_over(self, step: int) -> bool:
        """Tell whether the last look of a shorter run became the answer at the iterate of the next step."""
        return bool(self.looks[step]) and 0 not in self.looks[step]

    def rows(self) -> list[tuple[str, str]]:
        """Return the lines of the view."""
        identity = self.header.get("identity", {})
        solver = str(identity.get("solver", {}).get("type", "unknown")).rsplit(".", 1)[-1]
        rows = [
            ("problem", identity.get("problem", {}).get("name") or "unnamed"),
            ("solver", f"{solver}, seed {identity.get('seed', '?')}"),
            ("state", self.state),
            ("steps", f"{self.step + 1}" + (f" of {self.steps}" if self.steps else "")),
            ("queries", f"{self.own}" + (f" of {self.queries}" if self.queries else "") + self._apart()),
            ("speed", self._speed()),
            ("time", f"{duration(self.elapsed)} so far{self._left()}"),
        ]
        if self.values:
            unit = "" if self.problem is None else self.problem.unit
            best = max(self.values) if identity.get("problem", {}).get("sense") == "max" else min(self.values)
            rows += [
                (
                    "F",
                    f"{number(self.values[-1], unit)} now, {number(best, unit)} best, {number(self.values[0], unit)} "
                    "at the start",
                ),
                ("", sparkline(self.values, _WIDTH)),
            ]
        elif self.problem is None:
            rows.append(("F", "name the problem with --problem FILE.py:NAME to see it"))
        return rows

    def _apart(self) -> str:
        apart = [f"{self.monitoring} to monitor"] if self.monitoring else []
        apart += [f"{self.failures} failed"] if self.failures else []
        return f" ({', '.join(apart)})" if apart else ""

    def _pace(self) -> float:
        """Return the answers a second over the last few."""
        recent = self.times[-_RECENT - 1 :]
        span = recent[-1] - recent[0] if len(recent) > 1 else 0.0
        return (len(recent) - 1) / span if span > 0 else 0.0

    def _speed(self) -> str:
        pace = self._pace()
        if pace == 0.0:
            return "not known yet"
        return f"{pace:.3g} answers a second" if pace >= 1 else f"one answer in {duration(1 / pace)}"

    def _left(self) -> str:
        """Return an estimate of the time left, if a budget is known."""
        pace = self._pace()
        if self.ended or pace == 0.0:
            return ""
        share = (self.own + self.monitoring) / max(self.own, 1)
        to_go = [(self.queries - self.own) * share] if self.queries else []
        if self.steps and self.step >= 0:
            to_go.append((self.steps - self.step - 1) * len(self.times) / (self.step + 1))
        return f", about {duration(max(0.0, min(to_go)) / pace)} left" if to_go else ""


def duration(seconds: float) -> str:
    """Return a time a person can read.

    >>> duration(5), duration(7500)
    ('5 s', '2 h 5 min')
    """
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 48 * 60 else f"{minutes // 1440} days"
