"""``pzos bench``: methods and peers on the same problems. The test bed lives in a checkout, beside the package."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from pzos.base.errors import InvalidInput

_TESTBED = Path(__file__).resolve().parents[3] / "benchmarks" / "testbed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command, which are the test bed's own; without a checkout there are none."""
    if _TESTBED.is_dir():
        _testbed().add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the table and show it."""
    code: int = _testbed().run(args)
    return code


def _testbed() -> Any:
    """Return ``benchmarks/testbed/command.py`` of the checkout that this package was installed from."""
    if not _TESTBED.is_dir():
        raise InvalidInput(
            "the test bed is not part of the installed package: expected a checkout; "
            "clone the project, then 'pip install -e .' in it"
        )
    if str(_TESTBED.parent) not in sys.path:
        sys.path.append(str(_TESTBED.parent))
    return importlib.import_module("testbed.command")
