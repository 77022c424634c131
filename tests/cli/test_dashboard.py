"""The dashboard, asked as browsers ask it: who is let in, what is shown, and that no answer is lost or taken twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from cli.survey import STUDY, make
from pzos.base.errors import MissingExtra
from pzos.cli.dashboard import _Door, application
from pzos.cli.desk import Desk
from pzos.cli.main import main
from pzos.durable.log import open_log, read_study

pytest.importorskip("starlette", reason="needs the extra 'dashboard'")
pytest.importorskip("httpx2", reason="the test client of starlette needs httpx2")
pytest.importorskip("jinja2", reason="needs the extra 'dashboard'")

TOKEN = "a-token-drawn-at-the-start"
HOST = "http://127.0.0.1:8765"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path)


def browser(folder: Path, *, answer: bool = True, known: bool = True) -> Any:
    from starlette.testclient import TestClient

    client = TestClient(application(Desk(folder), TOKEN, 8765, may_answer=answer), base_url=HOST)
    if known:
        assert client.get(f"/?token={TOKEN}", follow_redirects=False).status_code == 303
    return client


@pytest.fixture
def client(folder: Path) -> Iterator[Any]:
    with browser(folder) as opened:
        yield opened


def form(text: str, action: str = "tell", which: int = 0) -> dict[str, str]:
    """Return the fields of a form of the page, as a browser would send them."""
    found = re.findall(rf'<form method="post" action="[^"]*/{action}".*?</form>', text, re.DOTALL)[which]
    return {name: unescape(value) for name, value in re.findall(r'name="(\w+)"[^>]*? value="([^"]*)"', found)}


def answered(folder: Path) -> dict[tuple[int, int], list[float]]:
    return {(row.step, row.index): row.y.tolist() for row in read_study(folder / "survey.study").answers}


# ---- who is let in ------------------------------------------------------------------------------------------------

PAGES = ["/", "/live", "/study/survey.toml", "/study/survey.toml/live", "/study/survey.toml/open.csv", "/nothing"]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "ü"])
def test_without_the_token_nothing_is_shown(page: str, token: str | None, folder: Path) -> None:
    with browser(folder, known=False) as stranger:
        got = stranger.get(page, params={} if token is None else {"token": token}, follow_redirects=False)
        assert got.status_code == 403
        assert "survey" not in got.text
        cookie = f"pzos-8765={token or ''}".encode()
        assert stranger.get(page, headers={"cookie": cookie}).status_code == 403


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr("pzos.cli.dashboard.hmac.compare_digest", lambda a, b: compared.append((a, b)) or False)
    assert not _Door(TOKEN, 1).knows(TOKEN, TOKEN)
    assert compared == [(TOKEN.encode(), TOKEN.encode())]


def test_the_token_goes_from_the_address_into_a_cookie_that_scripts_cannot_read(folder: Path) -> None:
    with browser(folder, known=False) as client:
        got = client.get(f"/?token={TOKEN}", follow_redirects=False)
        assert (got.status_code, got.headers["location"]) == (303, "/")
        cookie = got.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1:80", "127.0.0.1.evil.example:8765", ""]
)
def test_another_name_of_the_host_is_refused(host: str, client: Any) -> None:
    got = client.get("/", headers={"host": host})
    assert got.status_code == 400
    assert "survey" not in got.text


def test_nothing_is_cached_framed_or_sent_elsewhere(client: Any) -> None:
    headers = client.get("/study/survey.toml").headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self'" in policy
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"


# ---- what is shown ------------------------------------------------------------------------------------------------


def test_all_studies_of_the_folder_are_listed(client: Any) -> None:
    text = client.get("/").text
    assert "two prices (survey.toml)" in text
    assert "3 queries wait for an answer" in text
    assert "ended: all steps were taken" in text
    assert "no_such_module" in text  # why it cannot be shown
    assert "of no interest" not in text
    assert text.count("<article>") == 3
    assert client.get("/live").text.count("<article>") == 3
    assert "<html" not in client.get("/live").text


def test_a_study_shows_names_units_and_rounded_numbers(client: Any) -> None:
    text = unescape(client.get("/study/survey.toml").text)
    assert "price <in> [EUR]" in text
    assert "price <in>" not in client.get("/study/survey.toml").text  # escaped
    assert "<td>1.00</td>" in text
    assert "cars [cars/h]" in text
    assert client.get("/study/survey.toml/open.csv").text.startswith("step,index,purpose,x.price <in> [EUR],")
    assert client.get("/study/nothing.toml").status_code == 404
    assert client.get("/study/..%2Fsurvey.toml").status_code == 404


def test_the_report_of_a_study_is_one_click_away(client: Any) -> None:
    pytest.importorskip("plotly", reason="needs the extra 'report'")
    got = client.get("/study/ended.study/report")
    assert got.status_code == 200
    assert "Where the queries went" in got.text


def test_a_study_that_was_not_begun_says_how(folder: Path, client: Any) -> None:
    (folder / "later.toml").write_text(STUDY)
    assert "not begun yet: pzos init later.toml" in client.get("/").text
    assert "not begun yet" in client.get("/study/later.toml").text


def test_read_only_shows_the_form_to_print_and_takes_nothing(folder: Path) -> None:
    with browser(folder, answer=False) as client:
        text = client.get("/study/survey.toml").text
        assert "<form" not in text
        assert "cars [cars/h]: <span></span>" in text
        secret = _Door(TOKEN, 8765).form
        got = client.post("/study/survey.toml/tell", data={"form": secret, "query": "0.0", "y0": "1", "y1": "2"})
        assert got.status_code == 403
        assert "--answer" in got.text
    assert answered(folder) == {}


# ---- answering ----------------------------------------------------------------------------------------------------


def test_a_study_is_answered_to_its_end(folder: Path, client: Any) -> None:
    for _ in range(30):
        text = client.get("/study/survey.toml").text
        if "There is nothing to answer." in text:
            break
        got = client.post(
            "/study/survey.toml/tell", data=form(text) | {"y0": "1.5", "y1": " 2.5 "}, follow_redirects=False
        )
        assert got.status_code == 303
        said = client.get(got.headers["location"]).text
        assert "was taken." in said
    assert set(map(tuple, answered(folder).values())) == {(1.5, 2.5)}
    assert "all steps were taken" in client.get("/study/survey.toml").text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"y0": "1,5", "y1": "2"}, "y0 = '1,5': expected a number such as 3.5"),
        ({"y0": "", "y1": "2"}, "y0 = '': expected a number"),
        ({"y0": "1", "y1": "inf"}, "expected finite numbers"),
        ({"query": "7.7"}, "answer 7.7: expected an open query"),
        ({"query": "x"}, "expected two whole numbers and a point"),
        ({"x": "zz"}, "open the page again"),
        ({"x": "00" * 16}, "expected the x that was asked"),
        ({"failure": "y" * 501}, "expected at most 500"),
    ],
)
def test_what_cannot_be_taken_is_said_and_what_was_typed_stays(
    given: dict[str, str], said: str, folder: Path, client: Any
) -> None:
    data = form(client.get("/study/survey.toml").text) | {"y0": "12.25", "y1": "2"} | given
    got = client.post("/study/survey.toml/tell", data=data)
    assert got.status_code == 422
    assert said in unescape(got.text)
    assert answered(folder) == {}
    if "query" not in given and "y0" not in given:
        assert 'value="12.25"' in got.text


def test_a_failure_is_told_with_its_reason(folder: Path, client: Any) -> None:
    data = form(client.get("/study/survey.toml").text, which=1) | {"failure": "the road  was closed"}
    assert client.post("/study/survey.toml/tell", data=data).status_code == 200
    (row,) = read_study(folder / "survey.study").answers
    assert (row.step, row.index, row.failure) == (0, 1, "the road was closed")
    assert "failed: the road was closed" in client.get("/study/survey.toml").text


def test_the_second_of_two_tabs_is_told_and_nothing_is_lost(folder: Path, client: Any) -> None:
    data = form(client.get("/study/survey.toml").text)
    codes, texts = [], []

    def tab(y0: str) -> None:
        got = client.post("/study/survey.toml/tell", data=data | {"y0": y0, "y1": "3"}, follow_redirects=False)
        codes.append(got.status_code)
        texts.append(unescape(got.text))

    tabs = [threading.Thread(target=tab, args=(y0,)) for y0 in ("1", "2")]
    for one in tabs:
        one.start()
    for one in tabs:
        one.join()
    assert sorted(codes) == [303, 409]
    (kept,) = answered(folder).values()
    late = texts[codes.index(409)]
    other = 3.0 - kept[0]
    assert f"Query 0.0 was answered meanwhile: cars {kept[0]:.1f} cars/h, trams 3.0 trips/h" in late
    assert f"Your answer, cars {other:.1f} cars/h, trams 3.0 trips/h, was not taken" in late


def test_the_same_answer_sent_twice_is_taken_once(folder: Path, client: Any) -> None:
    data = form(client.get("/study/survey.toml").text) | {"y0": "1", "y1": "2"}
    for _ in range(2):
        assert client.post("/study/survey.toml/tell", data=data, follow_redirects=False).status_code == 303
    assert answered(folder) == {(0, 0): [1.0, 2.0]}


def test_while_another_process_writes_the_answer_is_not_taken_and_not_lost(folder: Path, client: Any) -> None:
    data = form(client.get("/study/survey.toml").text) | {"y0": "12.25", "y1": "2"}
    log = open_log(folder / "survey.study")
    try:
        got = client.post("/study/survey.toml/tell", data=data)
    finally:
        log.close()
    assert got.status_code == 422
    assert "is being written" in got.text
    assert 'value="12.25"' in got.text
    assert client.post("/study/survey.toml/tell", data=data).status_code == 200
    assert answered(folder) == {(0, 0): [12.25, 2.0]}


def test_an_answer_is_taken_back_with_a_reason(folder: Path, client: Any) -> None:
    data = form(client.get("/study/survey.toml").text) | {"y0": "1", "y1": "2"}
    client.post("/study/survey.toml/tell", data=data)
    back = form(client.get("/study/survey.toml").text, "untell")
    refused = client.post("/study/survey.toml/untell", data=back | {"why": " "})
    assert refused.status_code == 422
    assert "needs a reason" in refused.text
    assert answered(folder) == {(0, 0): [1.0, 2.0]}
    assert client.post("/study/survey.toml/untell", data=back | {"why": "a slip of the pen"}).status_code == 200
    assert answered(folder) == {}
    noted = read_study(folder / "survey.study").notes_of("withdrawn")
    assert [note["why"] for note in noted] == ["a slip of the pen"]


def test_a_form_of_another_site_is_refused(folder: Path, client: Any) -> None:
    data = form(client.get("/study/survey.toml").text) | {"y0": "1", "y1": "2"}
    for wrong in ({"data": data | {"form": "guessed"}}, {"data": {k: v for k, v in data.items() if k != "form"}},
                  {"data": data, "headers": {"origin": "http://evil.example"}},
                  {"data": data, "headers": {"origin": "null"}}):  # fmt: skip
        assert client.post("/study/survey.toml/tell", **wrong).status_code == 403
    assert client.post("/study/survey.toml/tell", content=b"x" * (1 << 21)).status_code == 413
    assert answered(folder) == {}
    assert client.post("/study/survey.toml/tell", data=data, headers={"origin": HOST}).status_code == 200


def test_queries_of_order_told_are_handed_out(folder: Path, client: Any) -> None:
    plain = STUDY.replace('[solver]\nkind = "PZOS"\n', "").replace("steps = 3", 'queries = 9\norder = "told"')
    (folder / "any.toml").write_text(plain)
    assert main(["init", str(folder / "any.toml")]) == 0
    data = form(client.get("/study/any.toml").text, "ask")
    for _ in range(2):
        assert client.post("/study/any.toml/ask", data=data).status_code == 200
    text = client.get("/study/any.toml").text
    assert len(re.findall("<legend>", text)) == 2
    second = form(text, which=1)
    assert client.post("/study/any.toml/tell", data=second | {"y0": "1", "y1": "2"}).status_code == 200
    assert [row.y.tolist() for row in read_study(folder / "any.study").answers] == [[1.0, 2.0]]
    assert client.post("/study/survey.toml/ask", data=data).status_code == 422


# ---- a server that dies -------------------------------------------------------------------------------------------

#: Serves one answer and is killed: in the middle of writing it ("torn"), or when it is written and nobody was told.
KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from cli.test_dashboard import browser, form
from pzos.durable import log

written = log.write_at
def dying(descriptor, at, data):
    if b"iterate" not in data:
        return written(descriptor, at, data)
    written(descriptor, at, data[: len(data) // 2] if sys.argv[2] == "torn" else data)
    os.kill(os.getpid(), signal.SIGKILL)

with browser(Path(sys.argv[1])) as client:
    data = form(client.get("/study/survey.toml").text)
    log.write_at = dying
    client.post("/study/survey.toml/tell", data=data | {"y0": "1", "y1": "2"})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("when", ["torn", "written"])
def test_a_server_killed_in_the_middle_of_an_answer_leaves_all_of_it_or_nothing(when: str, folder: Path) -> None:
    tests = str(Path(__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), when, tests],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert answered(folder) == ({} if when == "torn" else {(0, 0): [1.0, 2.0]})
    with browser(folder) as client:  # and it goes on from there
        text = client.get("/study/survey.toml").text
        assert len(re.findall("<legend>", text)) == (3 if when == "torn" else 2)
        data = form(text) | {"y0": "5", "y1": "6"}
        assert client.post("/study/survey.toml/tell", data=data).status_code == 200
    assert len(answered(folder)) == (1 if when == "torn" else 2)


# ---- the command --------------------------------------------------------------------------------------------------


def test_the_command_serves_on_this_machine_only_and_prints_the_address(folder: Path) -> None:
    import httpx2 as httpx

    pytest.importorskip("uvicorn", reason="needs the extra 'dashboard'")
    server = subprocess.Popen(
        [sys.executable, "-m", "pzos", "dashboard", str(folder)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", address)
        with httpx.Client(follow_redirects=True, timeout=60) as client:
            got = client.get(address)
            assert got.status_code == 200
            assert "two prices" in got.text
            assert "server" not in got.headers
            assert httpx.get(address.split("?")[0], timeout=60).status_code == 403
    finally:
        server.terminate()
        server.communicate(timeout=60)


@pytest.mark.parametrize("words", [["no such folder"], [".", "--port", "70000"], [".", "--port", "-1"]])
def test_bad_arguments_are_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("package", ["starlette.applications", "uvicorn"])
def test_a_missing_package_names_the_extra(package: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    if package == "uvicorn":
        assert main(["dashboard", str(folder)]) == 2
    else:
        with pytest.raises(MissingExtra, match=r"pzos\[dashboard\]"):
            application(Desk(folder), TOKEN, 1)
