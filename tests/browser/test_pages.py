"""Pages as people see them: opened in a real browser, at the width of a desk and of a phone."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from browser.chromium import Browser, browser, find
from instances import problem
from pzos.cli.main import main
from pzos.report.charts import COLOURS, DASHES
from pzos.report.page import write_reproduction

pytestmark = pytest.mark.skipif(find() is None, reason="no Chromium is installed (apt-get install chromium)")

AUDIT = (Path(__file__).parent / "audit.js").read_text(encoding="utf-8")
#: Page, plots drawn by plotly, pictures.
PAGES = [("report", 3, 0), ("single", 1, 0), ("city", 4, 0), ("reproduction", 0, 4), ("reproduced", 0, 2)]
SIZES = {"desk": (1280, 900, False), "phone": (390, 844, True)}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the bar's page: 1000 queries, 300 decisions; two methods, so that curves have to be told apart."""
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    from pzos.report.page import write_report
    from pzos.report.story import story_of

    mixing = np.sin(np.arange(1.0, 300 * 40 + 1)).reshape(40, 300) / 10.0
    leader = pzos.leader_from_functions(
        lambda x, y: float(x @ x + y.sum()), lambda x, y: 2.0 * x, lambda x, y: np.ones_like(y)
    )
    large = pzos.Problem(
        leader, lambda x: np.abs(mixing @ x), np.linspace(-1.0, 1.0, 300), name="three hundred decisions"
    )
    stories = [
        story_of(pzos.solve(large, solver, queries=1000), type(solver).__name__, large)
        for solver in (pzos.PZOS(0.002, 0.1), pzos.ZOS(0.002, 0.1))
    ]
    return write_report(stories, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    result = pzos.solve(problem(), pzos.PZOS(0.05, 0.1), steps=40)
    return result.report(tmp_path_factory.mktemp("single") / "single.html", problem())


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page with maps, a certificate and long names of decisions."""
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    from pzos.networks import generated_city

    tolls = generated_city(3, 3, zones=4, congestion=2.0, seed=1).toll_problem(objective="travel_time", upper=5.0)
    result = pzos.solve(tolls, queries=12)
    certificate = result.certify(tolls, delta=0.1, queries=65)
    return result.report(tmp_path_factory.mktemp("city") / "city.html", tolls, certificate)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page that the command writes, with a figure of the paper in it."""
    pytest.importorskip("matplotlib", reason="needs the extra 'plot'")
    folder = tmp_path_factory.mktemp("reproduced")
    assert main(["reproduce", "goldstein", "--quick", "--out", str(folder)]) == 0
    return folder / "index.html"


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a reproduction with long words, many claims and two figures."""
    folder = tmp_path_factory.mktemp("reproduction")
    reports = []
    for name in ("second_moments", "routing_oracle_calls"):
        (folder / f"{name}.png").write_bytes(png(900, 500))
        claims = [
            {
                "claim": f"PZOS is above ZOS in median ({k})",
                "where": "Sec. 5.1",
                "found": "1.25 against 0.98",
                "source": "finding" if k == 3 else "paper",
                "verdict": verdict,
                "reason": "needs 100 instances, has 24" if verdict == "too small to judge" else "",
                "words": "1.28 [1.2, 1.36], 5 seeds from 1.21 to 1.35 (at least 1)",
            }
            for k, verdict in enumerate(("holds", "does not hold", "too small to judge", "measured"))
        ]
        reports.append(
            {
                "name": name, "title": "Empirical second moments as a function of problem dimension",
                "caption": "Mean of the squared norms over seven instances.", "claims": claims, "choices": ["a", "b"],
                "rerun": f"pzos reproduce {name} --quick --seed 12345", "versions": {"pzos": "0", "numpy": "2"},
            }
        )  # fmt: skip
    write_reproduction(folder, reports, "2 of 6 claims of the paper hold", "pzos reproduce")
    return folder / "index.html"


def png(width: int, height: int) -> bytes:
    """Return a grey picture."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = (b"\0" + b"\xc0" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("page", "plots", "images"), PAGES)
def test_nothing_to_complain_about(
    page: str, plots: int, images: int, size: str, chromium: Browser, request: pytest.FixtureRequest
) -> None:
    width, height, phone = SIZES[size]
    chromium.open(request.getfixturevalue(page), width, height, phone=phone)
    chromium.draw()
    seen: dict[str, Any] = chromium.evaluate(AUDIT)
    assert seen["complaints"] == []
    assert chromium.complaints() == []
    assert (seen["plots"], seen["images"]) == (plots, images)
    assert seen["texts"] > 20
    assert chromium.evaluate("document.documentElement.clientWidth") == width


def test_the_buttons_draw_progress_against_seconds(chromium: Browser, single: Path) -> None:
    chromium.open(single, 1280, 900)
    chromium.draw()
    chromium.evaluate("document.querySelectorAll('#progress .updatemenu-button')[1].dispatchEvent(new Event('click'))")
    assert chromium.evaluate("document.getElementById('progress').layout.xaxis.title.text") == "seconds since the start"
    assert chromium.complaints() == []


def test_the_text_is_there_before_the_charts(chromium: Browser, city: Path) -> None:
    """Plotly is five megabytes: it is read when the text is painted, or when the page is printed."""
    held = "window.setTimeout = () => 0"
    number = chromium.call("Page.addScriptToEvaluateOnNewDocument", source=held)["identifier"]
    try:
        chromium.open(city, 390, 844, phone=True)
        assert chromium.evaluate("typeof Plotly") == "undefined"
        assert "The best decision" in chromium.evaluate("document.body.innerText")
        chromium.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert chromium.evaluate("waiting.size") == 1  # step and radius are folded away
        assert chromium.complaints() == []
    finally:
        chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=number)


def test_what_is_folded_opens_and_is_drawn(chromium: Browser, report: Path) -> None:
    chromium.open(report, 390, 844, phone=True)
    chromium.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    chromium.draw()
    seen = chromium.evaluate(AUDIT)
    assert seen["complaints"] == []
    assert seen["plots"] == 5  # step and radius of both studies are drawn when they are looked at
    assert chromium.evaluate("document.querySelectorAll('#study-0 ~ .numbers tbody tr').length") > 0
    assert "12 of 300, show all" in chromium.evaluate("document.body.textContent")
    assert chromium.complaints() == []


@pytest.mark.parametrize("name", ["single", "city"])
def test_pages_can_be_read_in_the_dark(name: str, chromium: Browser, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(name)
    chromium.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    try:
        chromium.open(path, 1280, 900)
        chromium.draw()
        assert chromium.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 22)"
        assert chromium.evaluate(AUDIT)["complaints"] == []
        assert chromium.complaints() == []
    finally:
        chromium.call("Emulation.setEmulatedMedia", features=[])


@pytest.mark.parametrize("name", ["single", "city"])
def test_a_report_is_printed_on_two_pages(name: str, chromium: Browser, request: pytest.FixtureRequest) -> None:
    chromium.open(request.getfixturevalue(name), 1280, 900)
    printed = base64.b64decode(chromium.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2


def test_the_table_of_claims_can_be_filtered(chromium: Browser, reproduction: Path) -> None:
    chromium.open(reproduction, 390, 844, phone=True)
    count = "[...document.querySelectorAll('.claims tbody tr')].filter(row => row.offsetHeight > 0).length"
    choose = "(n, v) => { const s = document.querySelector(`select[name=${n}]`); s.value = v; s.dispatchEvent(new Event('change', {bubbles: true})); }"  # noqa: E501
    assert chromium.evaluate(count) == 8
    for name, value, shown in (("verdict", "holds", 2), ("figure", "second_moments", 1), ("source", "finding", 0)):
        chromium.evaluate(f"({choose})('{name}', '{value}')")
        assert chromium.evaluate(count) == shown
    assert chromium.evaluate("document.querySelector('.filter output').textContent") == "0 of 8 shown"
    chromium.evaluate(f"({choose})('verdict', '')")
    assert chromium.evaluate(count) == 1
    assert chromium.complaints() == []


def test_a_large_report_is_small_enough(report: Path) -> None:
    assert report.stat().st_size < 6e6


def test_the_audit_sees_what_it_is_for(chromium: Browser, tmp_path: Path) -> None:
    """A page with every fault: text on text, faint, too wide, a broken picture, an error, a call to the network."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<!doctype html><body><p style='position:absolute;top:20px'>one line of text</p>"
        "<p style='position:absolute;top:22px'>another line of text</p><p style='color:#ccc;margin-top:90px'>faint</p>"
        "<div style='width:3000px'>wide</div><img src='data:image/png;base64,AAAA'>"
        "<div class='plotly-graph-div' id='empty'></div><script>document.getElementById('empty').data=[];"
        "console.error('no'); fetch('http://127.0.0.1:9/x').catch(() => 0);</script>",
        encoding="utf-8",
    )
    chromium.open(page, 800, 600)
    text = " ".join(chromium.evaluate(AUDIT)["complaints"])
    for fault in ("overlap", "contrast", "the page is 30", "image", "not drawn", "no text for those"):
        assert fault in text, fault
    said = " ".join(chromium.complaints())
    assert "console error" in said
    assert "asked the network" in said


#: How people with the three kinds of colour blindness see a colour (Machado, Oliveira and Fernandes 2009, severity 1).
BLINDNESS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour: str, matrix: list[list[float]]) -> np.ndarray[Any, Any]:
    """Return a colour as seen, in CIE Lab."""
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(matrix) @ linear, 0.0, 1.0)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    scaled = xyz / np.array([0.9505, 1.0, 1.089])
    f = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16.0 / 116.0)
    return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", BLINDNESS)
def test_curves_can_be_told_apart_by_everyone(kind: str) -> None:
    first = COLOURS[:5]
    for i, a in enumerate(first):
        for b in first[i + 1 :]:
            assert np.linalg.norm(lab(a, BLINDNESS[kind]) - lab(b, BLINDNESS[kind])) > 12.0, (a, b)
    assert len(set(DASHES)) == len(DASHES)


def test_the_picture_helper_makes_a_png() -> None:
    assert base64.b64encode(png(2, 2)).startswith(b"iVBORw0KGgo")
