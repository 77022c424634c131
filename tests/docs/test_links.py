"""Links between the pages lead somewhere, pictures exist and say what they show, versions agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pzos

ROOT = Path(__file__).parents[2]
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
SITE = [path for path in (ROOT / "docs").rglob("*.md") if not {"_build", "gallery"} & set(path.parts)]
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)


def found(page: Path, target: str) -> bool:
    """Return whether a link of a page leads to a file, or to a page that the gallery is made of."""
    place = target.split("#")[0]
    if target.startswith(("http:", "https:", "#")):
        return True
    if place.startswith("gallery/"):
        return place == "gallery/index.rst" or (ROOT / "examples" / place[8:].replace(".rst", ".py")).is_file()
    return (page.parent / place).exists()


@pytest.mark.parametrize("page", [*TOP, *SITE], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere_and_pictures_have_words(page: Path) -> None:
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    for picture, words, target in _LINK.findall(text):
        assert found(page, target), f"{page.name}: {target}"
        assert words.strip() or not picture, f"{page.name}: {target} has no text for those who cannot see it"


def test_a_dead_link_is_found() -> None:
    assert not found(ROOT / "README.md", "docs/nowhere.md")
    assert not found(ROOT / "docs" / "index.md", "gallery/plot_nothing.rst")


def test_versions_agree() -> None:
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    assert cited is not None
    assert cited[1] == pzos.__version__


@pytest.mark.parametrize("page", [*TOP[:2], *SITE], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"`((?:src|tests|benchmarks|examples)/[\w./-]+)`", page.read_text(encoding="utf-8"))
    missing = [path for path in named if "NAME" not in path and not (ROOT / path).exists()]
    assert not missing, f"{page.name} names {missing}"
