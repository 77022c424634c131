"""What a study file says a study is: exact, readable, and the same wherever the code was started from."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import pzos
from pzos.base.fingerprint import describe, differences, listed, name_of

SCRIPT = """
import json
import sys

import numpy as np

import pzos
from pzos.base.fingerprint import describe

def follower(x):
    return np.abs(x)

class Thing:
    pass

if __name__ == "__main__":
    print(json.dumps([describe(follower), describe(Thing())]))
"""


def test_numbers_are_exact_and_survive_json():
    assert describe(0.1) == "0.1"
    assert describe(np.float64(1 / 3)) == repr(1 / 3)
    assert describe(float("inf")) == "inf"
    assert describe(np.int64(3)) == 3
    assert describe([True, None, "x"]) == [True, None, "x"]


def test_long_arrays_are_known_by_their_bits():
    long = np.linspace(0.0, 1.0, 50)
    other = long.copy()
    other[7] = np.nextafter(other[7], 2.0)
    assert describe(long) == describe(long.copy())
    assert describe(long) != describe(other)
    assert describe(np.array([1.0, -0.0])) == ["1.0", "-0.0"]


def test_differences_name_the_place_and_both_sides():
    one, two = describe(pzos.PZOS(step=0.05)), describe(pzos.PZOS(step=0.1))
    assert differences(one, two, "solver") == ["solver.step: the file has 0.05, you gave 0.1"]
    assert differences(one, describe(pzos.ZOS()), "solver")[0].startswith("solver: the file has pzos.")
    assert listed([str(at) for at in range(11)]).splitlines()[-1] == "  - and 3 more"


def test_a_function_of_no_module_is_known_by_its_name():
    """Code that was executed from a string, as some notebooks and templates do."""
    place = {}
    exec("def follower(x):\n    return abs(x)", {"__builtins__": {"abs": abs}}, place)
    assert place["follower"].__module__ is None
    assert describe(place["follower"]) == ":follower"
    assert name_of(place["follower"]) == ""  # others may be called that as well


@pytest.mark.parametrize("words", [["tolls.py"], ["-m", "tolls"]])
def test_a_script_is_known_by_its_file(words, tmp_path):
    """What ``python tolls.py`` began, ``pzos report tolls.study --problem tolls.py:problem`` must recognise."""
    (tmp_path / "tolls.py").write_text(SCRIPT)
    shown = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert shown.strip() == '["tolls:follower", {"type": "tolls.Thing"}]'
