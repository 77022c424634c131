"""The package stays light: names and compilers are loaded on first use."""

import subprocess
import sys

import pytest

import pzos.games


def test_importing_the_games_loads_nothing_heavy() -> None:
    code = "import sys, pzos.games; print([m for m in ('numba', 'scipy', 'jax') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["SecurityGame", "CournotGame", "VariationalInequality", "Polyhedron", "Product"])
def test_public_names_are_loaded_on_first_use(name: str) -> None:
    assert getattr(pzos.games, name).__name__ == name
    assert name in dir(pzos.games)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="Checkers"):
        _ = pzos.games.Checkers


def test_the_kernel_has_one_signature_whatever_the_layout_of_the_query() -> None:
    import numpy as np

    from pzos.games._security_kernel import solve_rows

    game = pzos.games.SecurityGame.random(0, targets=3)
    game.response(np.ones(3))
    before = len(solve_rows.signatures)
    game.response(np.asfortranarray(np.ones((4, 3))))
    game.response(np.ones((8, 6))[::2, ::2])
    game.response([1, 2, 3])
    assert len(solve_rows.signatures) == before == 1
