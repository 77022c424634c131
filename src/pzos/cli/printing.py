"""How the commands print: JSON for scripts, aligned text for people, a line of bars for the course of a number."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable
from typing import Any

from pzos.base.checks import printable

_BARS = "▁▂▃▄▅▆▇█"


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")


def emit(args: argparse.Namespace, data: Any, text: str) -> None:
    """Print ``data`` as JSON if asked for, else ``text``."""
    sys.stdout.write((as_json(data) if args.json else printable(text)) + "\n")


def as_json(data: Any) -> str:
    """Return ``data`` as JSON in lines; numbers that are not finite become null."""
    return json.dumps(_plain(data), indent=1)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def sparkline(values: Iterable[float], width: int = 60) -> str:
    """Return the course of the values as a line of bars, at most ``width`` of them; unknown ones are blank.

    >>> sparkline([3.0, 2.0, float("nan"), 1.0])
    '█▅ ▁'
    """
    numbers = [float(value) for value in values]
    if len(numbers) > width:
        numbers = [numbers[round(at * (len(numbers) - 1) / (width - 1))] for at in range(width)]
    known = [number for number in numbers if math.isfinite(number)]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known) or 1.0
    top = len(_BARS) - 1
    return "".join(_BARS[round((n - low) / span * top)] if math.isfinite(n) else " " for n in numbers)
