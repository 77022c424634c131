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
from pzos.report.story import EMPTY, Curve, Motion, Story, story_of

pytest.importorskip("jinja2", reason="needs the extra 'report'")

SOLVER = pzos.PZOS(step=0.05, radius=0.1)


def test_the_page_is_one_file_that_asks_nothing_of_a_network(tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    result = pzos.solve(problem(name="tolls & <b>taxes</b>"), SOLVER, steps=8)
    place = result.report(tmp_path / "deep" / "page.html", problem())
    text = place.read_text(encoding="utf-8")
    outside = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert "tolls &amp; &lt;b&gt;taxes&lt;/b&gt;" in outside
    assert "<b>taxes" not in outside
    assert not re.findall(r"(?:src|href)\s*=\s*['\"]?(?:https?:)?//", outside)
    assert len(text) < 6e6
    for heading in ("Objective", "What was asked", "By which method", "Where the queries went", "The decision"):
        assert heading in outside
    assert outside.count("plotly-graph-div") >= 4
    assert f"{result.best_value:.8g}" in outside


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
        self.feed(re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.DOTALL))
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
        "Objective", "What was asked", "By which method", "Step and radius", "Where the queries went", "The decision",
        "How sure are we?", "How to go on",
    ]  # fmt: skip
    assert ["solver", "PZOS(step=0.05, radius=0.1, batch=1, inside=False)"] in read.rows
    for entry in range(5):
        before, after = story.before[entry], story.after[entry]
        assert [f"x[{entry}]", f"{before:.6g}", f"{after:.6g}", f"{after - before:+.3g}"] in read.rows


def test_several_studies_are_listed_and_linked(story: Story) -> None:
    read = Read(page([story, replace(story, name="other")]))
    assert read.headings[0] == ("h1", "2 studies")
    assert read.rows[0] == ["study", "state", "F"]
    assert read.rows[2][:2] == ["other", story.status]
    assert read.links == ["#study-0", "#study-1"]
    assert {"study-0", "study-1", "objective-queries", "motion-1"} <= set(read.places)
    assert len(read.places) == len(set(read.places))
    assert ("h2", "other") in read.headings


def test_of_many_decisions_those_that_changed_most_are_listed(story: Story) -> None:
    before = np.zeros(500)
    after = np.arange(500.0)
    text = page([replace(story, before=before, after=after)])
    assert "The 400 that changed most are listed; 100 are not." in text
    names = [row[0] for row in Read(text).rows if row[0].startswith("x[")]
    assert names == [f"x[{entry}]" for entry in range(100, 500)]


def test_what_is_missing_is_left_out_with_the_reason(story: Story) -> None:
    bare = replace(
        story, curve=Curve(EMPTY, EMPTY, EMPTY), motion=Motion(EMPTY, EMPTY, "step", EMPTY), ledger={}, before=EMPTY,
        missing=("name the <problem>",), resume=("go on:", "$ pzos resume 'a & b'"),
    )  # fmt: skip
    text = page([bare])
    assert "F is not known here" in text
    assert text.count("name the &lt;problem&gt;") == 2  # where F would be, and at the end
    assert "<code>pzos resume &#39;a &amp; b&#39;</code>" in text
    assert {text for _, text in Read(text).headings}.isdisjoint({"Step and radius", "The decision", "On the map"})
    assert "Plotly.newPlot" not in text


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
