"""``pzos doctor``: what is installed, how many threads, which extras, where compiled code is kept."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pzos
from pzos.base.errors import PzosError
from pzos.cli.printing import emit

#: Extra -> the packages it brings, each with what it is for.
EXTRAS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "(always)": (("numpy", "arrays"), ("scipy", "linear algebra"), ("numba", "compiled followers")),
    "jax": (("jax", "leaders by automatic differentiation"),),
    "torch": (("torch", "leaders by automatic differentiation"),),
    "plot": (("matplotlib", "pictures"),),
    "report": (("plotly", "pzos report"), ("jinja2", "pages")),
    "dashboard": (("starlette", "pzos dashboard"), ("uvicorn", "its server")),
    "cli": (("rich", "progress bars, pzos watch"),),
    "dask": (("distributed", "clusters"),),
    "dataframe": (("pandas", "tables"),),
    "parquet": (("pyarrow", "pzos export to Parquet"),),
    "generator": (("gest-api", "pzos as a generator of the gest standard"),),
    "optuna": (("optuna", "a sampler for Optuna"),),
    "omx": (("openmatrix", "trips as OMX files"),),
    "osm": (("osmnx", "OpenStreetMap extracts"),),
    "traffic": (("uxsim", "a traffic simulator as follower"),),
    "sumo": (("libsumo", "SUMO as follower"),),
    "aequilibrae": (("aequilibrae", "a transport model as follower"),),
}
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Finding(NamedTuple):
    """One line of the report; ``ok`` is None where nothing can be wrong."""

    section: str
    name: str
    text: str
    ok: bool | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos doctor``."""
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("--compile", action="store_true", help="compile games and roads now: a fast first run")


def run(args: argparse.Namespace) -> int:
    """Print what was found; exit code 1 if something that is always needed is missing or does not work."""
    found = findings()
    if args.compile:
        found += _compiled()
    emit(args, [finding._asdict() for finding in found], as_text(found))
    return int(any(finding.ok is False for finding in found))


def findings() -> list[Finding]:
    """Look at the installation and return what there is to say."""
    found = [
        Finding("pzos", "version", pzos.__version__),
        Finding("pzos", "installed in", str(Path(pzos.__file__).parent)),
        Finding("machine", "python", f"{platform.python_version()} ({sys.executable})", sys.version_info >= (3, 11)),
        Finding("machine", "system", f"{platform.system()} {platform.release()} on {platform.machine()}"),
        Finding("machine", "cores", f"{os.cpu_count()}{_usable()}"),
    ]
    not_set = "not set: the library takes every core"
    found += [Finding("threads", name, os.environ.get(name, not_set)) for name in _THREADS]
    found += [_package(extra, name, purpose) for extra, packages in EXTRAS.items() for name, purpose in packages]
    found += [_cache(), _works(), _browser()]
    return found


def as_text(found: list[Finding]) -> str:
    """Return the findings as an aligned text with a heading per section."""
    width = max(len(finding.name) for finding in found)
    lines: list[str] = []
    section = ""
    for finding in found:
        if finding.section != section:
            section = finding.section
            lines += [*([""] if lines else []), section]
        mark = {True: "+", False: "!", None: " "}[finding.ok]
        lines.append(f"{mark} {finding.name:<{width}}  {finding.text}")
    return "\n".join(lines)


def _usable() -> str:
    if not hasattr(os, "sched_getaffinity"):
        return ""
    usable = len(os.sched_getaffinity(0))
    return f" ({usable} for this process)" if usable != os.cpu_count() else ""


def _package(extra: str, name: str, purpose: str) -> Finding:
    needed = extra == "(always)"
    section = "packages" if needed else "extras"
    try:
        return Finding(section, name, f"{importlib.metadata.version(name):<12} {purpose}", True)
    except importlib.metadata.PackageNotFoundError:
        advice = "needed: install pzos again" if needed else f'{purpose}: pip install "pzos[{extra}]"'
        return Finding(section, name, f"{'missing':<12} {advice}", False if needed else None)


def _cache() -> Finding:
    """Say where compiled code is kept and whether it can be kept there."""
    set_by_user = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(set_by_user) if set_by_user else Path(pzos.__file__).parent / "games" / "__pycache__"
    kept = [path for path in folder.rglob("*.nbc") if path.is_file()] if folder.is_dir() else []
    size = sum(path.stat().st_size for path in kept) / 1e6
    writable = os.access(folder if folder.is_dir() else folder.parent, os.W_OK)
    where = "NUMBA_CACHE_DIR" if set_by_user else "beside the package"
    state = f"{len(kept)} compiled functions, {size:.1f} MB, {where}"
    if not writable:
        state += "; it cannot be written: every start compiles again; set NUMBA_CACHE_DIR to a folder that can"
    return Finding("compilation", "cache", state, None if writable or kept else False)


def _works() -> Finding:
    """Run the smallest possible study."""
    import numpy as np

    from pzos.methods.smoothing import PZOS
    from pzos.problem.leader import leader_from_functions
    from pzos.problem.problem import Problem
    from pzos.solving import solve

    leader = leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
    try:
        result = solve(Problem(leader, abs, np.ones(2)), PZOS(), steps=3, progress=False)
    except PzosError as error:
        return Finding("self-test", "a run of 3 steps", f"failed: {error}", False)
    return Finding("self-test", "a run of 3 steps", f"{result.queries} queries, {result.stop.value}", True)


def _browser() -> Finding:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    return Finding("self-test", "browser for page tests", path or "no Chromium found: those tests are skipped")


def _compiled() -> Iterator[Finding]:
    import time

    from pzos.games import RoutingGame, SecurityGame
    from pzos.networks import generated_city

    def small_games() -> None:
        game = SecurityGame.random(0, targets=3)
        game.response(game.problem().x0)
        routing = RoutingGame.random(0)
        routing.response(routing.problem().x0)

    for name, use in (("games", small_games), ("roads", lambda: generated_city(4, 4).assign().open_flows)):
        start = time.perf_counter()
        use()
        yield Finding("compilation", name, f"ready after {time.perf_counter() - start:.1f} s", True)
