"""The dashboard in a real browser, at the width of a desk and of a phone: looked at, answered, corrected."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser.chromium import Browser, browser, find
from browser.test_pages import AUDIT, SIZES
from cli.survey import make
from pzos.durable.log import read_study

pytestmark = pytest.mark.skipif(find() is None, reason="no Chromium is installed (apt-get install chromium)")
pytest.importorskip("starlette", reason="needs the extra 'dashboard'")
pytest.importorskip("uvicorn", reason="needs the extra 'dashboard'")
pytest.importorskip("plotly", reason="needs the extra 'report'")

#: Tells another answer to the first query than the page will, as another tab would; the result is the status.
OTHER_TAB = """(async () => {
  const form = document.querySelector("form"), fields = new URLSearchParams(new FormData(form));
  fields.set("y0", "7"); fields.set("y1", "8");
  return (await fetch(form.action, {method: "POST", body: fields})).status;
})()"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    server = subprocess.Popen(
        [sys.executable, "-m", "pzos", "dashboard", str(make(tmp_path)), "--answer"], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.communicate(timeout=60)


@pytest.mark.parametrize("size", SIZES)
def test_every_page_can_be_read(size: str, chromium: Browser, address: str) -> None:
    width, height, phone = SIZES[size]
    home = address.split("/?")[0]
    chromium.open(address, width, height, phone=phone)
    for page in ("/", "/study/survey.toml", "/study/ended.study", "/study/broken.toml", "/study/ended.study/report"):
        chromium.open(home + page, width, height, phone=phone)
        seen = chromium.evaluate(AUDIT)
        assert seen["complaints"] == [], page
        assert seen["texts"] >= 4
        assert chromium.complaints(home) == [], page
    assert "token" not in chromium.evaluate("location.href")


def test_a_wrong_token_shows_nothing(chromium: Browser, address: str) -> None:
    chromium.call("Network.clearBrowserCookies")
    chromium.open(address[:-1] + ("a" if address[-1] != "a" else "b"), 1280, 900)
    text = chromium.evaluate("document.body.textContent")
    assert "The token is wrong" in text
    assert "survey" not in text


@pytest.mark.parametrize("size", SIZES)
def test_two_tabs_answer_at_once_and_an_answer_is_corrected(
    size: str, chromium: Browser, address: str, tmp_path: Path
) -> None:
    width, height, phone = SIZES[size]
    home = address.split("/?")[0]
    chromium.open(address, width, height, phone=phone)
    chromium.open(home + "/study/survey.toml", width, height, phone=phone)
    chromium.evaluate(
        "document.querySelector('[name=y0]').value = '1.5'; document.querySelector('[name=y1]').value = '2.5'"
    )
    assert chromium.evaluate(OTHER_TAB) == 200
    chromium.click("form button")
    said = chromium.evaluate("document.querySelector('.said').textContent")
    assert "Query 0.0 was answered meanwhile: cars 7.0 cars/h, trams 8.0 trips/h" in said
    assert "cars 1.5 cars/h, trams 2.5 trips/h, was not taken" in said
    assert [row.y.tolist() for row in read_study(tmp_path / "survey.study").answers] == [[7.0, 8.0]]
    assert chromium.evaluate(AUDIT)["complaints"] == []

    chromium.evaluate("document.querySelector('.told details').open = true")
    chromium.evaluate("document.querySelector('[name=why]').value = 'the other tab was wrong'")
    chromium.click(".told form button")
    assert "taken back" in chromium.evaluate("document.querySelector('.said').textContent")
    assert read_study(tmp_path / "survey.study").answers == []
    chromium.evaluate(
        "document.querySelector('[name=y0]').value = '1.5'; document.querySelector('[name=y1]').value = '2.5'"
    )
    chromium.click("form button")
    assert [row.y.tolist() for row in read_study(tmp_path / "survey.study").answers] == [[1.5, 2.5]]


def test_what_changed_elsewhere_is_seen_without_losing_what_was_typed(
    chromium: Browser, address: str, tmp_path: Path
) -> None:
    home = address.split("/?")[0]
    chromium.open(address, 1280, 900)
    chromium.open(home + "/study/survey.toml", 1280, 900)
    chromium.evaluate("document.querySelectorAll('[name=y0]')[1].value = '1.5'")
    assert chromium.evaluate(OTHER_TAB) == 200
    seen = "new Promise(done => { const look = () => document.getElementById('changed').hidden ? setTimeout(look, 100) : done(1); look(); })"  # noqa: E501
    assert chromium.evaluate(seen) == 1
    assert chromium.evaluate("document.querySelectorAll('[name=y0]')[1].value") == "1.5"
    assert chromium.complaints(home) == []
