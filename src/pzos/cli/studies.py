"""A durable study from its TOML file to its table: ``init``, ``run``, ``resume``, ``status``, ``export``, ``recover``.

``pzos run`` killed goes on where it was; ``pzos resume`` does the same and never makes a new study; ``pzos status``
looks on while another process writes. The end of the file has what other commands need too: which study is meant, its
limits, and an oracle that answers its queries.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import operator
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

from pzos.answers.cluster import as_executor
from pzos.answers.crew import size_of
from pzos.answers.failures import Tolerance, TolerantOracle
from pzos.answers.oracle import Oracle
from pzos.answers.table import Answers
from pzos.answers.table_files import write_columns
from pzos.base.checks import Faults, aligned, counted, printable, shown
from pzos.base.errors import InvalidInput
from pzos.base.frames import spare_study
from pzos.base.types import Query
from pzos.cli.description import Description, look_at, read_description
from pzos.cli.printing import add_json, emit, sparkline
from pzos.durable.log import read_study, recover as save_intact
from pzos.durable.replay import summary
from pzos.methods.solver import Stop, explained
from pzos.problem.follower import name_of_followers
from pzos.problem.problem import Problem
from pzos.solving import certified
from pzos.stationarity.certificate import ended_with, kept_beside
from pzos.study.result import Result, stop_words
from pzos.study.run import CtrlC, drive
from pzos.study.study import Study

_TOLD = (
    "problem", "solver", "seed", "done", "stop", "steps", "queries", "monitoring", "failures", "open", "value",
    "best_value", "x", "best_x", "seconds", "explanation", "certificate",
)  # fmt: skip
#: A study with more answers is not replayed to say how far it is: that would take seconds.
_REPLAYED_AT_MOST = 20_000
EXAMPLE_STUDY = """\
# A study: what is optimised, how, and until when. Change it, then: pzos run THIS_FILE (or pzos init, ask and tell).
# Files are looked for beside this one; docs/study-file.md has everything that can be said here.
name = "tolls"
leader = "model:leader"          # in model.py beside this file
follower = "model:follower"      # or  {command = ["python", "simulator.py"]};  leave it out to answer by hand
x0 = [0.5, 0.5]
seed = 0
steps = 20

[set]
kind = "Box"
lower = 0.0
upper = 1.0

[solver]                         # leave the table out for the default method
kind = "PZOS"
step = 0.05
radius = 0.1
"""
EXAMPLE_MODEL = '''"""The leader's cost f(x, y) with its gradients; the followers' response y*(x) is only queried."""

import numpy as np

import pzos

leader = pzos.leader_from_functions(
    value=lambda x, y: float(y @ y + 0.1 * x @ x),
    grad_x=lambda x, y: 0.2 * x,
    grad_y=lambda x, y: 2.0 * y,
    name="tolls",
)


def follower(x):
    """Two roads: a toll on one sends its drivers to the other."""
    return np.maximum(1.0 - x + 0.5 * x[::-1], 0.0)
'''


# ---- pzos init --------------------------------------------------------------------------------------------------


def add_init(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos init``."""
    add_study(parser)
    parser.add_argument("--example", action="store_true", help="write STUDY.toml and model.py to start from, no more")
    add_json(parser)


def init(args: argparse.Namespace) -> int:
    """Make the study, or check that the one there is the one described; or write an example of a description."""
    if args.example:
        return _write_example(args)
    description = read_description(args.study)
    existed = description.path.exists()
    with _opened(description) as study:
        steps = study.step
    next_words = f"pzos ask {args.study}" + (f", or pzos run {args.study}" if description.has_follower else "")
    told = f"is there already, {counted(steps, 'step')} taken" if existed else f"made; next: {next_words}"
    emit(args, {"study": str(description.path), "made": not existed, "steps": steps}, f"{description.path}: {told}")
    return 0


def _write_example(args: argparse.Namespace) -> int:
    model = args.study.with_name("model.py")
    args.study.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for path, text in ((args.study, EXAMPLE_STUDY), (model, EXAMPLE_MODEL)):
        if path.exists():
            sys.stderr.write(f"{path}: is there already and was left as it is\n")
        else:
            path.write_text(text, encoding="utf-8")
            written.append(str(path))
    told = f"{' and '.join(written)}: written" if written else "nothing was written"
    emit(args, {"written": written}, f"{told}; change them, then: pzos run {args.study}")
    return 0


# ---- pzos run, pzos resume --------------------------------------------------------------------------------------


def add_run(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos run`` and ``pzos resume``."""
    add_study(parser)
    add_certificate(parser)
    add_answers(parser)
    add_running(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Make the study or go on with it; exit code 130 if it was interrupted."""
    description = read_description(args.study)
    purse = description.purse(args.queries, args.certificate)
    purse.require_able(description.solver)
    # Ctrl-C is heard where it can be told of: the result of a run is not lost with its certificate.
    with CtrlC(), oracle_of(args, description) as oracle:

        def workers() -> int:
            return 1 if oracle.executor is None else size_of(oracle.executor)

        def fresh(seed: int) -> TolerantOracle:
            return TolerantOracle(oracle.follower, tolerance_of(args), seed=seed, executor=oracle.executor)

        asked_for = workers() if args.workers or args.dask else description.workers
        description = description.answered_by(asked_for, args.order)
        limits = {**limits_of(args), "queries": purse.method}
        with _opened(description, **limits, **answers_of(args, description.problem)) as study:
            result, still_open = drive(study, oracle, workers=workers), study.ask()
        result = replace(result, explanation=explained(study.solver, study.state))
        result = certified(result, study, purse, fresh, description.path)
    emit(args, {"study": str(description.path), **result_data(result, still_open)}, result.table())
    return 130 if result.stop.name == "INTERRUPTED" else 0


def resume(args: argparse.Namespace) -> int:
    """Go on with a study that was begun."""
    path = read_description(args.study).path
    if not path.exists():
        raise InvalidInput(f"{path}: there is no such study to resume; begin it with  pzos run")
    return run(args)


# ---- pzos status ------------------------------------------------------------------------------------------------


def add_status(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos status``."""
    add_study(parser, "STUDY", "the TOML file (study.toml), or a study file, which says less")
    add_json(parser)


def status(args: argparse.Namespace) -> int:
    """Print a table and a sparkline of F."""
    if args.study.suffix != ".toml":
        return _status_of_file(args)
    description = read_description(args.study)
    found = summary(description.path)
    if found.answers > _REPLAYED_AT_MOST:
        args.study = description.path
        return _status_of_file(args)
    with look_at(description, limited=True) as study:
        result, more = study.result(explained(study.solver, study.state)), study.ask()
        beside = kept_beside(description.path, study)
    if beside is not None:
        result = ended_with(result, beside, beside.queries)
    if found.stop is not None:  # as its last session ended, whatever limits the description has by now
        result = replace(result, stop=found.stop)
    ended = found.stop not in (None, Stop.INTERRUPTED, Stop.CALLBACK)
    data = {"study": str(description.path), **result_data(result, more), "state": found.state}
    rows = [("study", str(description.path)), ("state", found.state), *result.rows(), *found.remarks]
    if ended and more:
        rows.append(("next", f"the description allows more by now: pzos run {args.study}"))
    if data["open"]:
        rows.append(("open queries", ", ".join(data["open"][:8]) + (", ..." if len(data["open"]) > 8 else "")))
    line = sparkline(result.trace["value"])
    if line:
        rows.append(("F by step", line))
    emit(args, data, aligned(rows))
    return 0


def _status_of_file(args: argparse.Namespace) -> int:
    found = summary(args.study)
    identity = found.header.get("identity", {})
    solver = printable(json.dumps(identity.get("solver", "unknown (the header was lost)")))
    rows = [
        ("study", str(args.study)),
        ("problem", identity.get("problem", {}).get("name") or "unnamed"),
        ("solver", solver if len(solver) <= 400 else solver[:397] + "..."),
        ("answers", f"{found.answers}, {found.failures} of them failures"),
        ("steps", f"{found.steps}"),
        ("seconds", f"{found.seconds:.3g}"),
        *found.remarks,
    ]
    stop = found.stop or Stop.RUNNING
    rows[1:1] = [("state", found.state)]
    rows.insert(4, ("stopped", stop_words(stop)))
    emit(args, {"study": str(args.study), **found._asdict(), "stop": stop.name.lower()}, aligned(rows))
    return 0


# ---- pzos export ------------------------------------------------------------------------------------------------


def add_export(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos export``."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="a study file, or its TOML file")
    parser.add_argument("file", type=Path, metavar="FILE", help="where to write: .csv or .parquet")
    parser.add_argument("--what", choices=("answers", "steps"), default="answers",
                        help="every answer (default), or one row per step (needs the TOML file)")  # fmt: skip
    add_json(parser)


def export(args: argparse.Namespace) -> int:
    """Write the table; an existing file is replaced."""
    if args.file.suffix not in (".csv", ".parquet"):
        raise InvalidInput(
            f"export: FILE = {str(args.file)!r}: expected a name that ends in .csv or .parquet; rename it"
        )
    spare_study(args.file)
    columns = _steps_table(args.study) if args.what == "steps" else _answers_table(args.study)
    count = len(next(iter(columns.values()))) if columns else 0
    write_columns(args.file, columns)
    data = {"file": str(args.file), "rows": count, "columns": list(columns)}
    emit(args, data, f"{args.file}: {counted(count, 'row')}")
    return 0


def _steps_table(study: Path) -> dict[str, list[Any]]:
    with look_at(read_description(study)) as opened:
        trace = opened.result().trace
    return {name: trace[name].tolist() for name in trace.columns}


def _answers_table(study: Path) -> dict[str, list[Any]]:
    contents = read_study(read_description(study).path if study.suffix == ".toml" else study)
    rows = contents.answers
    names = ("step", "index", "purpose", "gap", "seconds", "elapsed", "failure", "retried")
    columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in names}
    for letter, name, arrays in (
        ("x", "decisions", [row.x for row in rows]),
        ("y", "responses", [row.y for row in rows]),
    ):
        count = max((array.size for array in arrays), default=0)
        for entry, column in enumerate(contents.columns(name).of(count)):
            numbers = [float(a[entry]) if entry < a.size else float("nan") for a in arrays]
            columns[column.head(letter, entry)] = numbers
    return columns


# ---- pzos recover -----------------------------------------------------------------------------------------------


def add_recover(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos recover``."""
    parser.add_argument(
        "study", type=Path, metavar="STUDY", help="a damaged study file, or one of version 0.1 (it is left as it is)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write what was saved")
    add_json(parser)


def recover(args: argparse.Namespace) -> int:
    """Save every intact answer of a damaged study into a new file."""
    out = args.out or args.study.with_name(f"{args.study.stem}.recovered{args.study.suffix}")
    saved = save_intact(args.study, out)
    said = (
        "" if saved.header else "; the header was lost: it is written anew when the study is opened and proves to fit"
    )
    if saved.lost:
        said += (
            f"; lost: {saved.lost} entries, the run goes on from before them; known to it of those asked for since: "
            f"{counted(saved.known, 'answer')}"
        )
    data = {"study": str(args.study), "saved_to": str(out), **saved._asdict()}
    emit(args, data, f"{out}: {counted(saved.answers, 'answer')} saved{said}; move it to the study's name and resume")
    return 0


# ---- which study, how far, and who answers ----------------------------------------------------------------------


def add_study(
    parser: argparse.ArgumentParser,
    metavar: str = "STUDY.toml",
    meaning: str = "the TOML file that describes the study (study.toml)",
    *,
    required: bool = False,
) -> None:
    """Declare which study a command works on."""
    if required:
        parser.add_argument("study", type=Path, metavar=metavar, help=meaning)
    else:
        parser.add_argument("study", type=Path, nargs="?", default=Path("study.toml"), metavar=metavar, help=meaning)


def add_running(parser: argparse.ArgumentParser) -> None:
    """Declare how queries are answered, and limits that replace those of the TOML file."""
    parser.add_argument("--steps", type=int, help="end after this many steps in all")
    parser.add_argument("--queries", type=int, help="end after this many queries in all")
    add_workers(parser)
    parser.add_argument("--attempts", type=int, default=1, help="how often a query that fails is tried")
    parser.add_argument("--wait", type=float, default=1.0, help="seconds before the second attempt; doubles each time")
    parser.add_argument("--timeout", type=float, help="seconds after which an attempt is stopped")
    parser.add_argument("--drop", action="store_true",
                        help="go on without queries that fail for good (unbiased only if failing does not depend on "
                        "the direction)")  # fmt: skip


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Declare who answers queries, and in which order answers are taken."""
    parser.add_argument("--workers", type=int, metavar="N", help="answer queries in N worker processes")
    parser.add_argument("--dask", metavar="ADDRESS", help="answer queries on this Dask cluster")
    parser.add_argument("--order", choices=("asked", "told"), help="told: no worker waits, a free one is asked at once "
                        "(the default method and fronts); asked: batch by batch, the same bits for any "
                        "workers")  # fmt: skip


def add_certificate(parser: argparse.ArgumentParser) -> None:
    """Declare what a certificate may cost."""
    parser.add_argument("--certificate", type=int, metavar="N",
                        help="end with a certificate from N queries more (default: from a tenth of the queries, if "
                        "these are enough)")  # fmt: skip


def add_answers(parser: argparse.ArgumentParser) -> None:
    """Declare which answers are known before the first query."""
    parser.add_argument("--answers", nargs="+", type=Path, metavar="FILE",
                        help="answers of these followers that are known already: study files, .csv or .parquet; a "
                        "study keeps a copy of its own when it is begun")  # fmt: skip
    parser.add_argument("--trust-since", metavar="DATE",
                        help="answers from before this date (2026-05-01), or not of the followers of this name, may no "
                        "longer be true and only shape the prior")  # fmt: skip


def answers_of(args: argparse.Namespace, problem: Problem) -> dict[str, Any]:
    """Return the answers that were given, merged; all files that cannot be used are named at once."""
    if not args.answers:
        if args.trust_since is not None:
            raise InvalidInput("--trust-since: expected answers to judge; give them with --answers FILE ...")
        return {}
    faults = Faults("--answers")
    tables = [table for file in args.answers if (table := faults.made(Answers.open, file)) is not None]
    faults.raise_if_any()
    table = functools.reduce(operator.add, tables)
    if args.trust_since is None:
        return {"answers": table}
    names = sorted({*table.follower_names, name_of_followers(problem.known().follower)} - {""})
    if not args.trust_since[:1].isdigit() and args.trust_since not in names:  # else a misspelt date would age them all
        of_whom = "" if not names else ", or the name of followers: " + ", ".join(names)
        raise InvalidInput(f"--trust-since: {shown(args.trust_since)}: expected a date (2026-05-01){of_whom}")
    return {"answers": table.trusting(args.trust_since)}


def limits_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the limits given on the command line."""
    given = {name: getattr(args, name, None) for name in ("steps", "queries")}
    return {name: value for name, value in given.items() if value is not None}


def open_study(description: Description, *, read_only: bool = False, **limits: Any) -> Study:
    """Open the durable study of a description; it must have been made by ``pzos init``."""
    if not description.path.exists():
        raise InvalidInput(f"{description.path}: there is no such study yet; make it with  pzos init")
    return _opened(description, read_only=read_only, **limits)


def _opened(description: Description, **settings: Any) -> Study:
    return Study.open(
        description.path,
        description.problem.known(),
        description.solver,
        **{**description.settings, "queries": description.purse().method, **settings},
    )


@contextlib.contextmanager
def oracle_of(args: argparse.Namespace, description: Description) -> Iterator[Oracle]:
    """Yield an oracle for the description's follower, where and how the arguments say."""
    require_follower(args, description)
    seed = description.settings.get("seed", 0)
    follower, tolerance = description.problem.follower, tolerance_of(args)
    with executor_of(args) as executor, TolerantOracle(follower, tolerance, seed=seed, executor=executor) as oracle:
        yield oracle


def require_follower(args: argparse.Namespace, description: Description) -> None:
    """Raise InvalidInput unless the description has a follower that can be asked."""
    if not description.has_follower:
        raise InvalidInput(
            f"{args.study}: names no follower: expected an entry 'follower'; add one, or use  pzos ask  and  pzos tell"
        )


def tolerance_of(args: argparse.Namespace, **settings: Any) -> Tolerance:
    """Return what the arguments say about a follower that fails."""
    policy: Any = "drop" if args.drop else "raise"
    return Tolerance(attempts=args.attempts, wait=args.wait, timeout=args.timeout, policy=policy, **settings)


def executor_of(args: argparse.Namespace) -> contextlib.AbstractContextManager[Executor | None]:
    """Return where the arguments say queries are answered, to be closed by ``with``."""
    if args.dask is not None and args.workers is not None:
        raise InvalidInput("--dask and --workers were both given: expected one of them; choose where to compute")
    if args.dask is not None and args.timeout is not None:
        raise InvalidInput(
            "--dask and --timeout were both given: a job on a cluster cannot be stopped from here; use --workers, or "
            "give the program a time of its own: timeout = 60 in the table [follower] beside its command"
        )
    place = args.dask if args.dask is not None else args.workers
    return contextlib.nullcontext() if place is None else as_executor(place, timeout=args.timeout)


def result_data(result: Result, open_queries: Iterable[Query] = ()) -> dict[str, Any]:
    """Return what scripts want to know of a study and its open queries."""
    still_open = [f"{query.step}.{query.index}" for query in open_queries]
    told = {
        "done": not still_open,
        "stop": result.stop.name.lower(),
        "open": still_open,
        "x": result.x.tolist(),
        "best_x": result.best_x.tolist(),
        "certificate": None if result.certificate is None else result.certificate.sentence,
    }
    return {name: told[name] if name in told else getattr(result, name) for name in _TOLD}
