"""The story of a study file, finished or running: read-only, without a single query.

The file holds queries and answers, not F: with the problem F is computed from them, with the solver as well the whole
trace is replayed, and without either the page still shows what was asked, when, and where x went.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pzos.base.checks import counted
from pzos.base.columns import Columns
from pzos.base.types import Purpose, Sense, Vector
from pzos.durable.contents import StoredAnswer, as_used
from pzos.durable.log import read_study
from pzos.durable.replay import open_whole
from pzos.report import story
from pzos.report.story import EMPTY, Curve, Motion, Point, Rows, Story
from pzos.stationarity.certificate import ended_with, kept_at, kept_beside
from pzos.study.result import fate, ordered

if TYPE_CHECKING:
    from pzos.problem.problem import Problem
    from pzos.study.result import Result

_AT_ITERATES = (Purpose.ITERATE.value, Purpose.TRIAL.value, Purpose.MONITOR.value)


class Contents(NamedTuple):
    """What a study file says by itself."""

    path: Path
    header: dict[str, Any]
    rows: tuple[StoredAnswer, ...]
    at_work: bool
    state: str = ""
    remarks: Rows = ()
    columns: Mapping[str, Columns] = MappingProxyType({})

    @property
    def identity(self) -> dict[str, Any]:
        """Return what the header says the study is; empty where the header was lost."""
        described: dict[str, Any] = self.header.get("identity", {})
        return described

    @property
    def problem(self) -> dict[str, Any]:
        """Return the header's description of the problem."""
        described: dict[str, Any] = self.identity.get("problem", {})
        return described

    @property
    def solver(self) -> dict[str, Any]:
        """Return the header's description of the solver."""
        described: dict[str, Any] = self.identity.get("solver", {})
        return described


def read_contents(path: Path) -> Contents:
    """Read a study file, also while another process writes it."""
    found = read_study(path)
    rows, remarks = tuple(as_used(found.answers)), tuple(found.remarks())
    columns = {name: found.columns(name) for name in ("decisions", "responses")}
    return Contents(path, found.header or {}, rows, found.being_written, found.state, remarks, columns)


def story_of_file(path: Path, problem: Problem | None = None, solver: Any = None) -> Story:
    """Return the story of the study at ``path``."""
    contents = read_contents(path)
    result = _replayed(contents, problem, solver)
    sense: Sense = "max" if contents.problem.get("sense") == "max" else "min"
    points = _points(contents, problem, result)
    missing: tuple[str, ...] = ()
    if problem is None:
        missing = (
            "The file holds queries and answers but not F: name the problem (--problem FILE.py:NAME) to see it.",
        )
    elif result is None:
        missing = ("Name the solver as well (--solver FILE.py:NAME) to see its own step size, radius and best point.",)
    return Story(
        name=contents.problem.get("name") or path.stem,
        sense=sense,
        status=_status(contents),
        asked=story.asked_rows(contents.problem.get("name", ""), sense, points[-1].x.size if points else 0, problem),
        method=_method(contents, result),
        versions=_versions(contents),
        ledger=_ledger(contents, result),
        points=points,
        curve=_curve(contents, problem, result),
        motion=_motion(contents) if result is None else _motion_with_radius(contents, result),
        certificate=_certificate(contents, problem, result),
        resume=story.how_to_go_on(path.name),
        missing=missing,
        roads=story.road_map(problem, points),
        decisions=contents.columns["decisions"] if problem is None else problem.decisions,
        responses=contents.columns["responses"] if problem is None else problem.responses,
        unit="" if problem is None else problem.unit,
    )


def _replayed(contents: Contents, problem: Problem | None, solver: Any) -> Result | None:
    if problem is None or solver is None or "CertificateSolver" in str(contents.solver.get("type", "")):
        return None
    with open_whole(contents.path, problem.known(), solver) as study:
        result = study.result()
        beside = kept_beside(contents.path, study)
    return result if beside is None else ended_with(result, beside, beside.queries)


def _status(contents: Contents) -> str:
    steps = 1 + max((row.step for row in contents.rows if not row.final), default=-1)
    return f"{contents.state}; {counted(len(contents.rows), 'answer')} in {counted(steps, 'step')}"


def _method(contents: Contents, result: Result | None) -> Rows:
    solver = _short({"type": "unknown"} | contents.solver)
    rows = [("solver", solver), ("seed", str(contents.identity.get("seed", "?")))]
    if contents.rows:
        rows.append(("time", f"{max(row.elapsed for row in contents.rows):.3g} s"))
        waiting = np.array([row.seconds for row in contents.rows])
        if np.isfinite(waiting).any():
            rows.append(
                ("in the follower", f"{np.nansum(waiting):.3g} s, median {np.nanmedian(waiting):.3g} s a query")
            )
    standing = [] if result is None or result.standing is None else result.standing.rows()
    return (*rows, *standing, *contents.remarks)


def _short(value: Any) -> str:
    if isinstance(value, dict):
        inner = {key: item for key, item in value.items() if key != "type"}
        name = str(value.get("type", "")).rsplit(".", 1)[-1]
        return f"{name}({', '.join(f'{key}={_short(item)}' for key, item in inner.items())})"
    return str(value)


def _versions(contents: Contents) -> Rows:
    written = tuple((name, str(text)) for name, text in contents.header.get("versions", {}).items())
    created = contents.header.get("created", "")
    return (*written, ("made", created)) if created else written or story.present_versions()


def _ledger(contents: Contents, result: Result | None) -> dict[str, int]:
    if result is not None:
        return story.ledger_of(result)
    return ordered(Counter(fate(row.purpose, row.seconds, row.failure) for row in contents.rows))


def _points(contents: Contents, problem: Problem | None, result: Result | None) -> tuple[Point, ...]:
    """Return what is compared: of a bare file the first and the last point that was stood on or tried."""
    if result is not None:
        return story.points_of(result, problem)
    answered = [row for _, row in _at_iterates(contents) if not row.failure]
    if not answered:
        return ()
    if problem is None:
        first, last = answered[0], answered[-1]
        return (Point("first point asked about", first.x, first.y, np.nan),
                Point("last point asked about", last.x, last.y, np.nan))  # fmt: skip
    values = [problem.leader.value(row.x, row.y) for row in answered]
    best = int(np.argmax(values) if problem.sense == "max" else np.argmin(values))
    answers = {(row.x + 0.0).tobytes(): row.y for row in contents.rows if not row.failure}
    start = Point("start", answered[0].x, answered[0].y, values[0])
    beside = story.nothing_beside(start, answers, problem, None)
    return (*beside, Point("best point seen", answered[best].x, answered[best].y, values[best]))


def _iterates(contents: Contents) -> list[tuple[int, Vector]]:
    """Return (queries so far, x) for each step that says where it stood."""
    found: dict[int, tuple[int, Vector]] = {}
    for own, row in _at_iterates(contents):
        found.setdefault(row.step, (own, row.x))
    return list(found.values())


def _at_iterates(contents: Contents) -> Iterator[tuple[int, StoredAnswer]]:
    """Yield (the algorithm's queries so far, answer) for each answer at a point that was stood on or tried."""
    own = 0
    for row in contents.rows:
        own += row.purpose != Purpose.MONITOR.value
        if row.purpose in _AT_ITERATES:
            yield own, row


def _curve(contents: Contents, problem: Problem | None, result: Result | None) -> Curve:
    if result is not None:
        return story.curve_of(result.trace)._replace(seconds=_when_told(contents, result))
    if problem is None:
        return Curve(EMPTY, EMPTY, EMPTY)
    points = [
        (own, row.elapsed, problem.leader.value(row.x, row.y)) for own, row in _at_iterates(contents) if not row.failure
    ]
    return Curve(*np.array(points, dtype=np.float64).reshape(-1, 3).T)


def _when_told(contents: Contents, result: Result) -> Vector:
    """Return the run's own clock at each step whose F is known; the trace of a replay has the clock of the replay."""
    told: dict[int, float] = {}
    in_any_order = contents.identity.get("order") == "told"  # then each answer is a step, in the order of telling
    for number, row in enumerate(contents.rows):
        step = number if in_any_order else row.step
        told[step] = max(row.elapsed, told.get(step, 0.0))
    steps = result.trace["step"][story.shown_steps(result.trace)]
    return np.array([told.get(int(step), max(told.values())) for step in steps])


def _motion(contents: Contents) -> Motion:
    """Return what the stored points show: how far each step moved, and how far its probes lay from it."""
    iterates = _iterates(contents)
    if len(iterates) < 2:
        return Motion(EMPTY, EMPTY, "length of the move", EMPTY)
    queries = np.array([count for count, _ in iterates[1:]], dtype=np.float64)
    moves = [float(np.linalg.norm(b - a)) for (_, a), (_, b) in pairwise(iterates)]
    return Motion(queries, np.array(moves), "length of the move", _radii(contents)[1 : 1 + len(moves)])


def _motion_with_radius(contents: Contents, result: Result) -> Motion:
    motion = story.motion_of(result.trace)
    if motion.radius.size:
        return motion
    stored = _radii(contents)[: motion.queries.size]
    padded = np.append(stored, np.full(motion.queries.size - stored.size, np.nan))
    return motion._replace(radius=padded if stored.size else EMPTY)


def _radii(contents: Contents) -> Vector:
    centre: dict[int, Vector] = {}
    radius: dict[int, float] = {}
    for row in contents.rows:
        if row.purpose in (Purpose.ITERATE.value, Purpose.MONITOR.value):
            centre.setdefault(row.step, row.x)
    for row in contents.rows:
        if row.purpose == Purpose.PROBE.value and row.step in centre and row.step not in radius:
            radius[row.step] = float(np.linalg.norm(row.x - centre[row.step]))
    return np.array([radius.get(step, np.nan) for step in sorted(centre)]) if radius else EMPTY


def _certificate(contents: Contents, problem: Problem | None, result: Result | None) -> str:
    first = next((row for row in contents.rows if row.index == 0), None)
    if problem is not None and first is not None:
        kept = kept_at(contents.path, contents.identity, first.x, problem)
        if kept is not None:
            return str(kept)
    return story.NO_CERTIFICATE if result is None else story.certificate_words(result.certificate)
