"""What a benchmark was run with, for the first line it prints."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import pzos


def versions(packages: Sequence[str]) -> str:
    """Return the versions of pzos, Python and these packages, and the machine."""
    found = []
    for name in packages:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return f"pzos {pzos.__version__}, Python {platform.python_version()}, {', '.join(found)}, {platform.machine()}"
