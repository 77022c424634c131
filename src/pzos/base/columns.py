"""What the entries of a decision or of an answer are called, in which unit, and to how many digits people read them.

One idea for everything that people see: tables, forms, pages and the heads of CSV files. It never changes a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pzos.base.checks import Faults, Must
from pzos.base.types import Vector

_MOST_DIGITS = 15
#: More text than this is not kept at the head of a study file.
_MOST_KEPT = 1 << 18


class Column(NamedTuple):
    """What one decision or one entry of the answers is called, its unit, and its digits after the point."""

    name: str = ""
    unit: str = ""
    digits: int | None = None

    def __str__(self) -> str:
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def label(self, letter: str, at: int) -> str:
        """Return what it is called: its name or, without one, x[0], and its unit."""
        return str(self._replace(name=self.name or f"{letter}[{at}]"))

    def head(self, letter: str, at: int) -> str:
        """Return the head of its column in a file: ``x.name [unit]``, or ``x0``."""
        if not self.name and not self.unit:
            return f"{letter}{at}"
        return f"{letter}.{self._replace(name=self.name or str(at))}"

    def shown(self, value: float) -> str:
        """Return a number as people read it.

        >>> Column(digits=2).shown(-0.001), Column().shown(1 / 3), Column().shown(float("nan"))
        ('0.00', '0.333333', 'not known')
        """
        if value != value:
            return "not known"
        return f"{value:.6g}" if self.digits is None else f"{round(value, self.digits) + 0.0:,.{self.digits}f}"


class Columns:
    """Names, units and digits of all decisions, or of all entries of the answers.

    ``units`` and ``digits`` are one for all, or one each.

    >>> Columns(names=["centre", "ring"], units="EUR", digits=2).of(3)[1:]
    (Column(name='ring', unit='EUR', digits=2), Column(name='', unit='', digits=None))
    """

    __slots__ = ("each", "others")
    each: tuple[Column, ...]
    others: Column

    def __init__(
        self, names: Sequence[str] = (), units: str | Sequence[str] = "", digits: int | Sequence[int] | None = None
    ) -> None:
        faults = Faults("Columns")
        parts: dict[str, Any] = {"names": names if names != () else "", "units": units, "digits": digits}
        lists = {name: tuple(part) for name, part in parts.items() if _is_list(part)}
        faults.check(not isinstance(names, str), "names", names, "one name for each entry", "put them into a list")
        for name, part in parts.items():
            for entry in lists.get(name, (part,)):
                (_DIGITS if name == "digits" else _LINE).note(faults, name, entry)
        if len({len(entries) for entries in lists.values()}) > 1:
            said = ", ".join(f"{len(entries)} {name}" for name, entries in lists.items())
            faults.add(f"{said}: expected as many of each, one per entry; a single unit or number of digits is for all")
        twice = [text for text, times in Counter(map(str, lists.get("names", ()))).items() if text and times > 1]
        faults.check(not twice, "names", twice, "each name once", "tell them apart")
        faults.raise_if_any()
        count = max(map(len, lists.values()), default=0)
        self.each = tuple(map(Column, *(lists.get(name, (part,) * count) for name, part in parts.items())))
        self.others = Column() if lists else Column("", *list(parts.values())[1:])

    def of(self, count: int) -> tuple[Column, ...]:
        """Return what ``count`` entries are called; what was not named has no name."""
        return self.each[:count] + (self.others,) * (count - len(self.each))

    def in_words(self, vector: Sequence[float] | Vector) -> str:
        """Return a vector as people read it.

        >>> Columns(["tram", "bus"], "trips/h", 0).in_words([10.0, 2.0])
        'tram 10 trips/h, bus 2 trips/h'
        """
        pairs = zip(self.of(len(vector)), vector, strict=True)
        return ", ".join(f"{column.name} {column.shown(value)} {column.unit}".strip() for column, value in pairs)

    def __bool__(self) -> bool:
        return bool(self.each) or self.others != Column()

    def __repr__(self) -> str:
        return f"Columns({', '.join(map(str, self.each)) or self.others})"

    def kept(self) -> dict[str, list[Any]] | None:
        """Return this as a file keeps it; None if there is nothing to keep, or too much."""
        if not self or sum(len(column.name) + len(column.unit) + 16 for column in self.each) > _MOST_KEPT:
            return None
        return {"each": [list(column) for column in self.each], "others": list(self.others)}


def read_columns(kept: Any) -> Columns:
    """Return what :meth:`Columns.kept` wrote; nothing if a file says anything else."""
    found = Columns()
    rows = (kept.get("each"), kept.get("others")) if isinstance(kept, Mapping) else (None, None)
    each, others = (rows[0], rows[1]) if isinstance(rows[0], list) else ([], None)
    if others is not None and all(map(_is_row, [*each, others])):
        found.each, found.others = tuple(Column(*row) for row in each), Column(*others)
    return found


def as_columns(faults: Faults, name: str, value: Any, count: int | None = None) -> Columns:
    """Return what was given for ``name``: Columns, their table, or a list of names or of (name, unit) pairs."""
    if value is None or isinstance(value, Columns):
        columns = value or Columns()
    elif isinstance(value, Mapping) and set(value) <= {"names", "units", "digits"}:
        columns = faults.made(Columns, *(value.get(key, default) for key, default in _DEFAULTS.items())) or Columns()
    elif _is_list(value) and all(map(_is_given, value)):
        rows = [Column(row) if isinstance(row, str) else Column(*row) for row in value]
        columns = Columns()
        columns.each = tuple(rows)
    else:
        faults.check(False, name, value, "names, or pairs of name and unit", "or pzos.Columns(names=, units=, digits=)")
        return Columns()
    if count is not None and columns.each:
        fits = len(columns.each) == count
        faults.check(fits, name, columns, f"{count} names, or pairs of name and unit", "name each column, or none")
        return columns if fits else Columns()
    return columns


_DEFAULTS: dict[str, Any] = {"names": (), "units": "", "digits": None}


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_digits(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value <= _MOST_DIGITS)


_LINE = Must(_is_line, "lines of text", "one for each entry")
A_LINE = Must(_is_line, "a line of text", "e.g. EUR/h")
_DIGITS = Must(_is_digits, f"whole numbers from 0 to {_MOST_DIGITS}", "as many digits as people read")


def _is_row(value: Any) -> bool:
    return (
        _is_list(value)
        and len(value) <= len(Column._fields)
        and all(map(_is_line, value[:2]))
        and all(map(_is_digits, value[2:]))
    )


def _is_given(value: Any) -> bool:
    return _is_line(value) or _is_row(value)
