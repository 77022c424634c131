"""A study described in a TOML file: the leader as ``module:name``, x0, the set, the solver, the seed, the limits.

``pzos init --example`` writes one, and docs/study-file.md has everything it may say. The leader is a Leader, a function
that makes one, or f(x, y), a plain function. The follower, which only ``pzos run`` needs, is a name too, or a table
with a ``command``. Constraints on outcomes are names, or tables of caps on entries of the answer: ``outcomes = [{upper
= [2.0], entries = [3]}]``. What entries of x and y are called is in tables ``[decisions]`` and ``[responses]`` with
``names``, ``units``, ``digits``. Without a table ``[solver]`` the default is chosen as :func:`pzos.solve` does.

Code is found through this file, which is the user's own, and never through a study file.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pzos
from pzos.answers.crew import COUNT
from pzos.base.checks import Faults, instance_of, nearest
from pzos.base.errors import InvalidInput, PzosError
from pzos.durable.replay import kept_in, open_whole
from pzos.methods.named import DEFAULT, METHODS
from pzos.problem.follower import Nobody
from pzos.problem.leader import Leader
from pzos.problem.outcomes import RISK, Outcomes
from pzos.problem.problem import Problem, require_problem
from pzos.problem.sets import Domain
from pzos.stationarity.purse import Purse, purse_of
from pzos.study.study import ORDER, Order, Study

_LIMITS = ("steps", "queries", "seconds", "target", "failure_rate")
_PROBLEM_KEYS = (
    "leader", "follower", "follower_name", "x0", "set", "grid", "sense", "name", "outcomes", "decisions", "responses",
    "unit",
)  # fmt: skip
_KEYS = {*_PROBLEM_KEYS, *_LIMITS, "problem", "solver", "seed", "monitor", "order", "workers", "study", "risk"}
_BY_HAND = Nobody("this study names no follower: answer its queries with  pzos ask  and  pzos tell")
_TEXTS = ("leader", "problem", "name", "study", "follower_name", "unit")
_TEXT = instance_of(str, "text", "put it in quotes")


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A study file, with the problem, the solver and the settings as far as they are known."""

    path: Path
    problem: Problem | None
    solver: Any
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Description(Source):
    """What a TOML file says; the follower of its problem may be missing.

    ``by_default`` says that no solver was named, and ``solver`` is the default for the problem.
    """

    problem: Problem
    has_follower: bool
    by_default: bool
    workers: int | None = None
    risk: float = 0.05

    def purse(self, queries: int | None = None, certificate: int | None = None) -> Purse:
        """Return how the budget is split where the default method is run: its certificate is inside, or on top.

        Without a budget, or by hand, there is none unless it is asked for.
        """
        budget = self.settings.get("queries") if queries is None else queries
        inside = self.by_default and self.has_follower and budget is not None
        return purse_of(
            self.problem.known(), budget, (None if inside else False) if certificate is None else certificate
        )

    def answered_by(self, workers: int | None, order: Order | None = None) -> Description:
        """Return the description with batches for so many workers, if the default method makes them.

        A study that was begun keeps its order, unless another is asked for, and its batches; with ``order = "told"``
        there are none.
        """
        kept = kept_in(self.path)
        settings = {"order": kept.order or "asked", **self.settings, **({} if order is None else {"order": order})}
        known, solver = self.problem.known(), self.solver
        if not self.by_default and known.outcomes is None:
            return replace(self, settings=settings)
        from pzos.methods.default import choose, suited  # slow to load; a method that is named does without

        if self.by_default:
            # The choice does not depend on the limits, which may change between sessions: the study stays the same.
            batch = kept.batch or (1 if settings["order"] == "told" else workers or 1)
            solver = choose(known, risk=self.risk, batch=batch)[0]
        return replace(self, settings=settings, solver=suited(known, solver, self.risk))


def read_description(path: Path) -> Description:
    """Read a TOML file and build what it describes; one error lists all its faults."""
    table = _table(path)
    faults = Faults(str(path))
    for key in sorted(set(table) - _KEYS):
        meant = nearest(key, _KEYS)
        faults.add(f"{key}: expected one of {', '.join(sorted(_KEYS))}; "
                   + (f"did you mean {meant!r}?" if meant else "check the spelling"))  # fmt: skip
    for key in () if "problem" in table else ("leader", "x0"):
        faults.check(key in table, key, None, f"an entry {key!r}", "pzos init --example  writes a study to start from")
    for key in sorted(set(table) & set(_PROBLEM_KEYS)) if "problem" in table else ():
        faults.add(f"{key}: expected nothing beside problem, which has its own; leave one of the two out")
    for key in table.keys() & _TEXTS:
        _TEXT.note(faults, key, table[key])
    faults.raise_if_any()
    folder = path.resolve().parent
    problem, has_follower = _problem(table, folder, str(path))
    by_default = "solver" not in table
    place = folder / table.get("study", path.stem + ".study")
    settings = {key: table[key] for key in (*_LIMITS, "seed", "monitor", "order") if key in table}
    solver = None if by_default else made_from(table["solver"], str(path), "solver")
    workers, risk = table.get("workers"), table.get("risk", 0.05)
    faults.check(by_default or hasattr(solver, "ask"), "solver", table.get("solver"), "a solver", 'try kind = "PZOS"')
    COUNT.note(faults, "workers", workers)
    ORDER.note(faults, "order", table.get("order", "asked"))
    RISK.note(faults, "risk", risk)
    faults.raise_if_any()
    described = Description(place, problem, solver, settings, has_follower, by_default, workers, risk)
    return described.answered_by(workers)


def _table(path: Path) -> dict[str, Any]:
    if path.suffix == ".study":
        raise InvalidInput(
            f"{path}: expected the TOML file that describes the study; code is never found in a study file"
        )
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(
            f"{path}: expected a TOML file that describes a study; check the name, or write one to start from with  "
            "pzos init --example"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path}: cannot be read as TOML ({error}); correct it there") from None


def _problem(table: dict[str, Any], folder: Path, where: str) -> tuple[Problem, bool]:
    if "problem" in table:
        return named_problem(f"{where}: problem = ", table["problem"], folder), True
    follower = _follower(table.get("follower"), folder, where)
    domain: Domain | None = made_from(table["set"], where, "set") if "set" in table else None
    problem = Problem(
        leader_named(table["leader"], folder),
        _BY_HAND if follower is None else follower,
        table["x0"],
        domain,
        table.get("sense", "min"),
        table.get("name", ""),
        follower_name=table.get("follower_name", ""),
        grid=table.get("grid"),
        outcomes=_outcomes(table.get("outcomes"), folder, where),
        decisions=table.get("decisions"),
        responses=table.get("responses"),
        unit=table.get("unit", ""),
    )
    return problem, follower is not None


def _outcomes(entry: Any, folder: Path, where: str) -> Any:
    """Return constraints given as names of Outcomes, or as a table ``{upper = ..., lower = ..., entries = [...]}``."""
    if entry is None:
        return None
    parts = []
    for part in entry if isinstance(entry, list) else [entry]:
        if isinstance(part, dict):
            try:
                parts.append(pzos.caps(**{"upper": float("inf"), **part}))
            except TypeError as error:
                raise InvalidInput(f"{where}: [outcomes]: {error}; see pzos.caps for what it takes") from None
        else:
            parts.append(made(part, folder))
    return parts


def leader_named(name: str, folder: Path) -> Leader:
    """Return the leader of that name: a Leader, what makes one, or f(x, y), a plain function."""
    found = made(name, folder)
    if isinstance(found, Leader):
        return found
    if callable(found) and len(inspect.signature(found).parameters) == 2:
        return pzos.leader_from_cost(found)
    raise InvalidInput(f"leader = {name!r}: expected a Leader, a function that makes one, or f(x, y); check it")


def _follower(entry: Any, folder: Path, where: str) -> Any:
    if entry is None:
        return None
    if isinstance(entry, dict):
        if isinstance(entry.get("command"), list):  # files beside the TOML file are found wherever the program runs
            entry = {**entry, "command": [_beside(word, folder) for word in entry["command"]]}
        try:
            return pzos.CommandFollower(**{"directory": None, **entry})
        except TypeError as error:
            raise InvalidInput(f"{where}: [follower]: {error}; see pzos.CommandFollower for what it takes") from None
    return load(entry, folder)


def _beside(word: Any, folder: Path) -> Any:
    return str(folder / word) if isinstance(word, str) and word and (folder / word).is_file() else word


def named_problem(where: str, name: str, folder: Path) -> Problem:
    """Return the problem of that name; the error begins with ``where``."""
    problem = made(name, folder)
    if not isinstance(problem, Problem):
        raise InvalidInput(f"{where}{name!r}: expected a pzos.Problem or a function that makes one; check the name")
    return problem


def made(name: str, folder: Path) -> Any:
    """Return the named value, or what it makes if it is a function that needs no arguments."""
    found = load(name, folder)
    if not callable(found) or isinstance(found, Leader | Outcomes | Problem) or hasattr(found, "ask"):
        return found
    parameters = inspect.signature(found).parameters.values()
    needs = any(one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
                for one in parameters)  # fmt: skip
    try:
        return found if needs else found()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        said = f"{type(error).__name__}: {error}"
        raise InvalidInput(f"{name!r}: expected a function that makes what is named, but it fails ({said}); "
                           "correct it, or check the name") from error  # fmt: skip


def made_from(entry: Any, where: str, key: str) -> Any:
    """Build what a table such as ``{kind = "Box", lower = 0.0, upper = 1.0}`` says: a set, a solver or a schedule."""
    if isinstance(entry, str):
        entry = {"kind": entry}
    if not isinstance(entry, dict) or "kind" not in entry:
        raise InvalidInput(f'{where}: {key} = {entry!r}: expected a table with a "kind"; try kind = "PZOS"')
    kind = _kind(str(entry["kind"]), where, key)
    options = {name: _option(value, where, f"{key}.{name}") for name, value in entry.items() if name != "kind"}
    try:
        return kind(**options)
    except TypeError as error:
        raise InvalidInput(f"{where}: {key}: {error}; see pzos.{entry['kind']} for what it takes") from None


def _kind(name: str, where: str, key: str) -> type:
    """Return the class of that name; methods in any case, and the nearest name where there is none."""
    given = f"{where}: {key if key.startswith('--') else f'{key}.kind'} = {name!r}"
    if name == DEFAULT:
        raise InvalidInput(f"{given}: expected a method of its own; for the default leave it out")
    known = next((one for one in METHODS if one.lower() == name.lower()), name)
    kind = getattr(pzos, known, None)
    if isinstance(kind, type) and not issubclass(kind, Exception):
        return kind
    names = METHODS if key in ("solver", "--solver") else [one for one in dir(pzos) if one[:1].isupper()]
    meant = nearest(name, names)
    hint = f"did you mean {meant!r}?" if meant else "check the spelling"
    raise InvalidInput(f"{given}: expected a name of pzos; {hint}")


def _option(value: Any, where: str, key: str) -> Any:
    """Return a value, or what it describes if it is a table with a kind, or a list of such tables."""
    if isinstance(value, dict) and "kind" in value:
        return made_from(value, where, key)
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return [made_from(one, where, f"{key}[{k}]") for k, one in enumerate(value)]
    return value


def load(name: Any, folder: Path) -> Any:
    """Return the object ``module:name`` or ``file.py:name``; modules are looked for in ``folder`` first."""
    module_name, _, attribute = str(name).partition(":")
    if not attribute:
        raise InvalidInput(f"{name!r}: expected module:name or file.py:name; add a colon and a name")
    if module_name.endswith(".py"):
        file = folder / module_name
        if not file.is_file():
            raise InvalidInput(f"{name!r}: there is no file {file}; check the path")
        folder, module_name = file.parent, file.stem
    folder = folder.resolve()
    if str(folder) not in sys.path[:1]:
        sys.path.insert(0, str(folder))
    _forget_namesake(module_name, folder)
    try:
        module = importlib.import_module(module_name)
    except PzosError:  # what it says is as clear as can be
        raise
    except ModuleNotFoundError as error:
        raise InvalidInput(f"{name!r}: cannot be imported ({error}); is {module_name}.py in {folder}?") from error
    except (Exception, SystemExit) as error:  # whatever the module does, it is the user's own
        said = f"{type(error).__name__}: {error}"
        raise InvalidInput(f"{name!r}: module {module_name} fails while it is imported ({said}); run it by itself to "
                           "see why") from error  # fmt: skip
    if not hasattr(module, attribute):
        meant = nearest(attribute, [one for one in vars(module) if not one.startswith("_")])
        hint = f"did you mean {module_name}:{meant}?" if meant else "check the spelling"
        raise InvalidInput(f"{name!r}: module {module_name} has no {attribute!r}; {hint}")
    return getattr(module, attribute)


def _forget_namesake(module_name: str, folder: Path) -> None:
    """Make room for the module in ``folder`` if another study's module of the same name is loaded."""
    loaded = sys.modules.get(module_name)
    wanted = folder / f"{module_name}.py"
    if loaded is not None and wanted.is_file() and getattr(loaded, "__file__", None) != str(wanted):
        del sys.modules[module_name]


# ---- a study as the looking-on commands take it: its TOML file, or the study file with the problem named beside it --


def add_names(parser: argparse.ArgumentParser, *, solver: bool = True) -> None:
    """Declare how problem and solver of a study that has no TOML file are named."""
    parser.add_argument("--problem", metavar="FILE.py:NAME", help="the problem a study file was opened with: shows F")
    if solver:
        parser.add_argument("--solver", metavar="FILE.py:NAME", help="the solver it was opened with: shows its trace")
    else:
        parser.set_defaults(solver=None)


def sources(where: str, studies: list[Path], args: argparse.Namespace) -> list[Source]:
    """Return where each study is and what it is about; one error lists all that are not there."""
    faults = Faults(where)
    for study in studies:
        faults.check(study.is_file(), "STUDY", str(study), "a study file or its TOML file", "check the path")
        for flag, value in (("--problem", args.problem), ("--solver", args.solver)):
            unused = study.suffix != ".toml" or value is None
            faults.check(unused, flag, value, "none beside a TOML file, which names its own", "leave it out")
    faults.raise_if_any()
    problem = None if args.problem is None else require_problem(where, made(args.problem, Path.cwd()))
    solver = None if args.solver is None else made(args.solver, Path.cwd())
    found = [
        read_description(study) if study.suffix == ".toml" else Source(study, problem, solver, {}) for study in studies
    ]
    for source in found:
        faults.check(source.path.is_file(), "STUDY", str(source.path), "a study that was begun", "begin it: pzos init")
    faults.raise_if_any()
    return found


def look_at(source: Source, *, limited: bool = False) -> Study:
    """Open a study to see everything in its file, which ends it; if ``limited``, the limits described say where."""
    settings = {"steps": None, **source.settings}
    if not limited:
        settings = {name: value for name, value in source.settings.items() if name not in _LIMITS}
    elif isinstance(source, Description):
        settings["queries"] = source.purse().method
    problem = require_problem("study", source.problem)
    return open_whole(source.path, problem.known(), source.solver, **settings)
