"""Answers by hand: what ``pzos ask`` writes, ``pzos tell`` reads back, and nothing is taken that does not fit."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import pzos_in
from pzos.base.errors import InvalidInput
from pzos.base.types import Purpose, Query
from pzos.cli import by_hand
from pzos.cli.main import main
from pzos.durable.log import read_study

MODEL = """
import numpy as np
import pzos

leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y)
"""
STUDY = """
leader = "by_hand_model:leader"
x0 = [1.0, 2.0]
steps = 2
[solver]
kind = "PZOS"
"""
QUERIES = [Query(3, 0, np.array([0.1, -0.0]), Purpose.ITERATE), Query(3, 1, np.array([1 / 3, 1e-300]), Purpose.PROBE)]


@pytest.fixture
def toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study that nobody answers but people."""
    (tmp_path / "by_hand_model.py").write_text(MODEL)
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    return tmp_path / "study.toml"


def test_what_is_written_as_csv_comes_back_to_the_last_bit() -> None:
    rows = list(csv.DictReader(by_hand.as_csv_text(QUERIES).splitlines()))
    assert [row["purpose"] for row in rows] == ["iterate", "probe"]
    for row, query in zip(rows, QUERIES, strict=True):
        assert np.array([float(row["x0"]), float(row["x1"])]).tobytes() == query.x.tobytes()
    assert by_hand.as_csv_text([]) == "step,index,purpose\n"


def test_what_is_written_as_json_comes_back_to_the_last_bit() -> None:
    rows = json.loads(by_hand.as_json_text(QUERIES))["queries"]
    assert [(row["step"], row["index"]) for row in rows] == [(3, 0), (3, 1)]
    assert np.array(rows[1]["x"]).tobytes() == QUERIES[1].x.tobytes()


FORMS = {
    "csv": "step,index,y0,y1,gap,failure,x0\n0,0,1.5,2.5,,,\n0,1,,,0.1,lost,7\n",
    "json": '{"queries": [{"step": 0, "index": 0, "y": [1.5, 2.5], "gap": null},'
    ' {"step": 0, "index": 1, "failure": "lost", "gap": 0.1, "x": [7]}]}',
    "list": '[{"step": 0, "index": 0, "y": [1.5, 2.5]},'
    ' {"step": 0, "index": 1, "failure": "lost", "gap": 0.1, "x": [7]}]',
    "spreadsheet": "\ufeffstep,index,y1,y0,gap,failure,x0\n0,0,2.5,1.5,,,\n0,1,,,0.1, lost ,7\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_file_says_the_same(form: str, tmp_path: Path) -> None:
    (tmp_path / "answers").write_text(FORMS[form], encoding="utf-8")
    first, second = by_hand.read_answers(tmp_path / "answers")
    assert (first.step, first.index, first.y.tolist(), first.x, first.failure) == (0, 0, [1.5, 2.5], None, "")
    assert np.isnan(first.gap)
    assert (second.index, second.y.size, second.gap, second.failure) == (1, 0, 0.1, "lost")
    assert second.x is not None
    assert second.x.tolist() == [7.0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe\x00", "cannot be read"),
        (b"{broken", "cannot be read as answers (JSONDecodeError"),
        (b"[1, 2]", "cannot be read as answers"),
        (b"step,index,y0\nx,0,1\n", "expected step, index and y"),
        (b"step,index,y0\n0.5,0,1\n", "'0.5' is no whole number"),
        (b"step,index,y0\n0,0,1_000\n", "'1_000' is no number"),
        (b"step,index,y0,y1\n0,0,,2\n", "row 0.0 has a blank cell"),
        (b"step,index,y0,y1\n0,0,1\n", "row 0.0 has more or fewer cells"),
        (b"step,index,y0\n0,0,1,2\n", "row 0.0 has more or fewer cells"),
        (b'[{"step": 0, "index": 0, "y": [[1, 2]]}]', "is no list of numbers"),
        (b'[{"step": 0, "index": 0, "y": [1, null]}]', "is no list of numbers"),
        (b'[{"step": 0, "index": 0, "y": ["1"]}]', "is no list of numbers"),
        (b'[{"step": 0.5, "index": 0, "y": [1]}]', "0.5.0 is no address"),
        (b'[{"step": true, "index": 0, "y": [1]}]', "is no address"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "answers").write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        by_hand.read_answers(tmp_path / "answers")
    assert said in str(caught.value)
    assert "answers" in str(caught.value)
    with pytest.raises(InvalidInput, match="nowhere"):
        by_hand.read_answers(tmp_path / "nowhere")


def test_asked_told_asked_again_until_nothing_is_left(toml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for _ in range(3):
        assert main(["ask", "--out", "open.json"]) == 0
        data = json.loads(Path("open.json").read_text())
        for query in data["queries"]:
            query["y"] = [abs(entry) for entry in query["x"]]
        Path("answers.json").write_text(json.dumps(data))
        capsys.readouterr()
        assert main(["tell", "answers.json"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == "3 answers taken, 0 known before; 1 step taken, open: 3 queries\n"
    assert said[2] == "1 answer taken, 0 known before; 2 steps taken, the study has ended\n"
    assert main(["tell", "study.toml", "answers.json", "--json"]) == 0  # the study first, as the other commands have it
    assert json.loads(capsys.readouterr().out) == {"taken": 0, "known": 1, "open": 0, "steps": 2, "done": True}
    assert main(["ask"]) == 0
    assert "nothing to ask: all steps were taken" in capsys.readouterr().err
    assert main(["ask", "--steps", "3"]) == 0  # a longer study goes on; the last look at F is not asked again
    assert [line[:3] for line in capsys.readouterr().out.splitlines()[1:]] == ["2,1", "2,2"]


def test_all_faults_of_a_file_are_told_at_once_and_nothing_is_taken(
    toml: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("answers.csv").write_text("step,index,y0,y1,x0,x1\n0,0,1,2,,\n0,1,nan,2,,\n0,2,1,2,7,7\n5,0,1,2,,\n")
    assert main(["tell", "answers.csv"]) == 2
    told = capsys.readouterr().err
    assert "answers.csv: 3 faults" in told
    for fault in ("answer 0.1 = ", "answer 0.2: x = ", "answer 5.0: expected an open query"):
        assert fault in told
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["open"] == ["0.0", "0.1", "0.2"]


def test_a_query_has_one_answer(toml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("step,index,y0,y1\n0,0,1,2\n")
    Path("b.csv").write_text("step,index,y0,y1\n0,0,1,3\n")
    assert main(["tell", "a.csv"]) == main(["tell", "a.csv"]) == 0
    capsys.readouterr()
    assert main(["tell", "b.csv"]) == 2
    assert "expected the answer told before; a query has one answer" in capsys.readouterr().err
    Path("c.csv").write_text("step,index,y0\n0,1,1\n")
    assert main(["tell", "c.csv"]) == 2
    assert "expected 2 numbers; every answer has the same length" in capsys.readouterr().err


def test_two_answers_to_one_query_are_refused(toml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("step,index,y0,y1\n0,0,1,2\n0,0,1,2\n")
    assert main(["tell", "a.csv"]) == 2
    assert "answer 0.0: is there 2 times: expected one answer" in capsys.readouterr().err


def test_an_answer_the_leader_cannot_take_is_named_before_any_is_taken(
    toml: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.csv").write_text("step,index,y0,y1\n0,0,1,2\n0,1,1e200,2\n")
    assert main(["tell", "a.csv"]) == 2
    assert "query 0.1: y = array([1.e+200, 2.e+000]): expected an answer that the leader can" in capsys.readouterr().err
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["open"] == ["0.0", "0.1", "0.2"]


def test_an_answer_is_taken_back_and_told_again(toml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("step,index,y0\n0,0,1\n")  # one number too few, which this leader takes
    Path("b.csv").write_text("step,index,y0,y1\n0,0,1,2\n0,1,1,2\n0,2,2,1\n")
    assert main(["tell", "a.csv"]) == 0
    assert main(["tell", "b.csv"]) == 2
    assert main(["untell", "study.toml", "0.0", "--why", "a cell was left out"]) == 0
    assert main(["tell", "b.csv"]) == 0
    capsys.readouterr()
    assert main(["status"]) == 0
    assert "taken back" in capsys.readouterr().out
    assert main(["untell", "study.study", "0.1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"study": "study.study", "query": "0.1", "answers": 2, "aside": 0}
    assert main(["ask", "--json"]) == 0
    assert [query["index"] for query in json.loads(capsys.readouterr().out)["queries"]] == [1]
    assert [note.get("why") for note in read_study("study.study").notes if note["kind"] == "withdrawn"] == [
        "a cell was left out",
        "",
    ]
    for query, said in (
        ("0.1", "has no answer"),
        ("7.0", "has no answer"),
        ("0", "STEP.INDEX"),
        ("-1.0", "STEP.INDEX"),
    ):
        assert main(["untell", "study.toml", "--", query]) == 2
        assert said in capsys.readouterr().err


# ---- several forms at once ----------------------------------------------------------------------------------------

ANY_ORDER = """
leader = "by_hand_model:leader"
x0 = [1.0, 2.0]
queries = 12
order = "told"
"""


def pzos_says(folder: Path, *words: str) -> str:
    """Run the command in a process of its own."""
    done = pzos_in(folder, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def filled_in(rows: list[dict[str, Any]]) -> str:
    return json.dumps([{**row, "y": [abs(entry - 0.3) for entry in row["x"]]} for row in rows])


def test_five_forms_are_handed_out_and_come_back_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "by_hand_model.py").write_text(MODEL)
    (tmp_path / "study.toml").write_text(ANY_ORDER)
    pzos_says(tmp_path, "init")
    forms = json.loads(pzos_says(tmp_path, "ask", "--count", "5", "--json"))["queries"]
    assert [(form["step"], form["index"]) for form in forms] == [(number, 0) for number in range(5)]
    for order in ([3], [4, 0]):
        (tmp_path / "told.json").write_text(filled_in([forms[number] for number in order]))
        pzos_says(tmp_path, "tell", "told.json")
    again = json.loads(pzos_says(tmp_path, "ask", "--count", "4", "--json"))["queries"]
    assert [form["step"] for form in again] == [1, 2, 5, 6]
    assert again[:2] == forms[1:3]
    (tmp_path / "told.json").write_text(filled_in([again[3], forms[3]]))
    said = json.loads(pzos_says(tmp_path, "tell", "told.json", "--json"))
    assert (said["taken"], said["known"], said["open"]) == (1, 1, 3)
    pzos_says(tmp_path, "untell", "study.study", "3.0")
    left = json.loads(pzos_says(tmp_path, "ask", "--json"))["queries"]
    assert [form["step"] for form in left] == [1, 2, 3]  # what was asked after it was told is set aside


def test_the_forms_of_a_batch_are_those_of_the_step(toml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "--count", "2", "--json"]) == 0
    assert [form["index"] for form in json.loads(capsys.readouterr().out)["queries"]] == [0, 1]
    assert main(["ask", "--count", "50"]) == 0
    assert 'order = "told"' in capsys.readouterr().err
    assert main(["ask", "--count", "0"]) == 2


NAMED = """
[decisions]
names = ["price", "tax"]
units = "EUR"
digits = 2
[responses]
names = ["cars", "trams"]
units = ["cars/h", "trips/h"]
"""


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "by_hand_model.py").write_text(MODEL)
    (tmp_path / "study.toml").write_text(STUDY + NAMED)
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert main(["ask", "--out", "open.csv"]) == 0
    return tmp_path


def test_a_form_has_names_units_and_room_for_the_answers(named: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, first, *_ = (named / "open.csv").read_text().splitlines()
    assert head == "step,index,purpose,x.price [EUR],x.tax [EUR],y.cars [cars/h],y.trams [trips/h]"
    assert first == "0,0,iterate,1.0,2.0,,"  # digits are for people's eyes: what is asked is asked exactly
    capsys.readouterr()
    assert main(["ask", "--json"]) == 0
    asked = json.loads(capsys.readouterr().out)
    assert asked["decisions"] == ["price [EUR]", "tax [EUR]"]
    assert asked["responses"] == ["cars [cars/h]", "trams [trips/h]"]


def test_a_form_filled_in_is_read_by_its_names_in_any_order(named: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader((named / "open.csv").read_text().splitlines()))
    heads = ["index", "step", "y.trams [trips/h]", "y.cars [cars/h]", "x.tax [EUR]", "x.price [EUR]"]
    filled = [row | {"y.cars [cars/h]": "10", "y.trams [trips/h]": row["index"]} for row in rows]
    lines = [",".join(heads), *(",".join(row[head] for head in heads) for row in filled)]
    (named / "back.csv").write_text("\n".join(lines))
    assert main(["tell", "back.csv"]) == 0
    assert [row.y.tolist() for row in read_study(named / "study.study").answers] == [
        [10.0, 0.0],
        [10.0, 1.0],
        [10.0, 2.0],
    ]
    assert main(["export", "study.study", "all.csv"]) == 0
    exported = (named / "all.csv").read_text().splitlines()[0]
    assert exported.endswith("x.price [EUR],x.tax [EUR],y.cars [cars/h],y.trams [trips/h]")
    from pzos.answers.table import Answers

    for table in (Answers.open(named / "all.csv"), Answers.open(named / "study.study")):
        assert [str(column) for column in table.responses] == ["cars [cars/h]", "trams [trips/h]"]


@pytest.mark.parametrize("head", ["y.cars [cars/day]", "y.carts [cars/h]"])
def test_an_answer_in_another_unit_or_of_another_name_is_refused(
    head: str, named: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (named / "back.csv").write_text(f"step,index,{head},y.trams [trips/h]\n0,0,1,2\n")
    assert main(["tell", "back.csv"]) == 2
    assert f"column '{head}' is none of y.cars [cars/h], y.trams [trips/h]" in capsys.readouterr().err
    assert read_study(named / "study.study").answers == []
