"""The front door is light, names what exists, and every doctest of the core runs."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import pzos
from test_architecture import OUTSIDE, ROOMS

#: What a run of PZOS may load.
CORE = ROOMS[: ROOMS.index("games")]

SOURCE = str(Path(pzos.__file__).resolve().parent.parent)
HEAVY = sorted({*OUTSIDE} - {"lazy_loader"} | {"concurrent.futures", "multiprocessing", "asyncio"})


def loaded_by(program: str) -> set[str]:
    """Return the modules a fresh interpreter holds after ``program``."""
    whole = (
        f"import sys, json; sys.path.insert(0, {SOURCE!r}); {program}; sys.stdout.write(json.dumps(list(sys.modules)))"
    )
    # Coverage would load modules of its own.
    bare = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-I", "-c", whole]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=bare)
    return set(json.loads(done.stdout))


def test_import_pzos_loads_nothing_heavy_not_even_numpy() -> None:
    loaded = loaded_by("import pzos")
    assert not loaded & {*HEAVY, "numpy"}
    assert {name for name in loaded if name.startswith("pzos")} == {"pzos"}


def test_a_run_loads_numpy_and_nothing_heavier() -> None:
    program = (
        "import numpy; before = set(sys.modules); import pzos; "
        "f = pzos.leader_from_functions(lambda x, y: 0.0, lambda x, y: 0 * x, lambda x, y: 0 * y); "
        "pzos.solve(pzos.Problem(f, abs, [1.0]), pzos.PZOS(), steps=2); pzos.Study; pzos.check_leader; pzos.Box; "
        "sys.modules = {name: None for name in set(sys.modules) - before}"
    )
    loaded = loaded_by(program)
    assert not loaded & set(HEAVY)
    rooms = {name.split(".")[1] for name in loaded if name.startswith("pzos.")}
    assert rooms <= set(CORE)


def test_leader_doors_load_their_library_only_when_called() -> None:
    assert not loaded_by("import pzos; pzos.leader_from_jax; pzos.leader_from_torch") & {"jax", "torch"}


@pytest.mark.parametrize("name", sorted(set(pzos.__all__) - {"__version__"}))
def test_every_public_name_is_there_and_documented(name: str) -> None:
    thing = getattr(pzos, name)
    assert getattr(thing, "__doc__", None), f"{name} has no docstring"
    assert name in dir(pzos)


def test_no_public_name_is_shadowed_by_a_module() -> None:
    """``pzos.study`` cannot be a function once the room pzos/study/ is loaded: Python puts the package there."""
    files = {module.name for module in pkgutil.iter_modules(pzos.__path__)}
    assert files & set(pzos.__all__) == {"games", "networks", "stationarity", "testing"}
    importlib.import_module("pzos.study.run")
    assert callable(pzos.drive)
    assert callable(pzos.solve)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="No pzos attribute pizza"):
        pzos.pizza  # type: ignore[attr-defined]  # noqa: B018


def core_modules() -> list[str]:
    found = (module.name for module in pkgutil.walk_packages(pzos.__path__, "pzos."))
    return sorted(name for name in found if name.split(".")[1] in CORE)


@pytest.mark.parametrize("name", core_modules())
def test_doctests(name: str) -> None:
    failures, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failures == 0


def test_there_are_doctests_to_run() -> None:
    finder = doctest.DocTestFinder()
    examples = sum(len(t.examples) for n in core_modules() for t in finder.find(importlib.import_module(n)))
    assert examples >= 10
