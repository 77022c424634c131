"""Bad input: one clear error that names argument, value, expectation and remedy; all faults of a call at once."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pzos
from instances import LEADER, START, response
from pzos.base.errors import InvalidInput

#: What is called, and what its error must say: "argument = value: expected ...; remedy".
TABLE: list[tuple[str, Any, str]] = [
    # the start
    ("x0 nan", lambda: problem(x0=[0.0, np.nan]), r"x0\[1\] = nan: expected finite numbers; start from a finite point"),
    ("x0 inf", lambda: problem(x0=[np.inf]), r"x0\[0\] = inf: expected finite numbers"),
    ("x0 matrix", lambda: problem(x0=np.ones((2, 2))), r"x0 = array.*: expected a vector of numbers; flatten it"),
    ("x0 empty", lambda: problem(x0=[]), r"x0 = \[\]: expected a vector of numbers"),
    ("x0 text", lambda: problem(x0=["1", "2"]), r"x0 = \['1', '2'\]: expected a vector of numbers; try np\.zeros\(5\)"),
    ("x0 none", lambda: problem(x0=None), r"x0 = None: expected a vector of numbers"),
    ("x0 complex", lambda: problem(x0=np.array([1j])), r"x0 = array\(\[0\.\+1\.j\]\): expected a vector of numbers"),
    ("x0 ragged", lambda: problem(x0=[[1], [2, 3]]), r"x0 = .*: expected a vector of numbers"),
    # leader, follower, sense, structure
    (
        "leader",
        lambda: problem(leader=abs),
        r"leader = .*: expected a Leader; wrap your cost with pzos\.leader_from_jax",
    ),
    ("follower", lambda: problem(follower=3), r"follower = 3: expected a function x -> y; pass the function itself"),
    ("sense", lambda: problem(sense="down"), r"sense = 'down': expected 'min' or 'max'; say what to do with F"),
    ("sense array", lambda: problem(sense=np.ones(2)), r"sense = array.*: expected 'min' or 'max'"),
    ("structure", lambda: problem(structure=5), r"structure = 5: expected a sequence; put it into a list"),
    # the set
    ("domain", lambda: problem(domain="box"), r"domain = 'box': expected a set with project.*use e\.g\. pzos\.Box"),
    ("domain class", lambda: problem(domain=pzos.Nonnegative), r"domain = <class .*: expected a set.*Nonnegative\(\)"),
    (
        "x0 outside",
        lambda: problem(x0=[-1.0], domain=pzos.Nonnegative()),
        r"x0 = .*point of the domain Nonnegative.*project",
    ),
    (
        "x0 off the simplex",
        lambda: problem(x0=[1.0, 1.0], domain=pzos.Simplex()),
        r"x0 = .*domain Simplex.*start inside",
    ),
    ("box length", lambda: problem(x0=[1.0], domain=pzos.Box([0, 0], 2)), r"Box\.lower has 2 entries: expected 1"),
    ("ball length", lambda: problem(x0=[1.0], domain=pzos.Ball([0, 0], 2)), r"Ball\.center has 2 entries: expected 1"),
    (
        "box swapped",
        lambda: pzos.Box(1, 0),
        r"Box: upper = .*: expected upper >= lower in every entry; swap the bounds",
    ),
    ("box nan", lambda: pzos.Box(np.nan, 1), r"Box: lower = .*nan.*: expected numbers; use -inf for lower"),
    ("box empty", lambda: pzos.Box(np.inf, np.inf), r"Box: lower = .*inf.*: expected numbers; use -inf for lower"),
    ("box text", lambda: pzos.Box("low", 1), r"Box: lower = 'low': expected a number or a vector"),
    (
        "box lengths",
        lambda: pzos.Box([0, 0], [1, 1, 1]),
        r"Box: upper = .*: expected 2 entries, as lower has; give both",
    ),
    (
        "box matrix",
        lambda: pzos.Box(np.zeros((2, 2)), 1),
        r"Box: lower = .*: expected a number or a vector; flatten it",
    ),
    ("ball radius", lambda: pzos.Ball(0, -1), r"Ball: radius = -1: expected a positive number; try radius=1\.0"),
    (
        "ball center",
        lambda: pzos.Ball([0, np.inf], 1),
        r"Ball: center = .*inf.*: expected finite numbers; try center=0\.0",
    ),
    ("simplex", lambda: pzos.Simplex(0), r"Simplex: total = 0: expected a positive number; try total=1\.0"),
    ("budget", lambda: pzos.Budget("all"), r"Budget: total = 'all': expected a positive number"),
    # the solver
    ("step", lambda: pzos.PZOS(step=-0.1), r"PZOS: step = -0\.1: expected a positive finite number; try 0\.05"),
    ("step zero", lambda: pzos.ZOS(step=0), r"ZOS: step = 0: expected a positive finite number"),
    ("step nan", lambda: pzos.PZOS(step=np.nan), r"PZOS: step = nan: expected a positive finite number"),
    ("step text", lambda: pzos.PZOS(step="0.1"), r"PZOS: step = '0\.1': expected a positive finite number"),
    ("step vector", lambda: pzos.PZOS(step=np.ones(1)), r"PZOS: step = array.*: expected a positive finite number"),
    (
        "step class",
        lambda: pzos.PZOS(step=pzos.Diminishing),
        r"step = <class.*expected a number or a schedule; make one",
    ),
    ("radius", lambda: pzos.PZOS(radius=-1), r"PZOS: radius = -1: expected a positive finite number"),
    ("radius inf", lambda: pzos.PZOS(radius=np.inf), r"PZOS: radius = inf: expected a positive finite number"),
    ("batch", lambda: pzos.PZOS(batch=0), r"PZOS: batch = 0: expected a whole number, 1 or more; try batch=1"),
    ("batch half", lambda: pzos.ZOS(batch=1.5), r"ZOS: batch = 1\.5: expected a whole number, 1 or more"),
    ("batch bool", lambda: pzos.ZOS(batch=True), r"ZOS: batch = True: expected a whole number, 1 or more"),
    ("diminishing", lambda: pzos.Diminishing(-1), r"Diminishing: scale = -1: expected a positive finite number"),
    ("constant", lambda: pzos.Constant(0), r"Constant: value = 0: expected a positive finite number"),
    (
        "schedule",
        lambda: solve(pzos.PZOS(radius=lambda t: 1.0 - t)),
        r"schedule .*: value 0\.0 at t = 1: expected a positive",
    ),
    (
        "schedule none",
        lambda: solve(pzos.PZOS(step=lambda t: None)),
        r"schedule .*: value None at t = 0: expected a positive",
    ),
    # the run
    ("problem", lambda: pzos.solve(LEADER, pzos.PZOS()), r"solve: problem = .*: expected a pzos\.Problem; build one"),
    ("steps", lambda: solve(steps=0), r"steps = 0: expected a whole number, 1 or more; try steps=300, or None"),
    ("queries", lambda: solve(queries=True), r"queries = True: expected a whole number, 1 or more"),
    ("seconds", lambda: solve(seconds=-1), r"seconds = -1: expected a positive number; try seconds=60, or None"),
    ("seconds nan", lambda: solve(seconds=np.nan), r"seconds = nan: expected a positive number"),
    ("target", lambda: solve(target=np.inf), r"target = inf: expected a finite number; give the value of F to stop at"),
    ("seed", lambda: solve(seed=-1), r"seed = -1: expected a whole number from 0 to 2\*\*64 - 1; try seed=0"),
    ("minimize", lambda: pzos.minimize(LEADER, response, [np.nan], pzos.PZOS()), r"Problem: x0\[0\] = nan"),
]


def problem(**changes: Any) -> pzos.Problem:
    return pzos.Problem(**{"leader": LEADER, "follower": response, "x0": START, **changes})


def solve(solver: Any = pzos.PZOS(), **settings: Any) -> pzos.Result:  # noqa: B008
    return pzos.solve(problem(), solver, **settings)


@pytest.mark.parametrize(("call", "message"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_one_clear_error(call: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.compile(message, re.DOTALL)) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, pzos.PzosError)
    assert "; " in str(caught.value), "a remedy follows the expectation"
    assert len(str(caught.value)) < 300


def test_all_faults_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        pzos.Problem(leader=1, follower=2, x0=[np.nan], domain=3, sense="up", structure=4)  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.startswith("Problem: 6 faults\n")
    for argument in ("leader = 1", "follower = 2", "x0[0] = nan", "domain = 3", "sense = 'up'", "structure = 4"):
        assert f"\n  - {argument}: expected " in message
    with pytest.raises(InvalidInput, match="PZOS: 3 faults"):
        pzos.PZOS(step=-1, radius=0, batch=0)
    with pytest.raises(InvalidInput, match="Ball: 2 faults"):
        pzos.Ball("a", "b")  # type: ignore[arg-type]


@pytest.mark.parametrize("x0", [[0, 1], (0.0, 1.0), np.array([0, 1]), np.array([0, 1], np.float32), range(2)])
def test_starts_are_converted_to_float64_copies(x0: Any) -> None:
    task = problem(x0=x0)
    assert task.x0.dtype == np.float64
    assert task.x0.tolist() == [0.0, 1.0]
    assert not task.x0.flags.writeable
    assert task.known().x0 is task.x0
    assert task.known().dimension == 2


def test_the_callers_start_is_copied_and_stays_writable() -> None:
    mine = np.zeros(3)
    task = problem(x0=mine)
    mine[0] = 5.0
    assert task.x0.tolist() == [0.0, 0.0, 0.0]


def test_a_number_is_a_decision_of_one_entry() -> None:
    assert problem(x0=2).x0.shape == (1,)


def test_a_problem_is_frozen_and_reads_well() -> None:
    task = problem(name="tolls", domain=pzos.Nonnegative(), sense="max")
    assert repr(task) == "Problem 'tolls': max over 5 decisions in Nonnegative"
    with pytest.raises(AttributeError):
        task.name = "other"  # type: ignore[misc]
    assert (task.known().sign, problem().known().sign) == (-1.0, 1.0)


def test_a_set_of_ones_own() -> None:
    class Even:
        def project(self, x: Any) -> Any:
            return np.round(x / 2) * 2

        def contains(self, x: Any, tolerance: float = 1e-12) -> bool:
            return bool(np.all(x % 2 == 0))

        def faults(self, dimension: int) -> list[str]:
            return [] if dimension < 9 else ["domain: too many"]

    result = pzos.solve(problem(x0=np.zeros(5), domain=Even()), pzos.PZOS(step=5.0), steps=3)
    assert np.all(result.x % 2 == 0)
    with pytest.raises(InvalidInput, match="domain: too many"):
        problem(x0=np.zeros(9), domain=Even())


def test_a_start_outside_is_told_the_nearest_point():
    domain = pzos.Intersection([pzos.Box(0.0, 1.0), pzos.Polyhedron(A=[[1.0, 1.0]], b=[1.0])])
    leader = pzos.leader_from_functions(lambda x, y: 0.0, lambda x, y: 0 * x, lambda x, y: 0 * y)
    with pytest.raises(pzos.InvalidInput, match=r"x0 = .*from domain.project\(x0\) = array\(\[0.5, 0.5\]\)"):
        pzos.Problem(leader, abs, x0=[2.0, 2.0], domain=domain)
