"""What the commands share: which study, how to print, how to answer queries."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from pzos.answers.oracle import Oracle
from pzos.base.errors import InvalidInput
from pzos.cli.description import Description, read_description
from pzos.durable.replay import summary
from pzos.study.result import Result
from pzos.study.study import Study

_BARS = "▁▂▃▄▅▆▇█"


def add_study(parser: argparse.ArgumentParser) -> None:
    """Declare which study a command works on."""
    parser.add_argument("study", type=Path, nargs="?", default=Path("study.toml"), metavar="STUDY.toml",
                        help="the TOML file that describes the study (study.toml)")  # fmt: skip


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")


def add_running(parser: argparse.ArgumentParser) -> None:
    """Declare how queries are answered, and limits that replace those of the TOML file."""
    parser.add_argument("--steps", type=int, default=None, help="end after this many steps in all")
    parser.add_argument("--queries", type=int, default=None, help="end after this many queries in all")
    parser.add_argument("--workers", type=int, default=None, metavar="N", help="answer queries in N worker processes")
    parser.add_argument("--dask", default=None, metavar="ADDRESS", help="answer queries on this Dask cluster")
    parser.add_argument("--attempts", type=int, default=1, help="how often a query that fails is tried")
    parser.add_argument("--wait", type=float, default=1.0, help="seconds before the second attempt; doubles each time")
    parser.add_argument("--timeout", type=float, default=None, help="seconds after which an attempt is stopped")
    parser.add_argument("--drop", action="store_true",
                        help="go on without queries that fail for good (unbiased only if failing does not depend on "
                        "the direction)")  # fmt: skip


def limits_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the limits given on the command line."""
    given = {name: getattr(args, name, None) for name in ("steps", "queries")}
    return {name: value for name, value in given.items() if value is not None}


def look_at(description: Description) -> Study:
    """Open a study to look at it, with every step it has taken (``pzos resume --steps`` may have taken more)."""
    taken = summary(description.path).steps if description.path.exists() else 0
    longer = {"steps": taken} if taken > description.settings.get("steps", taken) else {}
    return open_study(description, read_only=True, **longer)


def open_study(description: Description, *, read_only: bool = False, **limits: Any) -> Study:
    """Open the durable study of a description; it must have been made by ``pzos init``."""
    if not description.path.exists():
        raise InvalidInput(f"{description.path}: there is no such study yet; make it with  pzos init")
    settings = {**description.settings, **limits}
    return Study.open(
        description.path, description.problem.known(), description.solver, read_only=read_only, **settings
    )


@contextlib.contextmanager
def oracle_of(args: argparse.Namespace, description: Description) -> Iterator[Oracle]:
    """Yield an oracle for the description's follower, where and how the arguments say."""
    from pzos.answers.failures import Tolerance, TolerantOracle

    if not description.has_follower:
        raise InvalidInput(
            f"{args.study}: names no follower: expected an entry 'follower'; add one, or use  pzos ask  and  pzos tell"
        )
    policy: Any = "drop" if args.drop else "raise"
    tolerance = Tolerance(attempts=args.attempts, wait=args.wait, timeout=args.timeout, policy=policy)
    seed = description.settings.get("seed", 0)
    with contextlib.ExitStack() as stack:
        executor = _executor(args)
        if executor is not None:
            stack.enter_context(executor)
        yield stack.enter_context(TolerantOracle(description.problem.follower, tolerance, seed=seed, executor=executor))


def _executor(args: argparse.Namespace) -> Executor | None:
    from pzos.answers.cluster import as_executor

    if args.dask is not None and args.workers is not None:
        raise InvalidInput("--dask and --workers were both given: expected one of them; choose where to compute")
    if args.dask is not None and args.timeout is not None:
        raise InvalidInput(
            "--dask and --timeout were both given: a job on a cluster cannot be stopped from here; use --workers, or "
            "give the program a time of its own: timeout = 60 in the table [follower] beside its command"
        )
    place = args.dask if args.dask is not None else args.workers
    return None if place is None else as_executor(place, timeout=args.timeout)


def described(path: Path) -> Description:
    """Read the TOML file a command was given."""
    if path.suffix == ".study":
        raise InvalidInput(
            f"{path}: expected the TOML file that describes the study; code is never found in a study file"
        )
    return read_description(path)


# ---- printing -------------------------------------------------------------------------------------------------


def emit(args: argparse.Namespace, data: Any, text: str) -> None:
    """Print ``data`` as JSON if asked for, else ``text``."""
    sys.stdout.write((json.dumps(plain(data), indent=1) if args.json else text) + "\n")


def plain(value: Any) -> Any:
    """Return ``value`` for JSON: numbers that are not finite become null."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def result_data(study: Study, result: Result) -> dict[str, Any]:
    """Return what scripts want to know of a study."""
    return {
        "problem": result.problem,
        "solver": result.solver,
        "seed": result.seed,
        "done": study.done,
        "stop": result.stop.name.lower(),
        "steps": result.steps,
        "queries": result.queries,
        "monitoring": result.monitoring,
        "failures": result.failures,
        "open": [] if study.done else [f"{query.step}.{query.index}" for query in study.ask()],
        "value": result.value,
        "best_value": result.best_value,
        "x": [float(entry) for entry in result.x],
        "best_x": [float(entry) for entry in result.best_x],
        "seconds": result.seconds,
    }


def sparkline(values: Any, width: int = 60) -> str:
    """Return the values as a line of small bars, at most ``width`` of them; unknown ones are blank."""
    numbers = [float(value) for value in values]
    if len(numbers) > width:
        numbers = [numbers[round(at * (len(numbers) - 1) / (width - 1))] for at in range(width)]
    known = [number for number in numbers if math.isfinite(number)]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known) or 1.0
    top = len(_BARS) - 1
    return "".join(_BARS[round((n - low) / span * top)] if math.isfinite(n) else " " for n in numbers)
