"""How the games take arrays: generous at the door, every fault named with its entry."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pzos.base.errors import Faults, InvalidInput, shown
from pzos.base.types import Matrix, Vector


def frozen_array(faults: Faults, name: str, value: npt.ArrayLike) -> npt.NDArray[np.float64] | None:
    """Return a read-only float64 copy of ``value``, or note that it is no array of numbers."""
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        faults.check(False, name, value, "an array of numbers", "give one number per entry")
        return None
    array.flags.writeable = False
    return array


def check_entries(
    faults: Faults, name: str, array: npt.NDArray[np.float64], good: npt.NDArray[np.bool_], expected: str
) -> None:
    """Note the first bad entry of ``array`` by its position, and how many there are."""
    if good.all():
        return
    where = tuple(int(i) for i in np.argwhere(~good)[0])
    place = f"{name}[{', '.join(map(str, where))}]" if where else name
    count = int(good.size - np.count_nonzero(good))
    others = f" ({count} entries are wrong)" if count > 1 else ""
    faults.check(False, place, float(array[where]), expected, f"correct it{others}")


def frozen_vector(
    faults: Faults, name: str, value: npt.ArrayLike, size: int | None, *, minimum: float, strict: bool
) -> Vector | None:
    """Return a read-only vector of ``size`` finite entries that are > or >= ``minimum``, or note the faults."""
    array = frozen_array(faults, name, value)
    if array is None:
        return None
    if not faults.check(array.ndim == 1 and array.size > 0, name, array, "a vector", "give one number each"):
        return None
    if size is not None and not faults.check(
        array.size == size, name, array, f"{size} entries, not {array.size}", "all data must have one length"
    ):
        return None
    inside = array > minimum if strict else array >= minimum
    expected = f"a finite number {'>' if strict else '>='} {minimum:g}"
    check_entries(faults, name, array, np.isfinite(array) & inside, expected)
    return array


def as_rows(where: str, x: npt.ArrayLike, dimension: int | None) -> tuple[Matrix, bool]:
    """Return ``x`` as a stack of rows (a fresh copy), and whether it was one vector; refuses NaN and other shapes.

    With ``dimension`` None rows of any length will do.
    """
    rows, single = shaped_rows(where, x, dimension)
    if not np.isfinite(rows).all():
        raise not_finite(where, rows, single)
    return rows, single


def shaped_rows(where: str, x: npt.ArrayLike, dimension: int | None) -> tuple[Matrix, bool]:
    """Return ``x`` as a stack of rows like :func:`as_rows`, but leave it to the caller to refuse NaN."""
    try:
        array = np.array(x, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InvalidInput(f"{where}: x = {shown(x)}: expected an array of numbers; give one per decision") from None
    single = array.ndim <= 1
    rows = array.reshape(1, -1) if single else array
    if rows.ndim != 2 or rows.size == 0 or dimension not in (None, rows.shape[1]):
        raise InvalidInput(
            f"{where}: x has shape {array.shape}: expected a vector of {dimension or 'some'} entries or a stack of "
            "such rows; give one entry per decision of the leader"
        )
    return rows, single


def not_finite(where: str, rows: Matrix, single: bool) -> InvalidInput:
    """Return the error that names the first entry of x that is not finite."""
    good = np.isfinite(rows)
    row, column = (int(i) for i in np.argwhere(~good)[0])
    place = f"x[{column}]" if single else f"x[{row}, {column}]"
    count = int(good.size - np.count_nonzero(good))
    others = f" ({count} entries are wrong)" if count > 1 else ""
    return InvalidInput(f"{where}: {place} = {rows[row, column]}: expected a finite number; correct it{others}")
