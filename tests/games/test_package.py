"""The package stays light, and compilation is announced exactly when it happens."""

import logging
import subprocess
import sys

import pytest

import pzos.games
from pzos.games._compile import announce_compilation


def test_importing_the_games_loads_nothing_heavy() -> None:
    code = "import sys, pzos.games; print([m for m in ('numba', 'scipy', 'jax') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["SecurityGame", "CournotGame", "VariationalInequality", "Polyhedron", "Product"])
def test_public_names_are_loaded_on_first_use(name: str) -> None:
    assert getattr(pzos.games, name).__name__ == name
    assert name in dir(pzos.games)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="Checkers"):
        _ = pzos.games.Checkers


def test_compilation_is_announced_once_and_only_when_it_happens(caplog: pytest.LogCaptureFixture) -> None:
    import numba

    @numba.njit
    def double(value: float) -> float:
        return 2.0 * value

    with caplog.at_level(logging.INFO, logger="pzos"):
        with announce_compilation("toy kernel"):
            assert double(2.0) == 4.0
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
        assert "compiling the toy kernel" in caplog.text
        caplog.clear()
        with announce_compilation("toy kernel"):
            assert double(3.0) == 6.0
        assert not caplog.records


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
