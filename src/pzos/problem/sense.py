"""Whether F is to go down or up, in the words people use for it."""

from __future__ import annotations

from typing import Any, Literal

from pzos.base.checks import Faults, Must
from pzos.base.types import Sense

AnySense = Literal["min", "max", "minimize", "maximize", "minimise", "maximise"]
_WORDS: dict[str, Sense] = {
    "min": "min", "minimize": "min", "minimise": "min", "max": "max", "maximize": "max", "maximise": "max",
}  # fmt: skip
_SENSE = Must(lambda sense: isinstance(sense, str) and sense in _WORDS, "'min' or 'max'", "say what to do with F")


def noted_sense(faults: Faults, sense: Any) -> Sense:
    """Return "min" or "max" for a word that means it, or note that it means neither."""
    return _WORDS[sense] if _SENSE.note(faults, "sense", sense) else "min"


def as_sense(where: str, sense: Any) -> Sense:
    """Return "min" or "max" for a word that means it; InvalidInput for any other."""
    _SENSE.require(where, "sense", sense)
    return _WORDS[sense]
