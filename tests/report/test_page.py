"""The page is one file that needs no network, escapes what it is given and says what the story says."""

from __future__ import annotations

import base64
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from instances import problem
from pzos.base.errors import MissingExtra
from pzos.report.page import page, write_report, write_reproduction
from pzos.report.story import EMPTY, Curve, Motion, Point, Story, story_of

pytest.importorskip("jinja2", reason="needs the extra 'report'")

SOLVER = pzos.PZOS(step=0.05, radius=0.1)


def test_the_page_is_one_file_that_asks_nothing_of_a_network(tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    result = pzos.solve(problem(name="tolls & <b>taxes</b>"), SOLVER, steps=8)
    place = result.report(tmp_path / "deep" / "page.html", problem())
    text = place.read_text(encoding="utf-8")
    outside = re.sub(r"<script\b.*?</script>", "", text, flags=re.DOTALL)
    assert "tolls &amp; &lt;b&gt;taxes&lt;/b&gt;" in outside
    assert "<b>taxes" not in outside
    assert not re.findall(r"(?:src|href)\s*=\s*['\"]?(?:https?:)?//", outside)
    assert len(text) < 6e6
    for heading in ("Progress", "How this was made", "Where the queries went", "The decision"):
        assert heading in outside
    assert outside.count('class="plotly-graph-div') == 2
    assert f"{result.best_value:.6g}" in outside


class Read(HTMLParser):
    """What a page says: headings by level, rows of tables, links and the places they lead to; checks that tags pair."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.places: list[str] = []
        self.feed(re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL))
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag not in self.VOID:
            self.open.append(tag)
        self.places += [given["id"]] if given.get("id") else []
        self.links += [given["href"]] if given.get("href") else []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data
        if self.open and re.fullmatch("h[1-6]", self.open[-1]):
            self.headings[-1] = (self.headings[-1][0], self.headings[-1][1] + data)


@pytest.fixture(scope="module")
def story() -> Story:
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    return story_of(pzos.solve(problem(), SOLVER, steps=8), "small")


def test_one_study_has_its_sections_at_the_second_level(story: Story) -> None:
    read = Read(page([story]))
    assert read.headings[0] == ("h1", "small")
    assert [text for level, text in read.headings if level == "h2"] == [
        "The decision", "What the followers did", "Progress", "Where the queries went", "How sure are we?",
        "How to go on",
    ]  # fmt: skip
    assert story.verdict in page([story])
    assert ["solver", "PZOS(step=0.05, radius=0.1, batch=1, inside=False)"] in read.rows
    _, start, best = story.points
    assert ["decision", "doing nothing", "start", "best point seen", "change from start"] in read.rows
    assert [
        "cost",
        "not known",
        f"{start.value:.6g}",
        f"{best.value:.6g}",
        f"{best.value - start.value:+.6g}",
    ] in read.rows
    for entry in range(5):
        before, after = start.x[entry], best.x[entry]
        change = f"{'+' if after > before else ''}{after - before:.6g}"
        assert [f"x[{entry}]", "0", f"{before:.6g}", f"{after:.6g}", change] in read.rows
    assert ["probes", "16", "", "64 %"] in read.rows


def test_several_studies_are_listed_and_linked(story: Story) -> None:
    read = Read(page([story, replace(story, name="other")]))
    assert read.headings[0] == ("h1", "2 studies")
    assert read.rows[0] == ["study", "state", "what was reached"]
    assert read.rows[2][:2] == ["other", story.status]
    assert read.links == ["#study-0", "#study-1"]
    assert {"study-0", "study-1", "progress", "motion-1"} <= set(read.places)
    assert len(read.places) == len(set(read.places))
    assert ("h2", "other") in read.headings


def test_followers_are_listed_by_what_changed_most_with_names_units_and_digits(story: Story) -> None:
    points = (
        Point("start", np.zeros(1), np.array([1.0, 10.0, 5.0]), np.nan),
        Point("best", np.ones(1), np.array([1.5, 2.0, 5.0]), np.nan),
    )
    named = pzos.Columns(["tram", "bus", "walk"], "trips/h", 1)
    read = Read(page([replace(story, points=points, responses=named)]))
    at = read.rows.index(["followers", "start", "best", "change from start"])
    assert read.rows[at + 1 : at + 4] == [
        ["bus [trips/h]", "10.0", "2.0", "-8.0"],
        ["tram [trips/h]", "1.0", "1.5", "+0.5"],
        ["walk [trips/h]", "5.0", "5.0", "0.0"],
    ]
    mixed = pzos.Columns(["tram", "bus", "walk"], ["trips/h", "%", "km"])
    points = (points[0], points[1]._replace(y=np.array([2.0, 11.0, 5.0])))
    read = Read(page([replace(story, points=points, responses=mixed)]))
    at = read.rows.index(["followers", "start", "best", "change from start"])
    assert [row[0] for row in read.rows[at + 1 : at + 3]] == ["tram [trips/h]", "bus [%]"]  # by half, by a tenth


@pytest.mark.parametrize(
    ("count", "listed", "words"),
    [(12, 12, None), (24, 24, "12 of 24, show all"), (3000, 2000, "12 of 3,000, show 2,000 (pzos export")],
)
def test_all_rows_are_there_or_it_says_how_many(story: Story, count: int, listed: int, words: str | None) -> None:
    start, best = Point("start", np.zeros(count), EMPTY, 1.0), Point("best", np.arange(float(count)), EMPTY, 0.0)
    text = page([replace(story, points=(start, best))])
    names = [row[0] for row in Read(text).rows if row[0].startswith("x[")]
    assert len(names) == listed
    assert (words is None and ", show " not in text) or (words is not None and words in text)
    order = range(count) if count <= 12 else reversed(range(count))  # of many, the largest changes first
    assert names[:3] == [f"x[{entry}]" for entry in list(order)[:3]]


def test_points_of_another_size_are_not_compared(story: Story) -> None:
    """A damaged or foreign file may hold answers of any length."""
    points = (Point("first", np.zeros(2), np.zeros(4), np.nan), Point("last", np.ones(3), np.ones(2), np.nan))
    read = Read(page([replace(story, points=points)]))
    assert ["decision", "last"] in read.rows
    assert ["followers", "last"] in read.rows


def test_what_is_missing_is_left_out_with_the_reason(story: Story) -> None:
    bare = replace(
        story, curve=Curve(EMPTY, EMPTY, EMPTY), motion=Motion(EMPTY, EMPTY, "step", EMPTY), ledger={}, points=(),
        missing=("name the <problem>",), resume=("go on:", "$ pzos resume 'a & b'"),
    )  # fmt: skip
    text = page([bare])
    assert "What was reached is not known here" in text
    assert text.count("name the &lt;problem&gt;") == 2  # where F would be, and at the end
    assert "<code>pzos resume &#39;a &amp; b&#39;</code>" in text
    assert {text for _, text in Read(text).headings}.isdisjoint({"Step and radius", "The decision", "On the map"})
    assert 'add("' not in text


def test_nothing_is_written_if_the_page_cannot_be(story: Story, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r"pzos\[report\]"):
        write_report([story], tmp_path / "deep" / "page.html")
    assert not (tmp_path / "deep").exists()


def claim(words: str, where: str, verdict: str, *, source: str = "paper", reason: str = "") -> dict[str, str]:
    return {
        "claim": words, "where": where, "source": source, "verdict": verdict, "reason": reason, "found": "1 of 1",
        "words": "1 (at least 1)",
    }  # fmt: skip


def reports(folder: Path) -> list[dict[str, Any]]:
    (folder / "one.png").write_bytes(b"\x89PNG one")
    (folder / "two.png").write_bytes(b"\x89PNG two")
    claims = [
        claim("x < y & z", "Sec. 1", "holds"),
        claim("y < x", "Fig. 2", "does not hold"),
        claim("y = x", "Fig. 2", "too small to judge", reason="needs 30 instances, has 4"),
        claim("z", "Fig. 2", "measured", source="finding"),
    ]
    common = {"caption": "A <caption>.", "rerun": "pzos reproduce one", "versions": {"pzos": "0", "numpy": "2"}}
    return [
        {"name": "one", "title": "First & best", "claims": claims, "choices": ["of <ours>"], **common},
        {"name": "two", "title": "Second", "claims": [], "choices": [], **common},
    ]


def test_a_reproduction_lists_every_claim_with_its_verdict(tmp_path: Path) -> None:
    write_reproduction(tmp_path, reports(tmp_path), "1 of 3 claims hold", "pzos reproduce --seed 3")
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    read = Read(text)
    assert read.rows == [
        ["Claim", "Where", "Found", "Number (bar)", "Verdict"],
        ["x < y & z", "Sec. 1", "1 of 1", "1 (at least 1)", "holds"],
        ["y < x", "Fig. 2", "1 of 1", "1 (at least 1)", "does not hold"],
        ["y = x", "Fig. 2", "1 of 1", "1 (at least 1)", "too small to judge needs 30 instances, has 4"],
        ["Finding: z", "Fig. 2", "1 of 1", "1 (at least 1)", "measured"],
    ]
    assert read.links == ["#one", "#two", "#one", "#one", "#one", "#one"]
    assert {"one", "two", "claims"} <= set(read.places)
    assert "<p>1 of 3 claims hold. Every number" in text
    assert text.count("1 of 3 claims hold") == 2  # of the page, and under the first picture of the wall
    assert "<code>pzos reproduce --seed 3</code>" in text
    assert 'class="no">does not hold' in text


def test_claims_carry_what_they_are_filtered_by(tmp_path: Path) -> None:
    write_reproduction(tmp_path, reports(tmp_path), "", "pzos reproduce")
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert '<tr data-verdict="measured" data-source="finding" data-figure="one">' in text
    assert '<option value="two">Second</option>' in text
    assert re.findall(r'<select name="(\w+)">', text) == ["verdict", "source", "figure"]


def test_a_reproduction_shows_pictures_choices_and_versions(tmp_path: Path) -> None:
    write_reproduction(tmp_path, reports(tmp_path), "", "pzos reproduce")
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert base64.b64encode(b"\x89PNG one").decode() in text
    assert text.count("data:image/png;base64,") == 4  # each on the wall and in its place
    assert "A &lt;caption&gt;." in text
    assert text.count("Choices the paper leaves open") == 1
    assert "<li>of &lt;ours&gt;</li>" in text
    assert "pzos 0, numpy 2; configuration in <code>two.json</code>" in " ".join(text.split())


def test_both_pages_have_one_style(story: Story, tmp_path: Path) -> None:
    write_reproduction(tmp_path, reports(tmp_path), "", "pzos reproduce")
    pages = page([story]), (tmp_path / "index.html").read_text(encoding="utf-8")
    styles = {re.search(r"<style>.*?</style>", text, re.DOTALL)[0] for text in pages}  # type: ignore[index]
    assert len(styles) == 1
