"""Tie a study to a file: replay what was told, verify every query, then keep what is told next.

The state of a solver is a pure function of the problem, the seed and the answers, so it is computed again, never
stored: there is no state format to migrate, and a resumed study has the bits of one that was never interrupted.

On the machine that wrote the file every point must be asked again bit for bit. Another processor, numpy or scipy moves
last bits: there the stored points are taken, because the answers belong to them, and the largest difference is noted
in the file; one beyond what rounding does (:mod:`pzos.study.rounding`) is refused.
"""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import pzos
from pzos.base.checks import Faults
from pzos.base.errors import DifferentStudy
from pzos.base.fingerprint import describe, describe_function, differences, listed
from pzos.base.threads import blas_kernels
from pzos.base.types import Query, Vector
from pzos.durable.contents import FORMAT, Contents, pack_given, value_of
from pzos.durable.log import Log, create, header_at, open_log, read_study
from pzos.methods.solver import Stop
from pzos.study.events import rows_of
from pzos.study.limits import Limits

if TYPE_CHECKING:
    from pzos.methods.solver import AnySolver
    from pzos.problem.leader import Leader
    from pzos.problem.problem import Known
    from pzos.study.study import Order, Study

#: Points that differ by more than this, relative to the largest entry of any so far, differ by more than rounding,
#: unless the method makes that much of rounding.
ROUNDING = 1e-6
#: How many more objects there may be before a replay is interrupted by a search for cyclic garbage.
_RARELY = 50_000


_RENAMED = (
    "; if these followers answer as those did, say so by a name for both: Problem(..., follower_name=...), and begin "
    "the file with it"
)


@contextlib.contextmanager
def _rarely_collected() -> Iterator[None]:
    """Look for cyclic garbage less often: a long replay makes very many objects, and hardly a cycle."""
    often, *others = gc.get_threshold()
    gc.set_threshold(often and max(often, _RARELY), *others)
    try:
        yield
    finally:
        gc.set_threshold(often, *others)


@_rarely_collected()
def attach(
    study: Study,
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    any_version: bool = False,
    whole: bool = False,
) -> None:
    """Replay the file at ``path`` into a fresh study, or make the file; from then on the study writes to it.

    With ``whole`` no limit cuts off what is in the file.
    """
    place = checked_path(path)
    header = header_of(study)
    new = not place.exists() and not read_only
    given = [] if study.answers is None else [pack_given(study.answers)]
    log = create(place, header, given) if new else open_log(place, read_only=read_only)
    try:
        log.leader = study.known.leader
        facts = {} if new else _replay(study, log, header, any_version=any_version, whole=whole)
        if not read_only:
            if log.contents.header is None:
                log.adopt(header)
            log.opened(**facts)
        study.keep(log)
    except BaseException:
        log.close()
        raise


def _take_given(study: Study, path: Path, contents: Contents) -> None:
    """Let the study begin with the copy of answers in its file, whatever has become of where they were from."""
    given = contents.given
    if given is not None:
        faults = Faults(str(path))
        given.check(faults, study.known)
        faults.raise_if_any()
        study.begin_with(given)
    elif study.answers is not None:
        raise DifferentStudy(
            f"{path}: holds a study that was begun without answers from elsewhere, and {len(study.answers)} are given: "
            "they would change every query since; leave them out, or choose another file name"
        )


def _replay(study: Study, log: Log, header: dict[str, Any], *, any_version: bool, whole: bool) -> dict[str, Any]:
    """Tell the study what is in the file, if it is the same study; returns what is to be noted of this machine."""
    place, stored, machines = log.path, log.contents.header, machines_of(log.contents)
    if stored is not None:
        compare(place, stored, header, any_version=any_version)
    if machines != [machine()]:  # here the points would show another leader; there rounding may hide it
        _compare_leader(place, study.known.leader, log.contents)
    _take_given(study, place, log.contents)
    study.replay(log.contents.events, _judge(study, place, machines), whole=_as_kept(log.contents) if whole else None)
    return {"machine": machine(), "difference": study.difference} if machines[-1:] != [machine()] else {}


def _as_kept(contents: Contents) -> Limits:
    """Return limits that cut off nothing; a batch that a budget cut short was closed with the queries it has."""
    rows = [row for row in rows_of(contents.events) if row[4] is not None and row[-1] is None]
    cut = contents.stop is Stop.QUERIES and not contents.in_any_order
    return Limits(queries=len(rows) or None if cut else None, seconds=inf)


def open_whole(path: str | os.PathLike[str], known: Known, solver: AnySolver, **settings: Any) -> Study:
    """Open a study to look at everything in its file, whatever limits it was continued with.

    ``settings`` are those of :class:`pzos.Study`; what is not given is as in the file. The limits say only whether the
    study would go on from there: without any it ends where its file does.
    """
    from pzos.study.study import Study

    contents = read_study(path)
    identity = (contents.header or {}).get("identity", {})
    as_kept = {name: identity[name] for name in ("seed", "monitor", "order") if name in identity}
    last = max((row[0] for row in rows_of(contents.events)), default=0)
    study = Study(known, solver, **{**as_kept, "steps": max(last, 1), **settings})
    attach(study, path, read_only=True, whole=True)
    return study


class Kept(NamedTuple):
    """What a study keeps for good, by how many workers it is answered this time: its batches and its order."""

    batch: int | None = None
    order: Order | None = None


def kept_in(path: str | os.PathLike[str]) -> Kept:
    """Return how many queries a step of the default method has in this file, and in which order answers are taken.

    Nothing, if there is no such file or none that can be read: opening it will say why.
    """
    try:
        identity = (header_at(Path(path)) or {}).get("identity", {})
    except (OSError, TypeError):
        return Kept()
    solver = identity.get("solver", {})
    holder = solver if "batch" in solver else solver.get("within")
    batch = holder.get("batch") if isinstance(holder, dict) else None
    return Kept(
        batch if isinstance(batch, int) and batch > 0 else None,
        "told" if identity.get("order") == "told" else "asked" if identity else None,
    )


def checked_path(path: Any) -> Path:
    """Return ``path`` as a Path if a study can lie there."""
    faults = Faults("Study.open")
    if faults.check(isinstance(path, str | os.PathLike), "path", path, "a file name", 'try "tolls.study"'):
        place = Path(path)
        faults.check(not place.is_dir(), "path", path, "a file, not a directory", f'try "{place}/tolls.study"')
        faults.check(place.parent.is_dir(), "path", path, "a file in a directory that exists", f"make {place.parent}")
    faults.raise_if_any()
    return Path(path)


# ---- identity -------------------------------------------------------------------------------------------------


def header_of(study: Study) -> dict[str, Any]:
    """Return what is written once at the head of a study file.

    ``identity`` decides whether a file is the study asked for. Limits are not part of it: a study can be extended.
    """
    known = study.known
    leader = {"name": known.leader.name, "function": describe_function(known.leader.value_function)}
    problem = {
        "name": known.name,
        "dimension": known.dimension,
        "x0": describe(known.x0),
        "domain": describe(known.domain),
        "sense": known.sense,
        "structure": describe(known.structure),
        "leader": leader,
        **({} if known.outcomes is None else {"outcomes": list(known.outcomes.names)}),
        **({} if known.grid is None else {"grid": describe(known.grid.steps)}),
        **({} if known.follower is None else {"follower": known.follower}),
    }
    identity = {
        "problem": problem,
        "solver": described if isinstance(described := describe(study.configured), dict) else {"type": described},
        "seed": study.task.keys.seed,
        "monitor": study.monitor,
        **({} if study.order == "asked" else {"order": study.order}),
    }
    made = {"created": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "platform": platform.platform()}
    versions = {"pzos": pzos.__version__, "python": platform.python_version(), **machine()}
    named = {"decisions": known.decisions.kept(), "responses": known.responses.kept()}
    columns = {name: kept for name, kept in named.items() if kept is not None}
    return {
        "format": FORMAT,
        "versions": versions,
        "identity": identity,
        **made,
        **({"columns": columns} if columns else {}),
    }


@cache
def machine() -> dict[str, str]:
    """Return what the last bits of a point depend on besides the code of pzos."""
    try:
        features = import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):  # private to numpy, which may move it
        features = {}
    cpu = " ".join([platform.machine(), *(name for name, present in features.items() if present)])
    return {"numpy": np.__version__, "scipy": version("scipy"), "blas": blas_kernels(), "cpu": cpu}


def machines_of(contents: Contents) -> list[dict[str, Any]]:
    """Return the machines on which the study was written, in that order; of old files little is known."""
    versions = (contents.header or {}).get("versions", {})
    first = {name: versions.get(name, "unknown") for name in machine()}
    return [first, *(note["machine"] for note in contents.notes if isinstance(note.get("machine"), dict))]


def compare(path: Path, stored: dict[str, Any], present: dict[str, Any], *, any_version: bool) -> None:
    """Raise DifferentStudy naming every difference, unless the file holds the study asked for."""
    then, now = _comparable(stored["identity"], present["identity"])
    found = differences(then, now)
    written, running = stored["versions"]["pzos"], present["versions"]["pzos"]
    if _series(written) != _series(running) and not any_version:
        found.append(
            f"version: the file was written by pzos {written}, this is {running} "
            "(any_version=True goes on if every stored query is still asked)"
        )
    if found:
        raise DifferentStudy(
            f"{path}: holds another study than the one asked for:\n{listed(found)}\n"
            "give what the file was made with, or choose another file name"
            + (_RENAMED if any(line.startswith("problem.follower.code") for line in found) else "")
        )


def _comparable(*identities: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return both without what only one knows of the followers: people answer, or the code is of another Python."""
    followers = [identity["problem"].get("follower") for identity in identities]
    if not all(isinstance(one, dict) for one in followers):
        kept: tuple[str, ...] = ()
    elif any(one.get("python") != followers[0].get("python") for one in followers):
        kept = ("kind", "name")
    else:
        kept = ("kind", "name", "code")
    problems = [{name: part for name, part in one["problem"].items() if name != "follower"} for one in identities]
    for problem, follower in zip(problems, followers, strict=True):
        problem |= {"follower": {name: follower.get(name, "nothing") for name in kept}} if kept else {}
    return tuple({**identity, "problem": problem} for identity, problem in zip(identities, problems, strict=True))


def _series(version: str) -> list[str]:
    """Return the part of a version that may change trajectories: 0.1 of 0.1.3."""
    return version.split(".")[:2]


# ---- replay ---------------------------------------------------------------------------------------------------


def _judge(study: Study, path: Path, machines: list[dict[str, Any]]) -> Callable[[Query, Vector, float], None]:
    """Return what refuses a point that is not the stored one, unless another machine's rounding explains it.

    Once rounding has made this machine choose otherwise than the one before, its points are no longer comparable: the
    stored ones are taken, and the largest difference is reported.
    """
    comparable = True

    def judge(query: Query, point: Vector, apart: float) -> None:
        nonlocal comparable
        if machines == [machine()] or (
            comparable and apart > ROUNDING and not study.moved_by_rounding(query.index, apart)
        ):
            raise _refused(path, query, point, machines)
        comparable = comparable and apart <= ROUNDING

    return judge


def _compare_leader(path: Path, leader: Leader, contents: Contents) -> None:
    """Refuse a leader that gives another value than was noted, by more than rounding, at an answer of the study."""
    noted = {
        (note["step"], note["index"]): note.get("value")
        for note in contents.notes_of("leader")
        if isinstance(note.get("step"), int) and isinstance(note.get("index"), int)
    }
    scale = max((abs(value) for value in noted.values() if isinstance(value, float)), default=0.0)
    for row in contents.answers:
        then = noted.get((row.step, row.index))
        if isinstance(then, float):
            now = value_of(leader, row.x, row.y)
            if now is not None and abs(then - now) > ROUNDING * scale:
                raise DifferentStudy(
                    f"{path}: query {row.step}.{row.index}: the leader gives f(x, y) = {now!r}, and gave {then!r} when "
                    "it was answered: it has changed since; use the one the file was written with"
                )


def _refused(path: Path, query: Query, stored: Vector, machines: list[dict[str, Any]]) -> DifferentStudy:
    moved = [line for before in machines for line in differences(before, machine())]
    elsewhere = f" (this machine: {'; '.join(dict.fromkeys(moved))})" if moved else ""
    return DifferentStudy(
        f"{path}: query {query.step}.{query.index}: the stored x is not the one asked now "
        f"({_first_difference(stored, query.x)}); the leader, the solver's code or a library "
        f"has changed since{elsewhere}: use what the file was written with"
    )


def _first_difference(stored: Any, present: Any) -> str:
    if stored.shape != present.shape:
        return f"{stored.size} entries then, {present.size} now"
    entry = int(np.nonzero(stored.view(np.int64) != present.view(np.int64))[0][0])
    return f"x[{entry}] was {stored[entry]!r}, is {present[entry]!r}"


# ---- looking on -------------------------------------------------------------------------------------------------


class Summary(NamedTuple):
    """What a study file says by itself, without its problem.

    ``difference`` is the largest by which another machine computed a point otherwise than it was stored; ``withdrawn``
    answers were taken back, and the answers ``aside`` had been asked for on their ground. ``stop`` is why the study
    ended, as its last writer noted; None if it may go on; ``state`` says the same in words.
    """

    header: dict[str, Any]
    answers: int
    failures: int
    steps: int
    seconds: float
    difference: float
    withdrawn: int
    aside: int
    stop: Stop | None
    state: str
    remarks: list[tuple[str, str]]


def summary(path: str | os.PathLike[str]) -> Summary:
    """Read the counts of a study file, also while it is being written; nothing is replayed."""
    contents = read_study(path)
    told = [row for row in rows_of(contents.events) if row[4] is not None and row[-1] is None]
    return Summary(
        contents.header or {},
        len(told),
        sum(bool(row[8]) for row in told),
        max((row[0] for row in told), default=0),
        max((row[7] for row in told), default=0.0),
        contents.difference,
        contents.withdrawn,
        contents.aside,
        contents.stop,
        contents.state,
        contents.remarks(),
    )
