"""Answers as an asset: what the followers answered, in a table that outlives the study and the cost it was asked for.

The answers are the followers', not the cost's: whoever changes the cost, its weights or the set begins with all of them
(``solve(..., answers=table)``). A table comes from arrays, a result, a study file, CSV or Parquet; tables are merged
by ``+``, and written by :meth:`Answers.write`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults, aligned, check_entries, set_fields, shown
from pzos.base.columns import Column, Columns, as_columns
from pzos.base.errors import InvalidInput
from pzos.base.types import Matrix, Vector, float_array
from pzos.problem.follower import is_other_version, name_of_followers

if TYPE_CHECKING:
    from pathlib import Path

    from pzos.methods.solver import Told
    from pzos.problem.problem import Known

_NAN = float("nan")
#: Answers at one x that differ by less than this part of the largest entry differ by rounding.
_ROUNDING = 1e-9
_SHOWN = 4


class Contradiction(NamedTuple):
    """Different answers at one x: their rows, by how much they differ at most, and what that is.

    It is noise where one source contradicts itself, and an error (other followers, other units, a slip of the pen)
    where only different sources do; then the last source is believed.
    """

    rows: tuple[int, ...]
    difference: float
    noise: bool

    def __str__(self) -> str:
        said = "noise" if self.noise else "an error: its sources disagree"
        return f"rows {', '.join(map(str, self.rows))} differ by {self.difference:.2g} at one x: {said}"


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Answers:
    """Pairs of x and y*(x), one per row, with what is known of each.

    ``seconds`` is what an answer took, ``gap`` the followers' own, ``failure`` why there is none (its y is NaN),
    ``source`` the file or run it is from, ``told`` its date, ``follower`` whose answer it is, and ``trust`` is "prior"
    where it may no longer be true (:meth:`trusting`); a single value holds for all rows, and what is not known is NaN
    or empty. ``decisions`` and ``responses`` name the columns of x and y
    (text, pairs of name and unit, or :class:`pzos.Columns`).

    >>> table = Answers([[0.0], [1.0]], [[2.0], [3.0]], source="by hand") + Answers([[1.0]], [[3.0]])
    >>> len(table), table.y[:, 0]
    (2, array([2., 3.]))
    """

    x: Matrix
    y: Matrix
    seconds: Vector
    gap: Vector
    failure: tuple[str, ...]
    source: tuple[str, ...]
    told: tuple[str, ...]
    follower: tuple[str, ...]
    trust: tuple[str, ...]
    decisions: tuple[Column, ...]
    responses: tuple[Column, ...]

    def __init__(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        seconds: npt.ArrayLike = _NAN,
        gap: npt.ArrayLike = _NAN,
        failure: str | Sequence[str] = "",
        source: str | Sequence[str] = "",
        told: str | Sequence[str] = "",
        follower: str | Sequence[str] = "",
        trust: str | Sequence[str] = "",
        decisions: Columns | Sequence[Any] = (),
        responses: Columns | Sequence[Any] = (),
    ) -> None:
        faults = Faults("Answers")
        rows_x, rows_y = _rows(faults, "x", x), _rows(faults, "y", y)
        faults.raise_if_any()
        count = len(rows_x)
        faults.check(len(rows_y) == count, "y", rows_y, f"{count} rows, as x has", "give one answer per point")
        texts = {"failure": failure, "source": source, "told": told, "follower": follower, "trust": trust}
        columns = {name: _texts(faults, name, given, count) for name, given in texts.items()}
        numbers = {name: _numbers(faults, name, given, count) for name, given in (("seconds", seconds), ("gap", gap))}
        names = {
            name: as_columns(faults, name, given, rows.shape[1]).of(rows.shape[1])
            for name, given, rows in (("decisions", decisions, rows_x), ("responses", responses, rows_y))
        }
        faults.raise_if_any()
        check_entries(faults, "x", rows_x, np.isfinite(rows_x), "a finite number")
        failed = np.array([bool(reason) for reason in columns["failure"]], dtype=bool)
        rows_y[failed] = _NAN
        told_y = np.isfinite(rows_y) | failed[:, None]
        check_entries(faults, "y", rows_y, told_y, "a finite number", "correct it, or give a failure for its row")
        faults.raise_if_any()
        for array in (rows_x, rows_y, *numbers.values()):
            array.setflags(write=False)
        set_fields(self, x=rows_x, y=rows_y, **columns, **numbers, **names)

    @classmethod
    def open(cls, path: str | os.PathLike[str], **columns: Any) -> Answers:
        """Read a study file, a CSV or a Parquet file.

        Of a study these are the answers of its run and those it was begun with. A table has columns ``x0``, ``x1``, ...
        and ``y0``, ``y1``, ... as ``pzos export`` and :meth:`write` make them; of one's own files ``x=["toll A", ...]``
        and ``y=[...]`` say which columns are meant. ``seconds``, ``gap``, ``failure``, ``source``, ``told`` and
        ``follower`` are taken where they are there.
        """
        from pzos.answers.table_files import read_table
        from pzos.base.frames import is_study

        if is_study(path):
            from pzos.durable.given import answers_of

            if columns:
                raise InvalidInput(f"{path}: is a study: expected no names of columns; leave x and y out")
            return answers_of(path)
        return read_table(path, **columns)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the table as .csv (all digits) or .parquet (extra ``parquet``), to be opened again; returns where."""
        from pzos.answers.table_files import write_table

        return write_table(self, path)

    # ---- looking at it --------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        rows = [("answers", f"{len(self)}, of {self.y.shape[1]} entries, to {self.x.shape[1]} decisions")]
        for name, columns in (("decisions", self.decisions), ("responses", self.responses)):
            if any(column.name for column in columns):
                rows.append((name, _listed([str(column) for column in columns])))
        for name, texts in (("from", self.source), ("followers", self.follower)):
            counts = Counter(text for text in texts if text)
            if counts:
                rows.append((name, _listed([f"{text} ({times})" for text, times in counts.items()])))
        dates = sorted(filter(None, self.told))
        if dates:
            rows.append(("told", dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"))
        failed = sum(map(bool, self.failure))
        if failed:
            rows.append(("failed", str(failed)))
        rows += [("contradiction", str(found)) for found in self.contradictions[:_SHOWN]]
        if len(self.contradictions) > _SHOWN:
            rows.append(("", f"and {len(self.contradictions) - _SHOWN} more contradictions"))
        return aligned(rows)

    @property
    def origin(self) -> str:
        """Return in a line how many there are, where they are from, and whether they contradict each other."""
        counts = Counter(text or "unnamed" for text in self.source)
        said = f"{len(self)} from {_listed([f'{text} ({times})' for text, times in counts.items()])}"
        noisy = sum(found.noise for found in self.contradictions)
        if noisy:
            said += f"; at {noisy} points they differ: noise"
        old = sum(trust == PRIOR for trust in self.trust)
        if old:
            said += f"; {old} are old and only shape the prior"
        wrong = [found for found in self.contradictions if not found.noise]
        return said + (f"; at {len(wrong)} points sources disagree, and the last is believed" if wrong else "")

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Return where answers at one x differ by more than rounding."""
        return tuple(found for rows in self._repeated() if (found := self._contradiction(rows)) is not None)

    def _repeated(self) -> list[list[int]]:
        """Return the rows of each x, in order; failures left out."""
        groups: dict[bytes, list[int]] = {}
        for row, point in enumerate(self.x + 0.0):  # minus zero is zero
            if not self.failure[row]:
                groups.setdefault(point.tobytes(), []).append(row)
        return list(groups.values())

    def _contradiction(self, rows: list[int]) -> Contradiction | None:
        different = self._different(rows)
        if len(different) < 2:
            return None
        apart = float(np.max(np.ptp(self.y[rows], axis=0)))
        inside = any(
            len(self._different([row for row in rows if self.source[row] == source])) > 1
            for source in {self.source[row] for row in rows}
        )
        return Contradiction(tuple(rows), apart, inside)

    def _different(self, rows: list[int]) -> list[int]:
        """Return the rows among these whose answers are not those of another one before, up to rounding."""
        kept: list[int] = []
        for row in rows:
            size = _ROUNDING * float(np.abs(self.y[row]).max())
            if all(float(np.abs(self.y[row] - self.y[other]).max()) > size for other in kept):
                kept.append(row)
        return kept

    # ---- using it -------------------------------------------------------------------------------------------------

    def pairs(self) -> tuple[tuple[Vector, Vector], ...]:
        """Return what a method may learn from: (x, y) without failures; each answer where there is noise, else one."""
        kept = []
        for rows in self._repeated():
            found = self._contradiction(rows)
            kept += rows[:1] if found is None else self._different(rows) if found.noise else rows[-1:]
        return tuple((self.x[row], self.y[row]) for row in sorted(kept))

    def chosen(self, rows: npt.NDArray[np.bool_] | Sequence[int]) -> Answers:
        """Return the table of these rows: a mask, or their numbers."""
        index = np.asarray(rows)
        numbers = (np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64)).tolist()
        return self._with(
            x=self.x[numbers],
            y=self.y[numbers],
            seconds=self.seconds[numbers],
            gap=self.gap[numbers],
            **{name: tuple(getattr(self, name)[row] for row in numbers) for name in _TEXT_COLUMNS},
        )

    def labelled(self, *, source: str | None = None, follower: str | None = None, told: str | None = None) -> Answers:
        """Return the same answers under another source, of other followers (empty: of any), or of another date."""
        given = {"source": source, "follower": follower, "told": told}
        return self._with(**{name: (text,) * len(self) for name, text in given.items() if text is not None})

    def _with(self, **changed: Any) -> Answers:
        columns = {name: getattr(self, name) for name in self.__dataclass_fields__} | changed
        return Answers(columns.pop("x"), columns.pop("y"), **columns)

    def __add__(self, other: Answers) -> Answers:
        return self.merge(other) if isinstance(other, Answers) else NotImplemented

    def merge(self, other: Answers) -> Answers:
        """Return the rows of both, those of ``other`` last; the same answer at the same x is there once.

        Tables of other dimensions, or whose columns have other names or units, are refused.
        """
        faults = Faults("Answers.merge")
        if not faults.check(isinstance(other, Answers), "other", other, "pzos.Answers", "use Answers.open"):
            raise faults.error()
        for name, what in (("decisions", "x"), ("responses", "y")):
            own, others = getattr(self, name), getattr(other, name)
            expected = f"{len(own)} columns"
            if faults.check(len(own) == len(others), what, len(others), expected, "merge what belongs together"):
                _check_names(faults, name, own, others)
        faults.raise_if_any()
        both: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in _TEXT_COLUMNS}
        for name in ("x", "y", "seconds", "gap"):
            both[name] = np.concatenate([getattr(self, name), getattr(other, name)])
        for name in ("decisions", "responses"):
            both[name] = tuple(map(_joined, getattr(self, name), getattr(other, name)))
        everything = self._with(**both)
        return everything.chosen(list(everything._first_of_each()))

    def _first_of_each(self) -> Iterator[int]:
        seen = set()
        for row, (x, y) in enumerate(zip(self.x + 0.0, self.y + 0.0, strict=True)):
            told = x.tobytes(), self.failure[row] or y.tobytes()
            if told not in seen:
                seen.add(told)
                yield row

    def check(self, faults: Faults, known: Known) -> None:
        """Note why these cannot be answers to the problem: other dimensions, or other followers by name."""
        wide = self.x.shape[1]
        faults.check(wide == known.dimension, "answers", f"table of {wide} decisions", f"{known.dimension} decisions, "
                     "as the problem has", "give the answers of this problem's followers")  # fmt: skip
        ours = name_of_followers(known.follower)
        trusted = {text for text, trust in zip(self.follower, self.trust, strict=True) if trust != PRIOR}
        others = sorted({name for text in trusted if (name := text.partition(" @")[0]) and ours != name})
        if ours:
            remedy = "if they answer alike say so, answers.labelled(follower=''); else answers.trusting(...)"
            faults.check(not others, "answers", f"of {_listed(others)}", f"answers of {ours}", remedy)

    def check_names(self, faults: Faults, known: Known) -> None:
        """Note where decisions or answers are called otherwise, or measured in other units, than in the problem."""
        entries, named = self.y.shape[1], len(known.responses.each)
        faults.check(named in (0, entries), "answers", f"table of {entries} entries of y", f"{named} entries, "
                     "as the problem has", "give the answers of this problem's followers")  # fmt: skip
        _check_names(faults, "answers", known.decisions.of(len(self.decisions)), self.decisions)
        _check_names(faults, "answers", known.responses.of(entries), self.responses)

    @property
    def follower_names(self) -> list[str]:
        """Return by row the name of the followers, without their version."""
        return [text.partition(" @")[0] for text in self.follower]

    def trusting(self, since: str) -> Answers:
        """Return the table in which older answers only shape the prior: "trust since" a date, or a version.

        ``since`` is a date (2026-05-01): what was told before, or without a date, may no longer be true. Or it is the
        name of the followers (``follower_name``) as they are now: so may what is not by name theirs.
        """
        dated = isinstance(since, str) and since[:1].isdigit()
        if not isinstance(since, str) or not since or (dated and not _is_date(since)):
            raise InvalidInput(f"trusting: since = {shown(since)}: expected a date or a name; try 2026-05-01")
        if dated:
            old = [told[: len(since)] < since or not told for told in self.told]
        else:
            old = [name != since for name in self.follower_names]
        return self._with(trust=tuple(PRIOR if aged else before for aged, before in zip(old, self.trust, strict=True)))

    def split(self, known: Known) -> tuple[Told, Told]:
        """Return the pairs that hold for these followers, and those that may no longer be true.

        Besides rows marked by :meth:`trusting` those are of followers of this name whose code was another.
        """
        old = np.array(
            [
                trust == PRIOR or is_other_version(follower, known.follower)
                for follower, trust in zip(self.follower, self.trust, strict=True)
            ]
        )
        if not old.any():
            return self.pairs(), ()
        return () if old.all() else self.chosen(~old).pairs(), self.chosen(old).pairs()


#: What ``trust`` says of a row that may no longer be true.
PRIOR = "prior"
_TEXT_COLUMNS = ("failure", "source", "told", "follower", "trust")


def _rows(faults: Faults, name: str, value: npt.ArrayLike) -> Matrix:
    try:
        array = float_array(value)
    except (TypeError, ValueError):
        faults.check(False, name, value, "rows of numbers", "give one row per answer")
        return np.zeros((0, 0))
    if array.ndim == 1:
        array = array[:, None]
    faults.check(array.ndim == 2 and array.size > 0, name, array, "one row per answer", "give a 2-D array")
    return array


def _numbers(faults: Faults, name: str, value: npt.ArrayLike, count: int) -> Vector:
    try:
        return np.array(np.broadcast_to(float_array(value), count))
    except (TypeError, ValueError):
        faults.check(False, name, value, f"a number, or {count} of them", "leave out what is not known")
        return np.full(count, _NAN)


def _texts(faults: Faults, name: str, value: Any, count: int) -> tuple[str, ...]:
    texts = (value,) * count if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else ()
    fits = len(texts) == count and all(isinstance(text, str) for text in texts)
    faults.check(fits, name, value, f"text, or {count} of them", "leave out what is not known")
    return texts if fits else ("",) * count


def _is_date(text: str) -> bool:
    """Tell whether the text begins with a day as ISO 8601 writes it, so that texts are in the order of their dates."""
    try:
        return date.fromisoformat(text[:10]).isoformat() == text[:10]
    except ValueError:
        return False


def _check_names(faults: Faults, name: str, own: Sequence[Column], others: Sequence[Column]) -> None:
    wrong = [f"{a} and {b}" for a, b in zip(own, others, strict=True) if _clash(a, b)]
    faults.check(not wrong, name, _listed(wrong), "the same names and units in both", "rename, convert")


def _clash(a: Column, b: Column) -> bool:
    return any(one and other and one != other for one, other in zip(a[:2], b[:2], strict=True))


def _joined(a: Column, b: Column) -> Column:
    return Column(a.name or b.name, a.unit or b.unit, b.digits if a.digits is None else a.digits)


def _listed(texts: Sequence[str]) -> str:
    more = f", ... ({len(texts)} in all)" if len(texts) > _SHOWN else ""
    return ", ".join(shown(text).strip("'") for text in texts[:_SHOWN]) + more
