"""People in the loop: the commands as a person or a script calls them, each in a process of its own, each twice."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pzos
from command_line import pzos_in
from durable_problem import bits
from pzos.cli.main import main
from pzos.report.from_file import story_of_file

MODEL = """
import os, time
import numpy as np
import pzos

leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y, name="gaps")


def follower(x):
    with open("calls", "a") as calls:
        calls.write(".")
    time.sleep(float(os.environ.get("PAUSE", "0")))
    if os.environ.get("BROKEN"):
        raise RuntimeError("out of order")
    return np.abs(x - 0.3)


def problem():
    return pzos.Problem(leader, follower, x0=[1.0, 2.0], domain=pzos.Box(0.0, 2.0), name="gaps")
"""
STUDY = """
name = "gaps"
leader = "model:leader"
follower = "model:follower"
x0 = [1.0, 2.0]
seed = 3
steps = 4

[set]
kind = "Box"
lower = 0.0
upper = 2.0

[solver]
kind = "PZOS"
step = { kind = "Diminishing", scale = 0.05 }
"""
EXPECTED_QUERIES = 4 * 3 + 1
INTERRUPTED = MODEL.replace(
    "    time.sleep",
    """    if os.path.getsize("calls") == 6:
        raise KeyboardInterrupt
    time.sleep""",
)


class Folder:
    """A folder with a study in it, and the command line to work on it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "model.py").write_text(MODEL)
        (path / "study.toml").write_text(STUDY)

    def run(self, *words: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        done = pzos_in(self.path, *words, **environment)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    def data(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json").stdout)

    def calls(self) -> int:
        return len((self.path / "calls").read_text())

    def wait_for_calls(self, count: int, driver: subprocess.Popen[Any]) -> None:
        deadline = time.monotonic() + 120
        while not (self.path / "calls").exists() or self.calls() < count:
            assert driver.poll() is None, "the run has ended"
            assert time.monotonic() < deadline, "the run does not get on"
            time.sleep(0.01)

    def expected(self) -> pzos.Result:
        leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y)
        game = pzos.Problem(leader, lambda x: np.abs(x - 0.3), [1.0, 2.0], pzos.Box(0.0, 2.0), name="gaps")
        return pzos.solve(game, pzos.PZOS(step=pzos.Diminishing(0.05)), seed=3, steps=4)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "pzos", *words]


def environ(**more: str) -> dict[str, str]:
    import os

    return {**os.environ, **more}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def table(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.read_text().splitlines()))


def answered_csv(text: str, file: Path) -> None:
    rows = list(csv.DictReader(text.splitlines()))
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*rows[0], "y0", "y1"])
        for row in rows:
            writer.writerow([*row.values(), *(repr(abs(float(row[name]) - 0.3)) for name in ("x0", "x1"))])


def answered_json(text: str, file: Path) -> None:
    data = json.loads(text)
    for query in data["queries"]:
        query["y"] = [abs(entry - 0.3) for entry in query["x"]]
    file.write_text(json.dumps(data))


def test_by_hand_through_files_with_the_bits_of_a_solve(folder: Folder) -> None:
    assert folder.data("init")["made"] is True
    assert folder.data("init") == {"study": str(folder.path / "study.study"), "made": False, "steps": 0}
    for step in range(5):
        form, answered = [("csv", answered_csv), ("json", answered_json)][step % 2]
        flags = ["--json"] if form == "json" else []
        asked = folder.run("ask", *flags).stdout
        answered(asked, folder.path / "answers")
        if step < 2:
            assert folder.run("ask", *flags).stdout == asked  # asking changes nothing
        first = folder.data("tell", "answers")
        assert first["taken"] == (1 if step == 4 else 3)
        if step < 2:
            again = folder.data("tell", "answers")
            assert (again["taken"], again["known"], again["steps"]) == (0, first["taken"], first["steps"])
    status = folder.data("status")
    expected = folder.expected()
    assert (status["done"], status["stop"], status["steps"]) == (True, "steps", 4)
    assert status["x"] == expected.x.tolist()
    assert status["value"] == expected.value
    nothing = folder.run("ask")
    assert nothing.stdout == "step,index,purpose\n"
    assert "nothing to ask" in nothing.stderr
    assert not (folder.path / "calls").exists()


def test_run_and_resume(folder: Folder) -> None:
    assert "no such study to resume" in folder.run("resume", code=2).stderr
    data = folder.data("run")
    assert data["x"] == folder.expected().x.tolist()
    assert folder.calls() == EXPECTED_QUERIES
    assert folder.data("run")["x"] == data["x"]
    assert folder.data("resume")["queries"] == 12
    assert folder.calls() == EXPECTED_QUERIES
    assert folder.data("resume", "--steps", "6")["steps"] == 6
    assert folder.calls() == EXPECTED_QUERIES + 6
    status = folder.run("status").stdout
    assert "F by step" in status
    assert "█" in status
    assert folder.data("status")["steps"] == 6  # also those beyond the steps of the TOML file


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_run_is_resumed_on_workers_too(folder: Folder) -> None:
    driver = subprocess.Popen(command("run"), cwd=folder.path, env=environ(PAUSE="0.1"))
    folder.wait_for_calls(5, driver)
    driver.send_signal(signal.SIGKILL)
    driver.wait(timeout=60)
    data = folder.data("resume", "--workers", "2")
    assert data["x"] == folder.expected().x.tolist()
    assert folder.calls() <= EXPECTED_QUERIES + 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT for one process")
def test_ctrl_c_keeps_what_there_is(folder: Folder) -> None:
    driver = subprocess.Popen(command("run", "--json"), cwd=folder.path, env=environ(PAUSE="0.2"), text=True,
                              stdout=subprocess.PIPE)  # fmt: skip
    folder.wait_for_calls(5, driver)
    driver.send_signal(signal.SIGINT)
    said, _ = driver.communicate(timeout=300)
    assert driver.returncode == 130
    assert json.loads(said)["stop"] == "interrupted"
    assert folder.data("resume")["x"] == folder.expected().x.tolist()
    assert folder.calls() <= EXPECTED_QUERIES + 1


def test_a_failing_follower(folder: Folder) -> None:
    broken = folder.run("run", "--attempts", "2", "--wait", "0", code=2, BROKEN="1")
    assert "failed 2 times" in broken.stderr
    assert "out of order" in broken.stderr
    assert folder.data("run")["x"] == folder.expected().x.tolist()


def test_exports(folder: Folder) -> None:
    folder.run("run")
    assert folder.data("export", "study.toml", "answers.csv")["rows"] == EXPECTED_QUERIES
    rows = table(folder.path / "answers.csv")
    assert [float(row["y0"]) for row in rows] == [abs(float(row["x0"]) - 0.3) for row in rows]
    assert folder.data("export", "study.study", "answers.csv")["rows"] == EXPECTED_QUERIES  # no code needed
    folder.run("export", "study.toml", "steps.csv", "--what", "steps")
    steps = table(folder.path / "steps.csv")
    assert [float(row["value"]) for row in steps] == folder.expected().trace["value"].tolist()
    assert "ends in .csv or .parquet" in folder.run("export", "study.toml", "answers.xls", code=2).stderr


def test_parquet(folder: Folder) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra parquet")
    folder.run("run")
    folder.run("export", "study.toml", "answers.parquet")
    table = parquet.read_table(folder.path / "answers.parquet").to_pydict()
    assert table["y0"] == [abs(x - 0.3) for x in table["x0"]]


def test_recovering(folder: Folder) -> None:
    folder.run("run")
    study = folder.path / "study.study"
    data = bytearray(study.read_bytes())
    data[len(data) // 2] ^= 1  # somewhere in an answer
    study.write_bytes(data)
    message = folder.run("status", code=4).stderr
    assert f"{EXPECTED_QUERIES - 1} answers are intact: save them with  pzos recover" in message
    assert folder.data("recover", "study.study") == {
        "study": "study.study", "saved_to": "study.recovered.study", "answers": EXPECTED_QUERIES - 1, "header": True,
        "known": 0, "lost": 0,
    }  # fmt: skip
    assert "exists" in folder.run("recover", "study.study", code=2).stderr
    (folder.path / "study.recovered.study").replace(study)
    assert folder.data("resume")["x"] == folder.expected().x.tolist()
    assert folder.calls() == EXPECTED_QUERIES + 1


def test_exit_codes_say_what_is_wrong(folder: Folder) -> None:
    folder.run("init")
    changed = STUDY.replace("seed = 3", "seed = 4")
    (folder.path / "study.toml").write_text(changed)
    assert "seed: the file has 3, you gave 4" in folder.run("run", code=3).stderr
    (folder.path / "study.toml").write_text(STUDY)
    with subprocess.Popen(command("run"), cwd=folder.path, env=environ(PAUSE="600")) as writer:
        try:
            folder.wait_for_calls(1, writer)
            assert f"is being written by process {writer.pid}" in folder.run("resume", code=5).stderr
            assert folder.data("status")["done"] is False  # looking on is allowed
        finally:
            writer.kill()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("step,index,y0,y1\n9,0,1,2\n", "answer 9.0: expected an open query"),
        ("step,index,y0,y1\n0,0,1,nan\n", "expected finite numbers"),
        ("step,index,y0,y1\n0,0,1,2\n0,1,3,\n", "row 0.1 has a blank cell"),
        ("step,index,x0,x1,y0,y1\n0,0,7,7,1,2\n", "the x that was asked"),
        ("step,index\n0,0\n", "has no y0, y1"),
        ('{"queries": [{"step": 0}]}', "cannot be read as answers"),
    ],
)
def test_answers_that_cannot_be_taken_change_nothing(folder: Folder, rows: str, said: str) -> None:
    folder.run("init")
    (folder.path / "answers").write_text(rows)
    assert said in folder.run("tell", "answers", code=2).stderr
    assert folder.data("status")["open"] == ["0.0", "0.1", "0.2"]


def test_a_failed_measurement_is_an_answer_too(folder: Folder) -> None:
    folder.run("init")
    (folder.path / "answers").write_text("step,index,y0,y1,failure\n0,0,1,2,\n0,1,,,the sensor was down\n0,2,1,2,\n")
    for taken in (3, 0):
        assert folder.data("tell", "answers")["taken"] == taken
    status = folder.data("status")
    assert (status["steps"], status["failures"]) == (1, 1)


def test_a_program_as_follower(folder: Folder) -> None:
    (folder.path / "simulator.py").write_text(
        "import json, sys; print(json.dumps({'y': [abs(v - 0.3) for v in json.load(sys.stdin)['x']]}))"
    )
    program = f"[follower]\ncommand = [{json.dumps(sys.executable)}, {json.dumps(str(folder.path / 'simulator.py'))}]\n"
    (folder.path / "study.toml").write_text(STUDY.replace('follower = "model:follower"\n', "") + program)
    assert folder.data("run", "--steps", "1")["steps"] == 1


def test_a_new_user_in_an_empty_folder(tmp_path: Path) -> None:
    def said(*words: str, code: int = 0) -> str:
        done = pzos_in(tmp_path, *words)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    assert "pzos init --example" in said("init", code=2)
    assert "study.toml and model.py: written; change them, then: pzos run study.toml" in said("init", "--example")
    assert "left as it is" in said("init", "--example")
    assert "all steps were taken" in said("run")


def test_the_default_solver_is_that_of_solve(folder: Folder) -> None:
    (folder.path / "study.toml").write_text(STUDY.split("[solver]")[0])
    data = folder.data("run")
    leader = pzos.leader_from_functions(lambda x, y: float(y @ y), lambda x, y: 0 * x, lambda x, y: 2 * y)
    game = pzos.Problem(leader, lambda x: np.abs(x - 0.3), [1.0, 2.0], pzos.Box(0.0, 2.0), name="gaps")
    expected = pzos.solve(game, seed=3, steps=4, path=folder.path / "other.study")
    assert data["x"] == expected.x.tolist()
    assert bits(expected) == bits(pzos.solve(game, seed=3, steps=4, path=folder.path / "other.study"))


FAULTS = [
    ("x0 = [1.0, 2.0]\n", "", "x0"),
    ("seed = 3", "sede = 3", "sede"),
    ("model:leader", "model:lader", "has no 'lader'"),
    ("model:leader", "modell:leader", "cannot be imported"),
    ("model:leader", "model", "add a colon"),
    ('"PZOS"', '"PZOSS"', "solver.kind"),
    ('"Box"', '"Whole"', "set"),
    ("steps = 4", "steps = = 4", "cannot be read as TOML"),
    ("scale = 0.05", "scael = 0.05", "scael"),
    ("steps = 4", "study = 7", "study = 7: expected text; put it in quotes"),
    ("steps = 4", 'monitor = "no"', "monitor = 'no': expected True or False"),
]


@pytest.mark.parametrize(("was", "becomes", "named"), FAULTS, ids=[row[2] for row in FAULTS])
def test_faults_of_a_description_are_named(folder: Folder, was: str, becomes: str, named: str) -> None:
    (folder.path / "study.toml").write_text(STUDY.replace(was, becomes))
    assert named in folder.run("init", code=2).stderr
    assert not list(folder.path.glob("*.study"))


# ---- the same in this process: what is printed, and what is refused ----------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(list(words)) == code
    out, err = capsys.readouterr()
    return out if code == 0 else err


def test_a_study_from_its_first_word_to_its_table(here: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    assert "made; next: pzos ask study.toml, or pzos run study.toml" in said(capsys, "init")
    assert "is there already, 0 steps taken" in said(capsys, "init")
    assert said(capsys, "status").splitlines()[-1].split() == ["open", "queries", "0.0,", "0.1,", "0.2"]
    assert repr(here.expected())[:20] in said(capsys, "run")
    first, *_, last = said(capsys, "status").splitlines()
    assert first.split() == ["study", str(here.path / "study.study")]
    assert last.startswith("F by step")
    assert set(last.split()[-1]) <= set("▁▂▃▄▅▆▇█")
    of_file = said(capsys, "status", "study.study")
    assert f"answers    {EXPECTED_QUERIES}, 0 of them failures" in of_file
    assert "problem    gaps" in of_file


def test_more_steps_than_the_description_says(here: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "run")
    assert json.loads(said(capsys, "resume", "--steps", "6", "--json"))["steps"] == 6
    assert json.loads(said(capsys, "status", "--json"))["steps"] == 6  # looking on shows every step taken
    assert said(capsys, "export", "study.toml", "steps.csv", "--what", "steps") == "steps.csv: 7 rows\n"
    assert len(table(here.path / "steps.csv")) == 7


def test_more_queries_than_the_description_says(here: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    (here.path / "study.toml").write_text(STUDY.replace("steps = 4", "queries = 12"))
    said(capsys, "run")
    extended = json.loads(said(capsys, "resume", "--queries", "18", "--json"))
    told = json.loads(said(capsys, "status", "--json"))
    for name in ("steps", "queries", "monitoring", "value", "best_value", "x", "stop", "done"):
        assert told[name] == extended[name], name
    assert said(capsys, "export", "study.toml", "steps.csv", "--what", "steps") == "steps.csv: 6 rows\n"
    assert float(table(here.path / "steps.csv")[-1]["value"]) == extended["value"]


def test_the_status_says_why_a_study_ended_and_whether_it_would_go_on(here: Folder, capsys) -> None:
    (here.path / "study.toml").write_text(STUDY.replace("steps = 4", "queries = 12"))
    said(capsys, "run")
    assert json.loads(said(capsys, "status", "--json"))["stop"] == "queries"
    (here.path / "study.toml").write_text(STUDY.replace("steps = 4\n", ""))
    assert json.loads(said(capsys, "status", "--json"))["open"] == ["3.1", "3.2"]  # the last look is the iterate's


def stop_everywhere(capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Return why the study stopped, in the words of everyone who says so."""
    rows = [dict(line.split(maxsplit=1) for line in said(capsys, "status", name).splitlines() if len(line.split()) > 1)
            for name in ("study.toml", "study.study")]  # fmt: skip
    watched = said(capsys, "watch", "study.study", "--once")
    state = next(line for line in watched.splitlines() if line.startswith("state")).split(maxsplit=1)[1]
    told = {row["stopped"].split(": ")[1] for row in rows}
    reported = story_of_file(Path("study.study")).status.split(";")[0]
    return told | {state.removeprefix("ended: "), reported.removeprefix("ended: ")}


@pytest.mark.parametrize(
    ("limit", "words", "stop"),
    [
        ("steps = 4", (), pzos.Stop.STEPS),
        ("queries = 12", (), pzos.Stop.QUERIES),
        ("seconds = 1e-9", (), pzos.Stop.SECONDS),
        ("steps = 100", ("--steps", "3"), pzos.Stop.STEPS),
    ],
)
def test_everyone_says_the_same_reason_for_the_end(limit, words, stop, here: Folder, capsys) -> None:
    (here.path / "study.toml").write_text(STUDY.replace("steps = 4", limit))
    assert json.loads(said(capsys, "run", *words, "--json"))["stop"] == stop.name.lower()
    assert stop_everywhere(capsys) == {stop.value}
    if not words:
        said(capsys, "init")  # opened again, and nothing told: the reason stands
        assert stop_everywhere(capsys) == {stop.value}
    assert json.loads(said(capsys, "status", "study.study", "--json"))["stop"] == stop.name.lower()


def test_everyone_says_that_a_run_was_interrupted_until_it_goes_on(here: Folder, capsys) -> None:
    (here.path / "model.py").write_text(INTERRUPTED)
    assert main(["run"]) == 130
    capsys.readouterr()
    assert stop_everywhere(capsys) == {pzos.Stop.INTERRUPTED.value}
    said(capsys, "resume")
    assert stop_everywhere(capsys) == {pzos.Stop.STEPS.value}


def test_answers_are_exported_with_every_digit(here: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "run")
    assert said(capsys, "export", "study.study", "answers.csv") == f"answers.csv: {EXPECTED_QUERIES} rows\n"
    rows = table(here.path / "answers.csv")
    assert [float(rows[0]["x0"]), float(rows[0]["x1"])] == [1.0, 2.0]
    for row in rows:
        assert [float(row[f"y{k}"]) for k in (0, 1)] == [abs(float(row[f"x{k}"]) - 0.3) for k in (0, 1)]
    assert "ends in .csv or .parquet" in said(capsys, "export", "study.study", "answers.xls", code=2)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ask"], "there is no such study yet; make it with  pzos init"),
        (["resume"], "there is no such study to resume"),
        (["run", "x.study"], "code is never found in a study file"),
        (["run", "--dask", "local:2", "--workers", "2"], "expected one of them"),
        (["run", "--dask", "local:2", "--timeout", "3"], "a job on a cluster cannot be stopped from here"),
        (["run", "--attempts", "0"], "attempts"),
        (["run", "--dask", "bad"], "no scheduler answers at 'bad' (it has no port)"),
        (["status", "other.toml"], "write one to start from with  pzos init --example"),
    ],
)
def test_what_cannot_be_done_is_said(here: Folder, words: list[str], expected: str, capsys) -> None:
    assert expected in said(capsys, *words, code=2)
    assert not (here.path / "study.study").exists()


def test_a_study_without_a_follower_is_answered_by_people(here: Folder, capsys) -> None:
    (here.path / "study.toml").write_text(STUDY.replace('follower = "model:follower"\n', ""))
    assert "use  pzos ask  and  pzos tell" in said(capsys, "run", code=2)
    said(capsys, "init")
    assert said(capsys, "ask").count("\n") == 4


def test_text_from_a_file_steers_neither_terminal_nor_spreadsheet(
    here: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "init")
    with pzos.Study.open("study.study", *described(here), steps=4, seed=3) as study:
        study.fail(study.ask()[0], "=cmd()|\x1b[2J")
    said(capsys, "export", "study.study", "table.csv")
    assert "'=cmd()|\\x1b[2J" in Path("table.csv").read_text()
    assert main(["export", "study.study", "study.study"]) == 2


def described(here: Folder) -> tuple[Any, Any]:
    from pzos.cli.description import read_description

    found = read_description(here.path / "study.toml")
    return found.problem.known(), found.solver
