"""Methods by name: every one that needs no settings, in any case, and the nearest name where one is misspelt."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.methods.named import METHODS, as_method


def test_every_public_method_that_needs_no_settings_has_its_name() -> None:
    kinds = {name: getattr(pzos, name) for name in dir(pzos) if inspect.isclass(getattr(pzos, name))}
    solvers = {name: kind for name, kind in kinds.items() if all(hasattr(kind, m) for m in ("init", "ask", "tell"))}
    plain = {
        name
        for name, kind in solvers.items()
        if all(one.default is not one.empty for one in inspect.signature(kind).parameters.values())
    }
    assert plain == set(METHODS)
    assert all(type(as_method("here", name)) is solvers[name] for name in plain)


@pytest.mark.parametrize("given", [None, "default", "Default"])
def test_the_default_is_none_of_them(given: Any) -> None:
    assert as_method("here", given) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("pzso", "method = 'pzso': expected the name of a method; did you mean 'PZOS'?"),
        ("secant", "did you mean 'SecantPZOS'?"),
        ("defualt", "did you mean 'default'?"),
        ("!!", "one of default, PZOS, ZOS"),
        (3, "method = 3: expected a solver"),
        (pzos.PZOS, "expected a solver"),
    ],
)
def test_what_is_no_method(given: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        as_method("here", given)
    assert message in str(caught.value)


def test_an_object_is_taken_as_it_is() -> None:
    solver = pzos.PZOS(step=0.01)
    assert as_method("here", solver) is solver
