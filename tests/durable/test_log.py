"""The study file: every event comes back, a torn end is set aside, damage is one clear error and loses nothing intact.

The thousand mutations are ``benchmarks/damage.py`` and the hundreds of kills ``benchmarks/kill.py``; both are run here
on a small scale.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import pzos
from durable_problem import bits, calls, finish, problem
from pzos.base.frames import NOTHING_BEFORE, framed, scan
from pzos.base.types import Purpose, Query, Response
from pzos.cli.main import main
from pzos.durable import contents
from pzos.durable.log import create, open_log, read_study, recover, salvage, take_back
from pzos.durable.replay import header_of
from pzos.study.events import Event

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
HEADER = header_of(pzos.Study(problem().known(), pzos.PZOS()))


def opened(path: Path, game: pzos.Problem | None = None, **given: Any) -> pzos.Study:
    return pzos.Study.open(path, (game or problem()).known(), pzos.PZOS(), **{"seed": 7, "steps": 5, **given})


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    path, game = tmp_path / "s.study", problem()
    with opened(path, game) as study:
        finish(study, game)
    return path


def frame_spans(path: Path, kind: bytes) -> list[tuple[int, int]]:
    data = path.read_bytes()
    return [(frame.start, frame.end) for frame in scan(data) if frame.payload[:1] == kind]


# ---- what is written is read ------------------------------------------------------------------------------------

numbers = arrays(np.float64, st.integers(0, 4), elements=st.floats(width=64))
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)
answers = st.builds(
    lambda x, y, gap, failure, retried, purpose, step: Event(
        Query(step, 2, x, purpose), Response(step, 2, y, gap, 0.5, failure, retried), 3.25
    ),
    numbers, numbers, st.floats(width=64), texts, texts, st.sampled_from(Purpose), st.integers(0, 2**40),
)  # fmt: skip


@given(st.lists(answers, max_size=4))
def test_every_event_comes_back_bit_for_bit(tmp_path_factory: Any, events: list[Event]) -> None:
    path = tmp_path_factory.mktemp("log") / "s.study"
    log = create(path, HEADER)
    for event in events:
        log.write([_packed(event)])
    log.close()
    found = read_study(path)
    assert repr(found.events) == repr(events)
    for event, back in zip(events, found.events, strict=True):
        assert event.response is not None
        assert back.response is not None
        assert back.query.x.tobytes() == event.query.x.tobytes()
        assert back.response.y.tobytes() == event.response.y.tobytes()
        assert np.float64(back.response.gap).tobytes() == np.float64(event.response.gap).tobytes()
    assert found.header is not None
    assert {**found.header, "study": 0} == {**HEADER, "study": 0}


def _packed(event: Event) -> bytes:
    return contents.pack(event)


def test_open_queries_are_kept_when_the_study_is_closed(tmp_path: Path) -> None:
    log = create(tmp_path / "s.study", HEADER)
    log.opened()
    queries = [Query(0, index, np.full(2, float(index))) for index in range(3)]
    log.asked(queries)
    log.append(queries[1], Response(0, 1, np.ones(2)), 0.5)
    log.close()
    events = read_study(tmp_path / "s.study").events
    assert [(event.query.index, event.response is None) for event in events] == [(1, False), (0, True), (2, True)]
    np.testing.assert_array_equal(events[2].query.x, [2.0, 2.0])


def test_a_study_keeps_what_it_asked_once_and_why_it_ended(tmp_path: Path) -> None:
    path, game = tmp_path / "s.study", problem()
    for _ in range(3):
        with opened(path, game, steps=1) as study:
            asked = study.ask()
    found = read_study(path)
    assert [event.query[:2] for event in found.events] == [query[:2] for query in asked]
    assert all(event.response is None for event in found.events)
    assert "stop" not in found.notes[-1]
    with opened(path, game, steps=1) as study:
        finish(study, game)
    assert read_study(path).notes[-1] == {"kind": "closed", "stop": "all steps were taken"}
    assert calls(game) == len(asked) + 1


def test_notes_of_kinds_to_come_are_kept(tmp_path: Path) -> None:
    log = create(tmp_path / "s.study", HEADER)
    log.note("visited", by="an inspector")
    log.close()
    assert read_study(tmp_path / "s.study").notes == [{"kind": "visited", "by": "an inspector"}]


# ---- an answer taken back ---------------------------------------------------------------------------------------


def test_an_answer_taken_back_leaves_its_query_open_and_says_why(study_file: Path) -> None:
    before = read_study(study_file)
    left = take_back(study_file, 2, 1, "a detour that week")
    found = read_study(study_file)
    assert repr(found.events) == repr(left.events)
    assert found.notes[-1] == {"kind": "withdrawn", "step": 2, "index": 1, "why": "a detour that week"}
    assert (found.withdrawn, found.stop) == (1, None)
    assert before.stop is pzos.Stop.STEPS
    assert len(found.answers) == 8
    assert found.aside == len(before.answers) - 9
    with pytest.raises(pzos.InvalidInput, match=r"query 2\.1: has no answer that could be taken back"):
        take_back(study_file, 2, 1, "again")


def test_what_was_taken_back_survives_a_recovery(study_file: Path, tmp_path: Path) -> None:
    take_back(study_file, 2, 1, "")
    recover(study_file, tmp_path / "saved.study")
    again = read_study(tmp_path / "saved.study")
    assert repr(again.events) == repr(read_study(study_file).events)
    assert again.withdrawn == 1


def test_a_file_that_takes_back_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pzos.durable.contents._MOST_LOOKED_THROUGH", 2)
    log = create(tmp_path / "s.study", HEADER)
    for index in range(4):
        log.append(Query(0, index, np.ones(1)), Response(0, index, np.ones(1)), 0.0)
        log.note("withdrawn", step=0, index=index, why="")
    log.close()
    with pytest.raises(pzos.DamagedStudy, match="more answers are taken back than in any study"):
        read_study(tmp_path / "s.study")


def test_more_takes_in_what_came_since(tmp_path: Path) -> None:
    game, told = problem(), []
    with opened(tmp_path / "s.study", game) as writer:
        reader = open_log(tmp_path / "s.study", read_only=True)
        for _ in range(4):
            query = writer.ask()[0]
            writer.tell(query, game.follower.respond(query.x, None))
            reader.more()
            told.append(query[:2])
            assert [event.query[:2] for event in reader.contents.events] == told
        reader.close()


def test_who_writes_is_known_until_he_closes_it(tmp_path: Path) -> None:
    path = tmp_path / "s.study"
    with opened(path):
        assert read_study(path).being_written
    assert not read_study(path).being_written
    log = open_log(path)
    log.note("opened", pid=2**22 + 1, host=socket.gethostname())  # a process that is no more
    log.close()
    assert not read_study(path).being_written


# ---- torn ends --------------------------------------------------------------------------------------------------


def test_a_torn_end_is_set_aside_at_every_length(study_file: Path, tmp_path: Path) -> None:
    data = study_file.read_bytes()
    start, end = frame_spans(study_file, b"a")[9]
    for cut in (start + 1, start + 30, start + 60, end - 1):
        folder = tmp_path / str(cut)
        folder.mkdir()
        path = folder / "s.study"
        path.write_bytes(data[:cut])
        with opened(path, read_only=True) as study:  # a reader leaves it alone: a writer may be at it
            assert study.step == 3
        with pytest.raises(pzos.DifferentStudy):  # and so does one who opens another study
            opened(path, seed=8)
        assert path.read_bytes() == data[:cut]
        assert [file.name for file in folder.iterdir()] == ["s.study"]
        game = problem()
        with opened(path, game) as study:
            result = finish(study, game)
        assert calls(game) == 16 - 9
        assert bits(result) == bits(pzos.solve(problem(), pzos.PZOS(), seed=7, steps=5))
        (torn,) = folder.glob("*.torn")
        assert torn.read_bytes() == data[start:cut]
        assert path.read_bytes()[:start] == data[:start]


def test_a_full_disk_is_one_clear_error_and_the_answer_can_be_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game, path = problem(), tmp_path / "s.study"
    with opened(path, game, steps=1) as study:
        first, *others = study.ask()
        study.tell(first, game.follower.respond(first.x, None))
        before = path.read_bytes()

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("pzos.base.frames.sync", full)
            with pytest.raises(pzos.PzosError, match=r"No space left on device.*make room"):
                study.tell(others[0], game.follower.respond(others[0].x, None))
        assert path.read_bytes() == before
        result = finish(study, game)
    assert bits(result) == bits(pzos.solve(problem(), pzos.PZOS(), seed=7, steps=1))


def test_a_file_that_may_not_be_written_is_read(study_file: Path) -> None:
    study_file.chmod(0o444)
    with opened(study_file, read_only=True) as study:
        assert study.step == 5
    if getattr(os, "geteuid", lambda: 0)() != 0:  # the superuser may write to everything
        with pytest.raises(pzos.PzosError, match="cannot be opened for writing"):
            opened(study_file)


# ---- damage -----------------------------------------------------------------------------------------------------


def flipped(path: Path, *places: int) -> None:
    data = bytearray(path.read_bytes())
    for at in places:
        data[at] ^= 1
    path.write_bytes(bytes(data))


def test_a_lost_header_is_written_anew_once_the_answers_prove_to_fit(study_file: Path, tmp_path: Path) -> None:
    flipped(study_file, study_file.read_bytes().index(b'"identity"'))
    game, saved = problem(), tmp_path / "saved.study"
    with pytest.raises(pzos.DamagedStudy, match="no header and 16 answers are intact"):
        opened(study_file)
    assert recover(study_file, saved)[:2] == (16, False)
    with pytest.raises(pzos.DifferentStudy, match=r"query 0\.1"):
        opened(saved, game, seed=8)
    for _ in range(2):
        with opened(saved, game) as study:
            assert study.done
    assert calls(game) == 0
    with pytest.raises(pzos.DifferentStudy, match="seed"):
        opened(saved, game, seed=8)


def test_gaps_are_asked_again_and_later_answers_used(study_file: Path, tmp_path: Path) -> None:
    spans, stored = frame_spans(study_file, b"a"), read_study(study_file).answers
    flipped(study_file, spans[1][1] - 1, spans[7][0] + 70)
    before = study_file.read_bytes()
    with pytest.raises(pzos.DamagedStudy, match=rf"byte {spans[1][0]} .*the header and 14 answers are intact"):
        opened(study_file)
    assert recover(study_file, tmp_path / "saved.study")[:2] == (14, True)
    assert study_file.read_bytes() == before
    game = problem()
    with opened(tmp_path / "saved.study", game) as study:
        assert [query[:2] for query in study.ask()] == [stored[1][:2]]
        result = finish(study, game)
    assert calls(game) == 2
    assert bits(result) == bits(pzos.solve(problem(), pzos.PZOS(), seed=7, steps=5))


def test_answers_of_another_study_are_never_taken(study_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.study"
    with opened(other, seed=7) as study:
        for query in study.ask():
            study.tell(query, np.full(6, 9.0))
    foreign = [other.read_bytes()[start:end] for start, end in frame_spans(other, b"a")]
    own = study_file.read_bytes()
    for number, mixed in enumerate((own + b"".join(foreign), foreign[0] + own, own[:500] + foreign[1] + own[500:])):
        study_file.write_bytes(mixed)
        with pytest.raises(pzos.DamagedStudy, match=r"1[56] answers are intact"):
            opened(study_file)
        saved = tmp_path / f"saved-{number}.study"
        assert recover(study_file, saved)[0] in (15, 16)
        assert not any((row.y == 9.0).all() for row in read_study(saved).answers)


@pytest.mark.parametrize("content", [b"", b"not a study", bytes(10_000), b"SQLite format 3\0" + bytes(5000)])
def test_what_is_no_study_is_called_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.study"
    path.write_bytes(content)
    for attempt in (
        lambda: opened(path, read_only=True),
        lambda: read_study(path),
        lambda: recover(path, tmp_path / "saved.study"),
    ):
        with pytest.raises(pzos.DamagedStudy, match=r"no header(,| and) no intact answer"):
            attempt()
    with pytest.raises(pzos.DamagedStudy if not content.startswith(b"SQLite") else pzos.InvalidInput):
        opened(path)
    assert path.read_bytes() == content


HOSTILE = [
    b"h" + b"[" * 100_000,
    b"h" + json.dumps({"format": 2}).encode(),
    b"h" + json.dumps({"format": "2", "identity": {}, "versions": {}}).encode(),
    b"h\xff\xfe",
    b"n[1, 2]",
    b"z",
    b"",
    b"a" + b"\xff" * 61,
    b"a" + bytes(10),
]


@pytest.mark.parametrize("payload", HOSTILE, ids=range(len(HOSTILE)))
def test_frames_that_no_study_writes_are_refused(tmp_path: Path, payload: bytes) -> None:
    path = tmp_path / "s.study"
    path.write_bytes(framed(b"somebody", 0, NOTHING_BEFORE, payload)[0])
    with pytest.raises(pzos.DamagedStudy, match="frame 0 cannot be read"):
        opened(path)


def test_recover_never_overwrites_and_never_disturbs_a_writer(study_file: Path, tmp_path: Path) -> None:
    with pytest.raises(pzos.InvalidInput, match="exists"):
        recover(study_file, study_file)
    with pytest.raises(pzos.InvalidInput, match="check the name"):
        recover(study_file.with_name("none"), study_file.with_name("saved"))
    with opened(study_file), pytest.raises(pzos.StudyBusy):
        recover(study_file, tmp_path / "saved.study")


def test_creating_never_overwrites(study_file: Path, tmp_path: Path) -> None:
    before = study_file.read_bytes()
    with pytest.raises(pzos.InvalidInput, match="exists"):
        create(study_file, HEADER)
    assert study_file.read_bytes() == before
    with pytest.raises(pzos.PzosError, match="cannot be written"):
        create(tmp_path / "no" / "folder.study", HEADER)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.study"]


def test_a_file_system_without_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)
    create(tmp_path / "s.study", HEADER).close()
    assert [path.name for path in tmp_path.iterdir()] == ["s.study"]
    with pytest.raises(pzos.InvalidInput, match="exists"):
        create(tmp_path / "s.study", HEADER)


def test_nothing_comes_from_nothing() -> None:
    for data in (b"", b"pzos" * 1000, bytes(1000)):
        found, frames = salvage(data)
        assert (found.header, list(found.events), found.notes, frames) == (None, [], [], [])


# ---- the long drills on a small scale ---------------------------------------------------------------------------


def drilled(tmp_path: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / command[0]), *command[1:]],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_two_hundred_mutations(tmp_path: Path) -> None:
    assert "200 mutations: " in drilled(tmp_path, "damage.py", "200", "5")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills_at_random_moments_and_at_every_write_of_a_step(tmp_path: Path) -> None:
    said = drilled(tmp_path, "kill.py", "--small")
    assert "kills 20, " in said
    if not (shutil.which("cc") and sys.platform.startswith("linux")):
        pytest.skip("the 20 kills went well; a death at every write needs Linux and a C compiler")
    counted = re.search(r"boundaries (\d+), deaths (\d+), different 0, ", said)
    assert counted is not None
    boundaries, deaths = map(int, counted.groups())
    assert deaths == 2 * boundaries > 40


def test_a_batch_that_was_answered_as_one_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    rows: list[int] = []

    def counting(points: np.ndarray) -> np.ndarray:
        rows.append(len(points))
        return np.hstack([np.abs(points - 0.3), np.maximum(points, 0.1)])

    game, path = problem(follower=pzos.batched(counting)), tmp_path / "s.study"
    run: dict[str, Any] = {"seed": 7, "steps": 3, "path": path}
    result = pzos.solve(game, pzos.PZOS(batch=2), **run)
    assert rows == [5, 5, 5, 1]
    whole = path.read_bytes()
    kept = set()
    for size in range(len(whole) // 3, len(whole), 97):  # every so often the file ends in the middle of a frame
        path.write_bytes(whole[:size])
        kept.add(len(read_study(path).answers))
        again = pzos.solve(game, pzos.PZOS(batch=2), **run)
        assert bits(again) == bits(result)
    assert kept <= {0, 5, 10, 15, 16}
    assert len(kept) > 2


# ---- the file goes away, the disk is full, the file was made to harm ----------------------------------------------


@pytest.mark.parametrize("how", ["deleted", "renamed", "replaced"])
def test_a_file_that_goes_away_stops_the_run_and_its_answers_are_saved(tmp_path: Path, how: str) -> None:
    path, game = tmp_path / "s.study", problem()
    expected = finish(pzos.Study(game.known(), pzos.PZOS(), seed=7, steps=5), game)
    study = opened(path, game)
    for query in study.ask()[:2]:
        study.tell(query, game.follower.respond(query.x, None))
    if how == "renamed":
        path.rename(tmp_path / "other.study")
    else:
        path.unlink()
        if how == "replaced":
            path.write_bytes(b"something else")
    last = study.ask()[0]
    with pytest.raises(pzos.StudyGone, match=r"everything told so far is in .*saved; move it"):
        study.tell(last, game.follower.respond(last.x, None))
    study.close()
    (saved,) = tmp_path.glob("s.study.*.saved")
    assert len(read_study(saved).answers) == 3
    with opened(saved, game) as study:
        assert bits(finish(study, game)) == bits(expected)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_is_one_clear_error_and_loses_nothing(tmp_path: Path) -> None:
    assert drilled(tmp_path, "full_disk.py", "61").endswith("met\n")


def test_a_study_on_read_only_media_is_read_without_complaint(
    study_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, writing = os.open, os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def read_only(path: Any, flags: int, *given: Any, **named: Any) -> int:
        if flags & writing and Path(path).parent == study_file.parent:
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return real(path, flags, *given, **named)

    monkeypatch.setattr(os, "open", read_only)
    before = sorted(file.name for file in study_file.parent.iterdir())
    with opened(study_file, read_only=True) as study:
        assert study.done
        assert study.step == 5
    assert main(["status", str(study_file)]) == main(["watch", str(study_file), "--once"]) == 0
    assert "all steps were taken" in capsys.readouterr().out
    with pytest.raises(pzos.PzosError, match=r"cannot be opened for writing \(Read-only file system\).*read_only=True"):
        opened(study_file)
    assert sorted(file.name for file in study_file.parent.iterdir()) == before


def test_nothing_is_written_onto_a_study(study_file: Path) -> None:
    before, result = study_file.read_bytes(), finish(pzos.Study(problem().known(), pzos.PZOS(), steps=1), problem())
    for write in (result.to_csv, result.report):
        with pytest.raises(pzos.InvalidInput, match="nothing is written onto one"):
            write(study_file)
    assert study_file.read_bytes() == before


def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.study")
    with pytest.raises(pzos.PzosError, match="it is no plain file"):
        read_study(tmp_path / "pipe.study")


@pytest.mark.parametrize(
    "payload",
    [
        b"h" + json.dumps({**HEADER, "identity": {**HEADER["identity"], "solver": []}}).encode(),
        b"h" + json.dumps({**HEADER, "created": 3}).encode(),
        b"n" + b"[" * 100_000,
        b'n"' + b"x" * (1 << 20) + b'"',
        b'n{"kind": "withdrawn", "step": [], "index": 0}',
    ],
)
def test_frames_of_other_types_are_refused(tmp_path: Path, payload: bytes) -> None:
    (tmp_path / "s.study").write_bytes(framed(b"12345678", 0, NOTHING_BEFORE, payload)[0])
    with pytest.raises(pzos.DamagedStudy, match="frame 0 cannot be read"):
        read_study(tmp_path / "s.study")


def test_hostile_files(tmp_path: Path) -> None:
    assert "20 files, 0 failures\n" in drilled(tmp_path, "hostile.py", "20")
