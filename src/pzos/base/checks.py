"""What arguments must be, declared as data and checked in one place; every fault of a call is reported at once.

A field of a frozen value says what it must be where it is declared, and ``check_fields`` checks all of them:

    @dataclass(frozen=True, slots=True)
    class Rule:
        attempts: int = checked(whole(1, "try 3"), default=3)
        wait: float = checked(at_least(0, "seconds, 0 or more", "try wait=1.0"), default=1.0)

        def __post_init__(self) -> None:
            check_fields(self)

Arguments of a function are checked by the same constraints:

    faults = Faults("solve")
    whole(1, "try 300").note(faults, "queries", queries)
    faults.raise_if_any()
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from pzos.base.errors import InvalidInput
from pzos.base.types import Matrix, Vector, as_number, float_array

_FAULTS_SHOWN = 20  # of more, the rest is only counted

_LIKE = 0.5  # how alike two words must be for one to be meant by the other

T = TypeVar("T")


def shown(value: Any, limit: int = 60) -> str:
    """Return a short, one-line form of ``value`` for an error message."""
    if isinstance(value, np.ndarray) and value.size > 6:
        text = f"array of shape {value.shape}, dtype {value.dtype}"
    else:
        text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


#: Control characters, and those that turn the direction of writing or cannot be encoded.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def printable(text: str) -> str:
    """Return text from a file as a terminal or a page may have it: characters that steer either become escapes.

    >>> printable("a" + chr(27) + "[2Jb")
    'a\\\\x1b[2Jb'
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def aligned(rows: Iterable[tuple[str, str]], width: int = 0) -> str:
    """Return names and texts in two columns, the first ``width`` wide or as wide as the longest name needs."""
    rows = list(rows)
    width = max(width, *(len(name) for name, _ in rows))
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the one of ``names`` that was probably meant, or "" if none is near.

    >>> nearest("pzso", ["PZOS", "ZOS"])
    'PZOS'
    """
    word = name.lower()

    def likeness(other: str) -> tuple[float, bool]:
        return difflib.SequenceMatcher(None, word, other.lower()).ratio(), other.lower()[:1] == word[:1]

    best = max(names, key=likeness, default="")
    return best if likeness(best)[0] >= _LIKE else ""


def counted(count: int, noun: str) -> str:
    """Return how many there are of a thing, in words that fit one and many.

    >>> counted(1, "query"), counted(2, "query"), counted(0, "answer")
    ('1 query', '2 queries', '0 answers')
    """
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun if count == 1 else many}"


class Faults:
    """Collects every fault of a call, so that the user sees them all in one error.

    >>> faults = Faults("PZOS")
    >>> faults.check(-1.0 > 0, "step", -1.0, "a positive number", "try step=0.05")
    False
    >>> faults.raise_if_any()
    Traceback (most recent call last):
    pzos.base.errors.InvalidInput: PZOS: step = -1.0: expected a positive number; try step=0.05
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.messages: list[str] = []

    def check(self, ok: bool | np.bool_, argument: str, value: Any, expected: str, remedy: str) -> bool:
        """Note a fault unless ``ok``; returns ``ok`` so that dependent checks can be skipped."""
        if not ok:
            self.messages.append(f"{argument} = {shown(value)}: expected {expected}; {remedy}")
        return bool(ok)

    def add(self, message: str) -> None:
        """Note a fault in words of its own."""
        self.messages.append(message)

    def made(self, kind: Callable[..., T], *given: Any) -> T:
        """Return ``kind(*given)``; its faults become those of this call, which must raise them before it goes on."""
        try:
            return kind(*given)
        except InvalidInput as error:
            self.messages += error.faults or (str(error),)
            return cast("T", None)

    def error(self) -> InvalidInput:
        """Return one InvalidInput that lists all faults noted so far (the first twenty, and how many more)."""
        listing = [f"\n  - {message}" for message in self.messages[:_FAULTS_SHOWN]]
        if len(self.messages) > _FAULTS_SHOWN:
            listing.append(f"\n  - and {len(self.messages) - _FAULTS_SHOWN} more faults")
        several = f"{self.where}: {len(self.messages)} faults{''.join(listing)}"
        error = InvalidInput(self.alone(self.messages[0]) if len(self.messages) == 1 else several)
        error.faults = tuple(self.messages)
        return error

    def alone(self, message: str) -> str:
        """Return the sentence of a fault that is the only one."""
        return f"{self.where}: {message}"

    def raise_if_any(self) -> None:
        """Raise one InvalidInput that lists all faults noted so far."""
        if self.messages:
            raise self.error()


def require(ok: bool | np.bool_, where: str, argument: str, value: Any, expected: str, remedy: str) -> None:
    """Raise InvalidInput unless ``ok``; for a call with one thing to check."""
    faults = Faults(where)
    faults.check(ok, argument, value, expected, remedy)
    faults.raise_if_any()


class Must(NamedTuple):
    """What an argument must be: a test, the expectation in words, and what to try instead."""

    holds: Callable[[Any], bool]
    expected: str
    remedy: str

    def note(self, faults: Faults, argument: str, value: Any) -> bool:
        """Note a fault unless the value is as it must be; returns whether it is."""
        return faults.check(self.holds(value), argument, value, self.expected, self.remedy)

    def require(self, where: str, argument: str, value: Any) -> None:
        """Raise InvalidInput unless the value is as it must be; for a call with one argument to check."""
        require(self.holds(value), where, argument, value, self.expected, self.remedy)

    def or_none(self) -> Must:
        """Return the same constraint, with None allowed."""
        return self._replace(holds=lambda value: value is None or self.holds(value))


def is_whole(value: Any, least: int = 0, most: int | None = None) -> bool:
    """Tell whether ``value`` is a whole number from ``least`` to ``most``; True and False are none."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        return False
    return least <= int(value) and (most is None or int(value) <= most)


def whole(least: int, remedy: str, *, most: int | None = None, expected: str = "") -> Must:
    """A whole number, ``least`` or more, and ``most`` or less where that is given."""
    words = f"a whole number, {least} or more" if most is None else f"a whole number from {least} to {most}"
    return Must(lambda value: is_whole(value, least, most), expected or words, remedy)


def number(holds: Callable[[float], bool], expected: str, remedy: str, *, finite: bool = True) -> Must:
    """A single real number for which ``holds``; infinities are none unless ``finite`` is False."""

    def fits(value: Any) -> bool:
        plain = as_number(value)
        return plain is not None and (isfinite(plain) or not finite) and bool(holds(plain))

    return Must(fits, expected, remedy)


def positive(remedy: str, expected: str = "a positive number") -> Must:
    """A finite number above 0."""
    return number(lambda value: value > 0, expected, remedy)


def at_least(least: float, expected: str, remedy: str) -> Must:
    """A finite number, ``least`` or more."""
    return number(lambda value: value >= least, expected, remedy)


def one_of(choices: tuple[Any, ...], remedy: str = "choose one", expected: str = "") -> Must:
    """One of a few values."""
    words = expected or " or ".join(filter(None, [", ".join(map(repr, choices[:-1])), repr(choices[-1])]))

    def fits(value: Any) -> bool:  # an array compared with a word would have no truth value
        return any(value is choice or (isinstance(value, type(choice)) and value == choice) for choice in choices)

    return Must(fits, words, remedy)


def instance_of(kind: type, expected: str, remedy: str) -> Must:
    """An instance of ``kind``."""
    return Must(lambda value: isinstance(value, kind), expected, remedy)


class Constraint(Protocol):
    """Whatever notes faults as a :class:`Must` does; of use where the remedy depends on the value."""

    def note(self, faults: Faults, argument: str, value: Any) -> bool:
        """Note a fault unless the value is as it must be; returns whether it is."""


def checked(must: Constraint, *, later: bool = False, **settings: Any) -> Any:
    """Return a dataclass field that carries what it must be; ``settings`` are those of ``dataclasses.field``.

    A field that came ``later`` is not described in files while it has its default, as in files from before.
    """
    return dataclasses.field(metadata={"must": must, "later": later}, **settings)


def note_fields(faults: Faults, value: Any) -> None:
    """Note a fault for every field of a dataclass that is not as it was declared to be."""
    for field in dataclasses.fields(value):
        if "must" in field.metadata:
            field.metadata["must"].note(faults, field.name, getattr(value, field.name))


def check_fields(value: Any) -> None:
    """Raise one InvalidInput for all the fields of a dataclass that are not as they were declared to be."""
    faults = Faults(type(value).__name__)
    note_fields(faults, value)
    faults.raise_if_any()


def set_fields(value: Any, **fields: Any) -> None:
    """Set fields of a frozen dataclass, from inside its ``__init__`` or ``__post_init__`` and nowhere else."""
    for name, content in fields.items():
        object.__setattr__(value, name, content)


def frozen_numbers(faults: Faults, name: str, value: npt.ArrayLike) -> Vector:
    """Return a number or a vector as a read-only float64 array, or note that it is neither (and return zero)."""
    try:
        array = float_array(value)
    except (TypeError, ValueError):
        faults.check(False, name, value, "a number or a vector", "give numbers")
        return np.zeros(())
    faults.check(array.ndim <= 1, name, array, "a number or a vector", "flatten it")
    array.flags.writeable = False
    return array


def frozen_bounds(where: str, lower: npt.ArrayLike, upper: npt.ArrayLike) -> tuple[Vector, Vector]:
    """Return lower and upper bounds, each a number or a vector, open where infinite; raises unless they fit."""
    faults = Faults(where)
    below, above = frozen_numbers(faults, "lower", lower), frozen_numbers(faults, "upper", upper)
    faults.raise_if_any()
    for name, bound, closed in (("lower", below, np.inf), ("upper", above, -np.inf)):
        open_side = "use -inf for lower and inf for upper where a side is open"
        faults.check(not (np.isnan(bound) | (bound == closed)).any(), name, bound, "numbers", open_side)
    fits = below.ndim == 0 or above.ndim == 0 or below.shape == above.shape
    if faults.check(fits, "upper", above, f"{below.size} entries, as lower has", "give both bounds the same length"):
        faults.check(not np.any(below > above), "upper", above, "upper >= lower in every entry", "swap the bounds")
    faults.raise_if_any()
    return below, above


def frozen_array(faults: Faults, name: str, value: npt.ArrayLike) -> npt.NDArray[np.float64] | None:
    """Return a read-only float64 copy of ``value``, or note that it is no array of numbers."""
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        faults.check(False, name, value, "an array of numbers", "give one number per entry")
        return None
    array.flags.writeable = False
    return array


def frozen_indices(faults: Faults, name: str, value: npt.ArrayLike) -> npt.NDArray[np.int64] | None:
    """Return a fresh flat array of whole numbers, or note what is none."""
    array = frozen_array(faults, name, value)
    if array is None:
        return None
    good = np.isfinite(array) & (array == np.rint(array))
    check_entries(faults, name, array, good, "a whole number")
    return array.ravel().astype(np.int64) if good.all() else None


def check_entries(
    faults: Faults,
    name: str,
    array: npt.NDArray[np.float64],
    good: npt.NDArray[np.bool_],
    expected: str,
    remedy: str = "correct it",
) -> None:
    """Note the first bad entry of ``array`` by its position, and how many there are."""
    if good.all():
        return
    where = tuple(int(i) for i in np.argwhere(~good)[0])
    place = f"{name}[{', '.join(map(str, where))}]" if where else name
    count = int(good.size - np.count_nonzero(good))
    others = f" ({count} entries are wrong)" if count > 1 else ""
    faults.check(False, place, float(array[where]), expected, f"{remedy}{others}")


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
    faults = Faults(where)
    x = rows[0] if single else rows
    check_entries(faults, "x", x, np.isfinite(x), "a finite number")
    return faults.error()


class FileFaults(Faults):
    """Collects the faults of one file, each with its line."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(str(path))
        self.name = Path(path).name

    def at(self, line: int | None, message: str) -> None:
        """Note a fault on a line (None: the file as a whole)."""
        self.add(f"{self.name}:{line}: {message}" if line else f"{self.name}: {message}")

    def alone(self, message: str) -> str:
        """Return the sentence of the only fault, which names the file once."""
        return f"{self.where}{message.removeprefix(self.name)}"


def read_lines(path: str | Path) -> list[str]:
    """Return the lines of a text file, or say plainly that it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise InvalidInput(
            f"{path}: cannot be read ({error.strerror}): expected a text file; check the path"
        ) from error
