"""The trace of a run: one row per step, read by column name, written as CSV or as a data frame."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from math import copysign
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pzos.base.errors import InvalidInput, MissingExtra
from pzos.base.types import Vector
from pzos.methods.solver import NO_EXTRAS

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
        """Return the values of :data:`COLUMNS`."""
        return (
            self.step,
            self.queries,
            self.monitoring,
            self.value,
            self.gradient_norm_squared,
            self.step_size,
            self.seconds,
        )


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

    def __len__(self) -> int:
        return len(self._rows)

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
        column = np.full(len(self._rows), np.nan)
        for at, value in self._extras[name].items():
            column[at] = value
        return column

    def to_csv(self, path: str | Path) -> None:
        """Write the trace as CSV, every number with all its digits (a run can be compared bit for bit)."""
        columns = [self[name] for name in self.columns]
        with Path(path).open("w", newline="", encoding="utf-8") as file:
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
