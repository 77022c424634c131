"""Tie a study to a file: replay what was told, verify every query bit for bit, then keep what is told next.

The state of a solver is a pure function of the problem, the seed and the answers, so it is computed again, never
stored: there is no state format to migrate, and a resumed study has the bits of one that was never interrupted.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import pzos
from pzos.base.checks import Faults
from pzos.base.errors import DamagedStudy, DifferentStudy
from pzos.base.fingerprint import describe, describe_function, differences, listed
from pzos.base.rows import as_array
from pzos.base.types import Purpose, Query, Vector
from pzos.durable.journal import FORMAT, Journal, create, open_journal
from pzos.study.events import Event

if TYPE_CHECKING:
    from pzos.study.study import Study


def attach(study: Study, path: str | os.PathLike[str], *, read_only: bool = False, any_version: bool = False) -> None:
    """Replay the file at ``path`` into a fresh study, or make the file; from then on the study writes to it."""
    place = checked_path(path)
    header = header_of(study)
    if not place.exists() and not read_only and not _logs_left(place):
        made = create(place, json.dumps(header, indent=1))
        made.start_writing()
        study.keep(made)
        return
    journal = open_journal(place, read_only=read_only)
    try:
        if journal.header is not None:
            compare(place, json.loads(journal.header), header, any_version=any_version)
        study.replay(events_of(journal), lambda query, stored, _: _refuse(place, query, stored))
        study.keep(journal)
        journal.start_writing()
        if journal.header is None and not read_only:
            journal.adopt(json.dumps(header, indent=1))
    except BaseException:
        journal.close()
        raise


def checked_path(path: Any) -> Path:
    """Return ``path`` as a Path if a study can lie there."""
    faults = Faults("Study.open")
    if faults.check(isinstance(path, str | os.PathLike), "path", path, "a file name", 'try "tolls.study"'):
        place = Path(path)
        faults.check(not place.is_dir(), "path", path, "a file, not a directory", f'try "{place}/tolls.study"')
        faults.check(place.parent.is_dir(), "path", path, "a file in a directory that exists", f"make {place.parent}")
    faults.raise_if_any()
    return Path(path)


def _logs_left(place: Path) -> bool:
    log = place.with_name(place.name + "-wal")
    if log.exists() and log.stat().st_size > 0:
        raise DamagedStudy(
            f"{place}: is gone, but its log {log.name} is there with answers in it; "
            "restore the file beside it, or move the log away to start again"
        )
    return False


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
    }
    identity = {
        "problem": problem,
        "solver": describe(study.solver),
        "seed": study.task.keys.seed,
        "monitor": study.monitor,
    }
    versions = {"pzos": pzos.__version__, "numpy": np.__version__, "python": platform.python_version()}
    made = {"created": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "platform": platform.platform()}
    return {"format": FORMAT, "versions": versions, "identity": identity, **made}


def compare(path: Path, stored: dict[str, Any], present: dict[str, Any], *, any_version: bool) -> None:
    """Raise DifferentStudy naming every difference, unless the file holds the study asked for."""
    found = []
    if stored.get("format") != FORMAT:
        found.append(f"format: the file has {stored.get('format')}, this version of pzos writes {FORMAT}")
    else:
        found += differences(stored["identity"], present["identity"])
        written, running = stored["versions"]["pzos"], present["versions"]["pzos"]
        if _series(written) != _series(running) and not any_version:
            found.append(
                f"version: the file was written by pzos {written}, this is {running} "
                "(any_version=True goes on if every stored query is still asked bit for bit)"
            )
    if found:
        raise DifferentStudy(
            f"{path}: holds another study than the one asked for:\n{listed(found)}\n"
            "give what the file was made with, or choose another file name"
        )


def _series(version: str) -> list[str]:
    """Return the part of a version that may change trajectories: 0.1 of 0.1.3."""
    return version.split(".")[:2]


# ---- replay ---------------------------------------------------------------------------------------------------


def events_of(journal: Journal) -> Iterator[Event]:
    """Yield what the journal has for :meth:`Study.replay`."""
    for row in journal.all_answers():
        query = Query(row.step, row.index, as_array(row.x), Purpose(row.purpose))
        yield Event(query, row.response(), row.elapsed)


def _refuse(path: Path, query: Query, stored: Vector) -> None:
    raise DifferentStudy(
        f"{path}: query {query.step}.{query.index}: the stored x is not the one asked now "
        f"({_first_difference(stored, query.x)}); the leader, the solver's code or a library "
        "has changed since: use what the file was written with"
    )


def _first_difference(stored: Any, present: Any) -> str:
    if stored.shape != present.shape:
        return f"{stored.size} entries then, {present.size} now"
    entry = int(np.nonzero(stored.view(np.int64) != present.view(np.int64))[0][0])
    return f"x[{entry}] was {stored[entry]!r}, is {present[entry]!r}"


# ---- looking on -------------------------------------------------------------------------------------------------


class Summary(NamedTuple):
    """What a study file says by itself, without its problem."""

    header: dict[str, Any]
    answers: int
    failures: int
    steps: int
    seconds: float


def summary(path: str | os.PathLike[str]) -> Summary:
    """Read the counts of a study file, also while it is being written; nothing is replayed."""
    journal = open_journal(Path(path), read_only=True)
    try:
        answers = failures = steps = 0
        seconds = 0.0
        for row in journal.all_answers():
            answers += 1
            failures += bool(row.failure)
            steps = max(steps, row.step)
            seconds = max(seconds, row.elapsed)
        return Summary(json.loads(journal.header or "{}"), answers, failures, steps, seconds)
    finally:
        journal.close()
