"""What makes a study the study it is, in words a file can hold, and how two of them differ.

Numbers are kept exactly, arrays by their bits. A leader is kept by name alone: what it computes is verified by the
replay, which compares every stored query bit for bit with the one the solver asks now. A follower is not asked again,
so it is known by name and by a hash of its code and of what it closes over (:func:`identify`).
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import re
import sys
from collections.abc import Mapping
from enum import Enum
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from pzos.base.checks import printable
from pzos.base.frames import as_bytes

#: Arrays up to this length are kept number by number, so that a difference can be shown.
_SHOWN_ENTRIES = 20
_MAX_DIFFERENCES = 8


def describe(value: Any) -> Any:
    """Return ``value`` in terms of JSON: exact, readable, the same in every process."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return repr(float(value))  # as text: exact, and infinities and NaN survive JSON
    if isinstance(value, np.ndarray):
        return _described_array(value)
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        contents = [(field, getattr(value, field.name)) for field in dataclasses.fields(value)]
        fields = {
            field.name: describe(content)
            for field, content in contents
            if not (field.metadata.get("later") and content == field.default)
        }
        return {"type": _type_name(type(value)), **fields}
    if isinstance(value, Mapping):
        return {str(name): describe(item) for name, item in sorted(value.items(), key=lambda pair: str(pair[0]))}
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    return describe_function(value) if callable(value) else {"type": _type_name(type(value))}


def describe_function(function: Any) -> str:
    """Return ``module:name`` of a function, or of the type of a callable object."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{_module_name(named.__module__)}:{named.__qualname__}"


def name_of(function: Any) -> str:
    """Return a name that tells ``function`` from every other one that computes otherwise; "" if none can be derived.

    >>> name_of(np.linalg.norm), name_of(lambda x: x)
    ('numpy.linalg:norm', '')
    """
    if isinstance(function, np.ufunc):
        return f"numpy:{function.__name__}"
    if getattr(function, "__module__", "") is None:  # of no module: many may have its name
        return ""
    if dataclasses.is_dataclass(function) and not isinstance(function, type):
        kind: Any = type(function)
        fields = [getattr(function, field.name) for field in dataclasses.fields(function)]
        if not kind.__dataclass_params__.frozen or not all(map(_is_told_apart, fields)):
            return ""
        told = json.dumps(describe(function), sort_keys=True).encode()
        return f"{_type_name(kind)}:{blake2b(told, digest_size=12).hexdigest()}"
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):
        return f"{name}.{function.__name__}" if (name := name_of(owner)) else ""
    qualified = getattr(function, "__qualname__", "")
    unknown = not qualified or "<" in qualified or getattr(function, "__closure__", None)
    return "" if unknown else describe_function(function)


def identify(function: Any) -> dict[str, str]:
    """Return what tells a function from others: its name, a hash of its code with all it holds, and what that lacks.

    The hash holds for one version of Python, whose name is kept with it. Things that may change while they are used
    (lists, objects with a state) are left out, and ``unknown`` says so.
    """
    unknown: list[str] = []
    told = json.dumps(_told(function, "it", unknown), sort_keys=True).encode()
    inner = function.func if isinstance(function, partial) else function
    found = {"name": describe_function(inner), "code": blake2b(told, digest_size=12).hexdigest()}
    found["python"] = ".".join(platform.python_version_tuple()[:2])
    return {**found, "unknown": ", ".join(dict.fromkeys(unknown))} if unknown else found


def _told(value: Any, where: str, unknown: list[str], within: tuple[Any, ...] = ()) -> Any:
    """Return what ``value`` is in terms of JSON, and note what cannot be told."""
    if value is None or isinstance(value, bool | str | bytes | int | float | complex | np.generic | Enum | os.PathLike):
        return repr(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "iufb":
        return describe(value)
    if isinstance(value, tuple | frozenset):
        parts = [_told(part, where, unknown, within) for part in value]
        return parts if isinstance(value, tuple) else sorted(map(str, parts))
    if isinstance(value, CodeType):
        constants = [_told(constant, where, unknown, within) for constant in value.co_consts]
        return [value.co_code.hex(), constants, value.co_names, value.co_varnames, value.co_freevars]
    if isinstance(value, partial):
        keywords = {name: _told(part, name, unknown, within) for name, part in value.keywords.items()}
        return [_told(value.func, where, unknown, within), _told(value.args, where, unknown, within), keywords]
    if isinstance(value, MethodType):
        return [value.__name__, _told(value.__self__, where, unknown, within)]
    if isinstance(value, FunctionType):
        if value in within:  # it closes over itself
            return describe_function(value)
        within = (*within, value)
        closed = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        inside = {name: _told(_content(cell), name, unknown, within) for name, cell in closed}
        defaults = {**(value.__kwdefaults__ or {}), "": value.__defaults__}
        given = {name: _told(part, name or "a default", unknown, within) for name, part in defaults.items()}
        return [describe_function(value), _told(value.__code__, where, unknown, within), inside, given]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind: Any = type(value)
        if kind.__dataclass_params__.frozen:
            fields = [field.name for field in dataclasses.fields(value)]
            return [_type_name(kind), {name: _told(getattr(value, name), name, unknown, within) for name in fields}]
    if isinstance(value, np.ufunc | BuiltinFunctionType | type | ModuleType):
        return name_of(value) or str(value)
    wrapped = getattr(value, "__wrapped__", getattr(value, "py_func", None))  # what jax and numba compiled
    if wrapped is not None:
        return _told(wrapped, where, unknown, within)
    unknown.append(f"{where} ({_type_name(type(value))})")
    return _type_name(type(value))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that was not bound yet
        return None


def _is_told_apart(value: Any) -> bool:
    """Tell whether :func:`describe` gives two values the same words only if they are the same."""
    if value is None or isinstance(value, bool | str | int | float | np.number | Enum):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iufb"
    if isinstance(value, Mapping):
        return all(map(_is_told_apart, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_told_apart, value))
    return bool(name_of(value))


def differences(stored: Any, present: Any, where: str = "") -> list[str]:
    """Return one line per difference, each naming where it is and both sides.

    >>> differences({"seed": 0, "solver": {"step": "0.05"}}, {"seed": 0, "solver": {"step": "0.1"}})
    ['solver.step: the file has 0.05, you gave 0.1']
    """
    if isinstance(stored, dict) and isinstance(present, dict):
        kinds = (_without_module(stored.get("type")), present.get("type"))
        if kinds[0] != kinds[1]:  # two kinds of thing: their fields are not worth comparing
            return [f"{where or 'kind'}: the file has {kinds[0]}, you gave {kinds[1]}"]
        found: list[str] = []
        for name in [*stored, *(name for name in present if name not in stored)]:
            path = f"{where}.{name}" if where else str(name)
            if name != "type":
                found += differences(stored.get(name, "nothing"), present.get(name, "nothing"), path)
        return found
    if _without_module(stored) == present:
        return []
    return [f"{where}: the file has {_short(stored)}, you gave {_short(present)}"]


def listed(found: list[str]) -> str:
    """Return the differences as an indented list, cut after a few."""
    lines = [f"  - {line}" for line in found[:_MAX_DIFFERENCES]]
    if len(found) > _MAX_DIFFERENCES:
        lines.append(f"  - and {len(found) - _MAX_DIFFERENCES} more")
    return "\n".join(lines)


def _described_array(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.kind in "iufb" and array.size <= _SHOWN_ENTRIES:
        return [describe(entry) for entry in array.ravel()] if array.ndim else describe(array[()])
    bits = as_bytes(array) if array.dtype.kind == "f" else np.ascontiguousarray(array).tobytes()
    return {"type": "array", "shape": list(array.shape), "bits": blake2b(bits, digest_size=12).hexdigest()}


def _type_name(kind: type) -> str:
    return f"{_module_name(kind.__module__)}.{kind.__qualname__}"


def _module_name(name: str | None) -> str:
    """Return the name under which others import the module: a script that runs as ``__main__`` is known by its file.

    What is in pzos is known by the package alone, so that a module may move without a file noticing. Code that was
    executed from a string may be in no module at all.
    """
    if name is None:
        return ""
    if name != "__main__":
        return "pzos" if name.startswith("pzos.") else name
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)  # set by  python -m
    file = getattr(main, "__file__", None)  # missing where people type or run  python -c
    return spec.name if spec is not None else Path(file).stem if file else name


def _without_module(stored: Any) -> Any:
    """Return a name of ours as it is written today; files of version 0.1 also hold the module it lay in then."""
    return (
        re.sub(r"^pzos(?:\.[a-z_0-9]+)+([.:])(?=[A-Za-z_])", r"pzos\1", stored) if isinstance(stored, str) else stored
    )


def _short(value: Any) -> str:
    text = printable(str(value))
    return text if len(text) <= 80 else text[:77] + "..."
