"""Problems and solvers named on the command line as ``FILE.py:NAME`` or ``package.module:NAME``."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from pzos.errors import InvalidInput
from pzos.problem import Problem, require_problem


def named_problem(where: str, name: str | None) -> Problem | None:
    """Return the problem ``name``, or None if none is named."""
    return None if name is None else require_problem(where, _load(where, name))


def named_solver(where: str, name: str | None) -> Any:
    """Return the solver ``name``, or None if none is named."""
    return None if name is None else _load(where, name)


def _load(where: str, name: str) -> Any:
    """Return the named value; a function without arguments is called for it."""
    place, _, attribute = name.partition(":")
    if not attribute:
        raise InvalidInput(f"{where}: {name!r}: expected FILE.py:NAME or package.module:NAME; add a colon and a name")
    try:
        module = _module_of_file(where, Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except ImportError as error:
        raise InvalidInput(f"{where}: {name!r}: cannot be imported ({error}); check the name") from error
    if not hasattr(module, attribute):
        raise InvalidInput(f"{where}: {name!r}: {place} has no {attribute!r}; check the spelling")
    value = getattr(module, attribute)
    makes_it = callable(value) and not hasattr(value, "ask") and not isinstance(value, Problem)
    return value() if makes_it else value


def _module_of_file(where: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path) if path.exists() else None
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{where}: {str(path)!r}: expected a Python file; check the path")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
