"""Holds the order of the rooms (import levels, no cycles, sizes) and the habits of the house."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "pzos"

#: Rooms, lowest first: a room imports only from rooms before it; inside a room files may see each other, acyclically.
ROOMS = (
    "base",
    "problem",
    "methods",
    "answers",
    "study",
    "durable",
    "stationarity",
    "solving",
    "games",
    "networks",
    "report",
    "experiments",
    "integrations",
    "testing",
    "cli",
    "__main__",
)

#: Imports of a higher room inside a function: each one is a method that opens a door of a higher room for its user.
LAZY_UPWARD = {
    ("answers", "durable"),  # Answers.open
    ("study", "durable"),  # Study.open
    ("study", "stationarity"),  # Result.certify
    ("study", "report"),  # Result.plot, Result.report
    ("networks", "report"),
}

#: The front door names everything, and imports nothing until it is used.
FRONT_DOOR = "__init__"

#: Packages that are not the standard library, numpy or pzos, and the files or rooms that may import them.
OUTSIDE = {
    "jax": ("problem/autodiff.py",),
    "torch": ("problem/autodiff.py",),
    "matplotlib": ("base/figures.py", "experiments/", "networks/maps.py"),
    "mpl_toolkits": ("report/", "experiments/"),
    "rich": ("study/run.py", "cli/", "report/", "experiments/"),
    "plotly": ("report/",),
    "pandas": ("study/result.py", "networks/"),
    "dask": ("answers/cluster.py",),
    "distributed": ("answers/cluster.py",),
    "numba": ("games/", "networks/"),
    "llvmlite": ("games/", "networks/"),
    "scipy": (
        "problem/",
        "methods/",
        "stationarity/",
        "games/",
        "networks/",
        "experiments/",
        "base/threads.py",
        "integrations/scipy.py",
    ),
    "threadpoolctl": ("base/threads.py",),
    "lazy_loader": ("__init__.py", "games/__init__.py", "networks/__init__.py", "stationarity/__init__.py"),
    "psutil": ("answers/", "durable/"),
    "jinja2": ("report/", "experiments/"),
    "starlette": ("cli/dashboard.py",),
    "uvicorn": ("cli/dashboard.py",),
    "aequilibrae": ("networks/simulators/aequilibrae.py",),
    "uxsim": ("networks/simulators/uxsim.py",),
    "optuna": ("integrations/optuna.py",),
    "openmatrix": ("networks/omx.py",),
    "osmnx": ("networks/osm.py",),
    "libsumo": ("networks/simulators/sumo.py",),
    "sumo": ("networks/simulators/sumo.py",),
}
#: Of these even the rooms named above import only inside functions, so that nothing heavy comes with a module.
LAZY_ONLY = (
    "jax",
    "torch",
    "matplotlib",
    "mpl_toolkits",
    "plotly",
    "rich",
    "pandas",
    "dask",
    "distributed",
    "starlette",
    "uvicorn",
)

LONGEST_MODULE = 600
LONGEST_FUNCTION = 60
STANDARD = frozenset(sys.stdlib_module_names)


class Import(NamedTuple):
    module: str
    names: tuple[str, ...]
    line: int
    lazy: bool


class Module(NamedTuple):
    path: str
    text: str

    @property
    def name(self) -> str:
        parts = self.path.removesuffix(".py").split("/")
        return "pzos." + ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)

    @property
    def room(self) -> str:
        return self.path.removesuffix(".py").split("/")[0]

    @property
    def tree(self) -> ast.Module:
        return parsed(self.text)


parsed = cache(ast.parse)


def modules() -> list[Module]:
    return [
        Module(p.relative_to(SOURCE).as_posix(), p.read_text(encoding="utf-8")) for p in sorted(SOURCE.rglob("*.py"))
    ]


def imports(module: Module) -> Iterator[Import]:
    """Yield what a module imports at run time; what stands under TYPE_CHECKING is for the type checker alone."""

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), node.lineno, lazy)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:  # a relative import, made absolute
                parts = ["pzos", *module.path.removesuffix(".py").split("/")]
                base = ".".join([*parts[: -node.level], *([node.module] if node.module else [])])
            yield Import(base, tuple(alias.name for alias in node.names), node.lineno, lazy)
        inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    yield from visit(module.tree, False)


def inner_targets(item: Import) -> list[str]:
    """Return the pzos modules an import may load: ``from pzos import games`` loads pzos.games."""
    if item.module == "pzos":
        return [f"pzos.{name}" for name in item.names]
    return [item.module] if item.module.startswith("pzos.") else []


def level_faults(module: Module) -> list[str]:
    if module.path == f"{FRONT_DOOR}.py":
        return [
            f"{module.path}:{i.line} imports {i.module}" for i in imports(module) if inner_targets(i) and not i.lazy
        ]
    if module.room not in ROOMS:
        return [f"{module.path}: room {module.room!r} has no level; add it to ROOMS in tests/test_architecture.py"]
    found = []
    for item in imports(module):
        for target in inner_targets(item):
            room = target.split(".")[1]
            if room not in ROOMS:
                if item.module != "pzos":
                    found.append(f"{module.path}:{item.line} imports {target}, which has no level in ROOMS")
                else:
                    found.append(f"{module.path}:{item.line} takes {room!r} from the front door; import its module")
            elif ROOMS.index(room) > ROOMS.index(module.room) and not (
                item.lazy and (module.room, room) in LAZY_UPWARD
            ):
                found.append(f"{module.path}:{item.line} imports {target}: {room!r} lies above {module.room!r}")
    return found


def outside_faults(module: Module) -> list[str]:
    found = []
    for item in imports(module):
        package = item.module.split(".")[0]
        if package in STANDARD or package in ("numpy", "pzos"):
            continue
        if not module.path.startswith(OUTSIDE.get(package, ())):
            found.append(
                f"{module.path}:{item.line} imports {package}; the files for it are {OUTSIDE.get(package, ())}"
            )
        elif package in LAZY_ONLY and not item.lazy:
            found.append(f"{module.path}:{item.line} imports {package} at module level; import it where it is used")
    return found


def random_faults(module: Module) -> list[str]:
    """Only keys.py draws; elsewhere the type Generator may be named, for annotations."""
    if module.path == "base/keys.py":
        return []
    found = []
    for item in imports(module):
        if item.module.startswith("numpy.random") and set(item.names) != {"Generator"}:
            found.append(f"{module.path}:{item.line} imports numpy.random; draw through pzos.base.keys")
        if item.module == "random" or (item.module == "numpy" and "random" in item.names):
            found.append(f"{module.path}:{item.line} imports random; draw through pzos.base.keys")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
            if node.attr != "Generator":
                found.append(f"{module.path}:{node.lineno} uses {ast.unparse(node)}; draw through pzos.base.keys")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Generator":
            found.append(f"{module.path}:{node.lineno} makes a Generator; draw through pzos.base.keys")
    return found


def size_faults(module: Module) -> list[str]:
    lines = module.text.splitlines()
    found = [f"{module.path}: {len(lines)} lines; grow a room"] if len(lines) > LONGEST_MODULE else []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = code_lines(node, lines)
            if length > LONGEST_FUNCTION:
                found.append(f"{module.path}:{node.lineno} {node.name}: {length} lines of code; split it")
    return found


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> int:
    """Count the lines of a function that are neither docstring nor comment nor blank."""
    start = node.body[0]
    documented = isinstance(start, ast.Expr) and isinstance(start.value, ast.Constant) and ast.get_docstring(node)
    skipped = range(start.lineno, (start.end_lineno or 0) + 1) if documented else range(0)
    counted = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return sum(
        1 for n in counted if n not in skipped and lines[n - 1].strip() and not lines[n - 1].strip().startswith("#")
    )


FORBIDDEN_CALLS = {"print", "eval", "exec", "os.system", "os.popen", "breakpoint"}
FORBIDDEN_PACKAGES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}


def habit_faults(module: Module) -> list[str]:
    found = [
        f"{module.path}:{number} carries a mark: {line.strip()}"
        for number, line in enumerate(module.text.splitlines(), 1)
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line)
    ]
    found += [
        f"{module.path}:{item.line} imports {item.module}: nothing is unpickled here"
        for item in imports(module)
        if item.module.split(".")[0] in FORBIDDEN_PACKAGES
    ]
    for node in ast.walk(module.tree):
        where = f"{module.path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Assert):
            found.append(f"{where} asserts; raise an error of pzos.base.errors")
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            found.append(f"{where} has a bare except")
        elif isinstance(node, ast.Call):
            if ast.unparse(node.func) in FORBIDDEN_CALLS:
                found.append(f"{where} calls {ast.unparse(node.func)}")
            if any(k.arg == "shell" and ast.unparse(k.value) == "True" for k in node.keywords):
                found.append(f"{where} runs a shell string")
    return found


CHECKS = (level_faults, outside_faults, random_faults, size_faults, habit_faults)


@pytest.mark.parametrize("check", CHECKS)
def test_every_module_keeps_the_rules(check: Callable[[Module], list[str]]) -> None:
    found = [fault for module in modules() for fault in check(module)]
    assert not found, "\n".join(found)


def test_there_are_modules_to_look_at() -> None:
    wanted = {"base/types.py", "study/study.py", "methods/smoothing.py", "__init__.py"}
    assert wanted <= {module.path for module in modules()}


def test_no_solver_sees_the_derivatives_of_a_model() -> None:
    """They are for users who own the model; a solver that used them would not be one of black boxes."""
    seen = {
        module.path
        for module in modules()
        for item in imports(module)
        if item.module == "pzos.networks.derivatives"
        or ("derivatives" in item.names and item.module == "pzos.networks")
    }
    assert seen == {"networks/assignment.py"}


def test_no_import_cycles() -> None:
    names = {module.name for module in modules()}
    graph = {
        module.name: {
            target
            for item in imports(module)
            if not item.lazy
            for near in inner_targets(item)
            for target in (near, *(f"{near}.{name}" for name in item.names))
            if target in names and target != module.name
        }
        for module in modules()
    }
    done: set[str] = set()

    def walk(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail[trail.index(name) :], name))
        if name not in done:
            for target in sorted(graph[name]):
                walk(target, (*trail, name))
            done.add(name)

    for name in sorted(graph):
        walk(name, ())


@pytest.mark.parametrize(
    ("check", "path", "text"),
    [
        (level_faults, "problem/sets.py", "from pzos.study.study import Study"),
        (level_faults, "problem/sets.py", "def f():\n    from pzos.study.study import Study"),
        (level_faults, "methods/new.py", "from ..study import Study"),
        (level_faults, "methods/estimators.py", "from pzos import games"),
        (level_faults, "attic.py", "x = 1"),
        (level_faults, "__init__.py", "from pzos.study.study import Study"),
        (outside_faults, "study/study.py", "import scipy.linalg"),
        (outside_faults, "study/result.py", "import pandas"),
        (outside_faults, "study/study.py", "def f():\n    import requests"),
        (random_faults, "study/study.py", "from numpy.random import default_rng"),
        (random_faults, "study/study.py", "import numpy as np\nx = np.random.default_rng(0)"),
        (random_faults, "study/study.py", "from numpy.random import Generator\ng = Generator(bits)"),
        (size_faults, "study/study.py", "x = 1\n" * 601),
        (size_faults, "study/study.py", "def f():\n" + "    x = 1\n" * 61),
        (habit_faults, "study/study.py", "# TO" + "DO: later"),
        (habit_faults, "study/study.py", "print(1)"),
        (habit_faults, "study/study.py", "assert x"),
        (habit_faults, "study/study.py", "try:\n    f()\nexcept:\n    pass"),
        (habit_faults, "study/study.py", "import pickle"),
        (habit_faults, "study/study.py", "subprocess.run(c, shell=True)"),
        (habit_faults, "study/study.py", "eval('1')"),
    ],
)
def test_checks_find_what_they_are_for(check: Callable[[Module], list[str]], path: str, text: str) -> None:
    assert check(Module(path, text))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("study/result.py", "def plot():\n    from pzos.report.drawing import plot_result"),
        (
            "report/drawing.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pzos.cli",
        ),
        ("answers/oracle.py", "from numpy.random import Generator\ndef f(g: Generator) -> None: ..."),
        ("study/study.py", 'def f():\n    """' + "long\n" * 80 + '    """\n    return 1'),
    ],
)
def test_checks_let_good_code_through(path: str, text: str) -> None:
    assert not [fault for check in CHECKS for fault in check(Module(path, text))]
