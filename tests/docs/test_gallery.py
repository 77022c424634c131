"""The gallery's small pictures show the thing (a game, a city, a schedule), not how a number falls over queries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent.parent / "examples").glob("plot_*.py"))
_NUMBER = re.compile(r"# sphinx_gallery_thumbnail_number = (\d+)")


def figures(text: str) -> list[str]:
    """Return the code of each figure of an example, from where it is made to the next one."""
    return re.split(r"plt\.subplots\(", text)[1:]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_small_picture_is_no_curve_over_queries(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    named = _NUMBER.search(text)
    shown = figures(text)[int(named[1]) - 1 if named else 0]
    panels = re.match(r"1, 2", shown) is not None  # of two panels one may be a curve
    assert panels or not re.search(r"xlabel=\"(queries|step\b)", shown), example.name
    assert named is None or len(figures(text)) > 1


def test_it_would_see_a_curve() -> None:
    assert len(EXAMPLES) > 10
    assert re.search(r"xlabel=\"(queries|step\b)", 'axes.set(xlabel="queries to the attacker")')
