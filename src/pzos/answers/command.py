"""Followers that are programs: numbers go in as JSON or CSV, numbers come out, and what was said is kept on failure.

The program is an argument list, never a shell string. Each query has a working directory of its own. A program that
takes too long is stopped with what it started (:mod:`pzos.answers.processes`).
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from pzos.answers.processes import MARK, dismiss, end_family, enrol, kill_group, new_mark
from pzos.answers.workers import TIME_LIMIT
from pzos.base.checks import Must, check_fields, checked, one_of
from pzos.base.errors import FollowerFailure, FollowerTimeout
from pzos.base.threads import ONE_THREAD
from pzos.base.types import Vector
from pzos.problem.follower import Answer, Follower

Format = Literal["json", "csv"]
Keep = Literal["failures", "all", "nothing"]
_LAST_CHARACTERS = 400


def _are_arguments(command: Any) -> bool:
    is_list = isinstance(command, Sequence) and not isinstance(command, str) and len(command) > 0
    return is_list and all(isinstance(word, str | os.PathLike) for word in command)


_ARGUMENTS = Must(_are_arguments, "a list of arguments, not a shell string", 'try ["python", "sim.py"]')
_KEPT = one_of(("failures", "all", "nothing"), "choose", "failures, all or nothing")
_FOLDER = Must(lambda folder: Path(folder).is_dir(), "a directory that exists", "make it first")


@dataclass(frozen=True, eq=False)
class CommandFollower(Follower):
    """A follower that runs ``command``, a list of arguments, once per query.

    * In: ``{"x": [...]}`` (``format="json"``) or one row of numbers (``"csv"``), all digits, in a file in the query's
      working directory. Where an argument holds ``{input}`` it is replaced by that file's path; otherwise the program
      reads it from standard input.
    * Out: ``{"y": [...]}``, with ``"gap"`` if it is known, or rows of numbers; from the file named by ``{output}`` in
      the arguments, otherwise from standard output.

    ``directory`` is where the working directories are made (the system's temporary directory by default),
    ``environment`` is added to the present one (with one thread per numerical library), and after ``timeout`` seconds
    the program and what it started are stopped, also what has left its session or its parents, but for a process that
    has cleared its environment as well. ``keep`` says which working directories stay, each with the program's
    standard output and error: those of ``"failures"`` (the default), ``"all"`` or ``"nothing"``.
    """

    command: Sequence[str | os.PathLike[str]] = checked(_ARGUMENTS)
    format: Format = checked(one_of(("json", "csv")), default="json")
    timeout: float | None = checked(TIME_LIMIT, default=None)
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str | os.PathLike[str] | None = checked(_FOLDER.or_none(), default=None)
    keep: Keep = checked(
        one_of(("failures", "all", "nothing"), "choose", "failures, all or nothing"), default="failures"
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def respond(self, x: Vector, generator: Generator | None) -> Answer:
        """Run the program at x."""
        folder = Path(tempfile.mkdtemp(prefix="query-", dir=self.directory))
        try:
            answer = self._answer(x, folder)
        except FollowerFailure as error:
            if self.keep == "nothing":
                shutil.rmtree(folder, ignore_errors=True)
                raise
            raise type(error)(f"{error}; what it was given and what it said is kept in {folder}") from None
        if self.keep != "all":
            shutil.rmtree(folder, ignore_errors=True)
        return answer

    def _answer(self, x: Vector, folder: Path) -> Answer:
        given, returned = folder / f"query.{self.format}", folder / f"answer.{self.format}"
        given.write_text(_written(x, self.format), encoding="utf-8")
        words = [os.fspath(word) for word in self.command]
        from_file = any("{output}" in word for word in words)
        on_input = not any("{input}" in word for word in words)
        words = [word.replace("{input}", str(given)).replace("{output}", str(returned)) for word in words]
        self._run(words, folder, given if on_input else None)
        source = returned if from_file else folder / "stdout.txt"
        try:
            return _read(source.read_text(encoding="utf-8"), self.format)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FollowerFailure(
                f"{words[0]}: its answer cannot be read ({type(error).__name__}: {error}): expected "
                f"{_EXPECTED[self.format]} {'in the file {output}' if from_file else 'on standard output'}"
                f"{_last_words(folder)}"
            ) from error

    def _run(self, words: list[str], folder: Path, given: Path | None) -> None:
        """Run to the end or until the time is up; output goes to files, so that nothing can block on a full pipe."""
        mark = new_mark()
        environment = {**os.environ, **ONE_THREAD, **self.environment, MARK: mark}
        source = given if given is not None else Path(os.devnull)
        with (
            source.open("rb") as stdin,
            (folder / "stdout.txt").open("wb") as out,
            (folder / "stderr.txt").open("wb") as err,
        ):
            try:
                process = subprocess.Popen(
                    words, cwd=folder, env=environment, stdin=stdin, stdout=out, stderr=err, start_new_session=True
                )
            except OSError as error:
                raise FollowerFailure(f"{words[0]}: cannot be run ({error.strerror}); check the command") from error
            enrol(process.pid, mark)
            try:
                code = process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                raise FollowerTimeout(
                    f"{words[0]}: no answer within {self.timeout:g} s: it was stopped{_last_words(folder)}"
                ) from None
            finally:  # also on Ctrl-C; and what a program that ended has left running is of no more use
                if process.poll() is None:
                    end_family(process.pid, mark)
                kill_group(process.pid)
                process.wait()
                dismiss(process.pid)
        if code != 0:
            raise FollowerFailure(f"{words[0]}: ended with exit code {code}{_last_words(folder)}")


_EXPECTED = {"json": '{"y": [numbers]}', "csv": "rows of numbers"}


def _written(x: Vector, form: Format) -> str:
    numbers = [float(entry) for entry in x]  # written with repr, so that every bit arrives
    return json.dumps({"x": numbers}) if form == "json" else ",".join(map(repr, numbers)) + "\n"


def _read(text: str, form: Format) -> Answer:
    if form == "json":
        answer: Any = json.loads(text)
        y = answer["y"] if isinstance(answer, dict) else answer
        gap = float(answer.get("gap", "nan")) if isinstance(answer, dict) else float("nan")
    else:
        y = [float(entry) for row in csv.reader(text.splitlines()) for entry in row if entry.strip()]
        gap = float("nan")
    vector = np.atleast_1d(np.array(y, dtype=np.float64))
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(f"the answer has shape {vector.shape}")
    return Answer(vector, gap)


def _last_words(folder: Path) -> str:
    said = (folder / "stderr.txt").read_text(encoding="utf-8", errors="replace").strip()
    return f"; it said: {said[-_LAST_CHARACTERS:]}" if said else ""
