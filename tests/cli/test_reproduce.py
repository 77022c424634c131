"""The command as a subprocess: same bytes for any number of jobs, and after being killed."""

from __future__ import annotations

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="figures need the extra plot")

# The command on a scale of its own, so that the test takes seconds; workers import this module's text.
PROGRAM = """
import sys
from pzos.cli import reproduce as command
from pzos.experiments import descriptions as d
command.QUICK = d.Scale("quick", d.SecurityExperiment(dimensions=(50, 100, 105, 110), repetitions=2, steps=300,
                                             bold_dimensions=(110,)),
                        d.RoutingExperiment(instances=3, steps=60, bold_instances=1))
if __name__ == "__main__":
    from pzos.cli.main import main
    sys.exit(main(["reproduce", *sys.argv[1:]]))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "reproduce.py"
    path.write_text(PROGRAM)
    return path


def reproduce(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def csvs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.csv"))}


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and process groups")
def test_same_bytes_for_any_number_of_jobs_and_after_a_kill(program: Path, tmp_path: Path) -> None:
    figures = ("security", "second_moments", "routing")
    one = reproduce(program, *figures, "--quick", "--jobs", "1", "--out", str(tmp_path / "one"))
    assert one.returncode == 0, one.stderr
    said = [line for line in one.stderr.splitlines() if not line.startswith("compiling the ")]  # after an installation
    assert said == []
    expected = csvs(tmp_path / "one")
    assert {"security.csv", "second_moments.csv", "routing.csv", "claims.csv"} <= set(expected)

    finished = kill_half_way(program, figures, tmp_path / "killed")
    again = reproduce(program, *figures, "--quick", "--jobs", "2", "--out", str(tmp_path / "killed"))
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith(f"{28 - finished} runs computed")
    assert csvs(tmp_path / "killed") == expected

    third = reproduce(program, *figures, "--quick", "--out", str(tmp_path / "killed"))
    assert third.stdout.startswith("0 runs computed")
    assert csvs(tmp_path / "killed") == expected


def kill_half_way(program: Path, figures: tuple[str, ...], out: Path) -> int:
    """Start a reproduction, kill it without warning once some runs are stored, and say how many were."""
    command = [sys.executable, str(program), *figures, "--quick", "--jobs", "1", "--out", str(out)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    store = out / "runs-quick.sqlite"
    deadline = time.monotonic() + 120
    while stored(store) < 3 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    count = stored(store)
    assert 3 <= count < 28
    return count


def stored(store: Path) -> int:
    if not store.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
            return int(database.execute("SELECT count(*) FROM runs").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        if "database" in locals():
            database.close()


def test_more_seeds_are_computed_from_the_same_store_and_judged_together(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    one = reproduce(program, "routing_scatter", "--quick", "--out", str(out))
    assert one.stdout.startswith(
        "6 runs computed, 1 figure drawn; 0 of 9 claims of the paper hold, 0 do not, 9 are too"
    )
    picture = (out / "routing_scatter.png").read_bytes()
    two = reproduce(program, "routing_scatter", "--quick", "--seeds", "2", "--out", str(out))
    assert two.returncode == 0, two.stderr
    assert two.stdout.startswith("6 runs computed")  # those of the second seed
    assert (out / "routing_scatter.png").read_bytes() == picture  # drawn from the first
    with (out / "claims.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["source"] for row in rows} == {"paper", "finding"}
    above = next(row for row in rows if row["claim"] == "At t = 10 every instance lies above the diagonal")
    assert (above["verdict"], above["reason"]) == ("too small to judge", "needs 100 instances, has 3")
    numbers = [float(number) for number in above["numbers"].split()]
    assert len(numbers) == 2
    assert float(above["low"]) <= float(above["number"]) == sum(numbers) / 2 <= float(above["high"])
    page = (out / "index.html").read_text()
    assert "2 seeds from" in page
    assert "pzos reproduce --quick --seeds 2" in page


def test_the_page_is_self_contained(program: Path, tmp_path: Path) -> None:
    done = reproduce(program, "goldstein", "--quick", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "index.html").read_text()
    assert "data:image/png;base64," in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert "pzos reproduce goldstein --quick" in page
    assert "holds" in page


def test_runs_that_diverge_are_said_on_the_page_and_end_nothing(tmp_path: Path) -> None:
    """Both instances of this seed send ZOS with the larger step to where no equilibrium can be computed."""
    program = tmp_path / "reproduce.py"
    text = PROGRAM.replace("instances=3, steps=60, bold_instances=1", "instances=2, bold_instances=2")
    program.write_text(text.replace("command.QUICK =", 'd._FAMILY_OFFSET["routing"] += 33\ncommand.QUICK ='))
    out = tmp_path / "out"
    done = reproduce(program, "routing", "--quick", "--seed", "4", "--jobs", "1", "--out", str(out))
    assert done.returncode == 0, done.stderr
    sentence = (
        "ZOS on routing games, with the larger step: 2 of 2 runs diverged to where no equilibrium can be computed "
        "(seeds [4500033, 4500034])"
    )
    assert f"\n{sentence}, and count as the worst from there on\n" in done.stdout
    assert json.loads((out / "routing.json").read_text())["diverged"] == [sentence]
    assert sentence in (out / "index.html").read_text()
    assert "2 of 2, 2 of them to where no equilibrium can be computed" in (out / "claims.csv").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "FIGURE = 'nonsense': expected one of"),
        (["--jobs", "0"], "--jobs = 0: expected a whole number"),
        (["--seed", "-1"], "--seed = -1: expected"),
        (["--seeds", "0"], "--seeds = 0: expected a whole number"),
    ],
)
def test_bad_arguments_get_one_clear_line(program: Path, arguments: list[str], message: str) -> None:
    done = reproduce(program, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.filterwarnings("default")  # Dask's own
def test_same_bytes_on_a_dask_cluster(program: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    here = reproduce(program, "security", "--quick", "--jobs", "1", "--out", str(tmp_path / "here"))
    there = reproduce(program, "security", "--quick", "--dask", "local:2", "--out", str(tmp_path / "there"))
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    assert there.stdout.split("\n")[0] == here.stdout.split("\n")[0]
    assert csvs(tmp_path / "there") == csvs(tmp_path / "here")


def test_a_cluster_that_is_not_there(program: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the extra dask")
    done = reproduce(program, "security", "--quick", "--dask", "local:none", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "local:N" in done.stderr
    assert "Traceback" not in done.stderr
