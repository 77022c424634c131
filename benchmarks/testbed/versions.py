"""What a benchmark was run with, for the first line it prints."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, version

import pzos


def versions(packages: Sequence[str]) -> str:
    """Return the versions of pzos, Python and these packages, and the machine."""
    found = [f"{name} {_version(name) or 'not installed'}" for name in packages]
    return f"pzos {pzos.__version__}, Python {platform.python_version()}, {', '.join(found)}, {platform.machine()}"


def _version(name: str) -> str:
    """Return the version of a package, which may be called otherwise than its module (simopt is in simoptlib)."""
    try:
        return version(name)
    except PackageNotFoundError:
        return next(map(version, packages_distributions().get(name, ())), "")
