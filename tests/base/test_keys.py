"""Random numbers by address: pure, independent of order and thread, uniform on the sphere."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pzos.base.errors import InvalidInput
from pzos.base.keys import Keys, Role
from pzos.methods.estimators import sphere_directions

SEEDS = st.integers(0, 2**64 - 1)
ADDRESSES = st.tuples(st.integers(0, 2**40), st.integers(0, 2**20))


@given(SEEDS, st.lists(ADDRESSES, min_size=1, max_size=6), st.integers(1, 40), st.randoms(use_true_random=False))
def test_a_direction_is_a_function_of_its_address_alone(seed, addresses, dimension, shuffle) -> None:
    first = {address: Keys(seed).direction(*address, dimension) for address in addresses}
    shuffle.shuffle(addresses)
    for address in addresses:
        Keys(seed ^ 1).uniform(Role.OUTPUT, 3)  # draws of another run in between
        np.testing.assert_array_equal(Keys(seed).direction(*address, dimension), first[address])


@given(SEEDS, ADDRESSES)
def test_reused_and_fresh_generators_draw_the_same_numbers(seed, address) -> None:
    normal = Keys(seed).generator(Role.DIRECTION, *address).standard_normal(7)
    np.testing.assert_allclose(Keys(seed).direction(*address, 7), normal / np.linalg.norm(normal), rtol=1e-15)
    assert Keys(seed).uniform(Role.OUTPUT, *address) == Keys(seed).generator(Role.OUTPUT, *address).random()


def test_addresses_roles_and_seeds_are_told_apart() -> None:
    draws = [
        Keys(seed).direction(step, index, 3, role).tobytes()
        for seed in (0, 1, 2**63, 2**64 - 1)
        for step in (0, 1)
        for index in (0, 1)
        for role in (Role.DIRECTION, Role.PROBE)
    ]
    assert len(set(draws)) == len(draws)


def test_threads_do_not_disturb_each_other() -> None:
    addresses = [(step, index) for step in range(40) for index in range(5)]
    alone = [Keys(9).direction(*address, 50) for address in addresses]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda address: Keys(9).direction(*address, 50), addresses))
    np.testing.assert_array_equal(alone, together)


def test_a_larger_batch_extends_the_smaller() -> None:
    small, large = sphere_directions(Keys(3), 11, 2, 6), sphere_directions(Keys(3), 11, 5, 6)
    np.testing.assert_array_equal(small, large[:2])
    np.testing.assert_array_equal(sphere_directions(Keys(3), 11, 1, 6), large[:1])


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_directions_are_uniform_on_the_sphere(d: int) -> None:
    """Moments: E v = 0, E v v' = I/d, E v_i^4 = 3/(d(d+2)), within 4.5 standard errors; and no axis is preferred."""
    n = 20_000
    v = np.array([Keys(5).direction(step, 0, d) for step in range(n)])
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), 1.0, rtol=1e-14)
    error = 4.5 / np.sqrt(n)
    assert np.all(np.abs(v.mean(axis=0)) <= error / np.sqrt(d))
    fourth = 3.0 / (d * (d + 2))
    spread = np.sqrt(max(fourth - 1 / d**2, 1 / (d * (d + 2))))
    assert np.all(np.abs(v.T @ v / n - np.eye(d) / d) <= error * spread + 1e-14)
    eighth = 105.0 / (d * (d + 2) * (d + 4) * (d + 6))
    assert np.all(np.abs((v**4).mean(axis=0) - fourth) <= error * np.sqrt(eighth - fourth**2) + 1e-14)
    octants = np.unique(v[:, : min(d, 3)] > 0, axis=0, return_counts=True)[1]
    expected = n / 2 ** min(d, 3)
    assert len(octants) == 2 ** min(d, 3)
    assert ((octants - expected) ** 2 / expected).sum() < 30.0  # chi-square, at most 7 degrees of freedom


def test_a_basis_is_orthonormal_and_its_rows_are_uniform() -> None:
    basis = Keys(1).basis(4, 6)
    np.testing.assert_allclose(basis @ basis.T, np.eye(6), atol=1e-14)
    np.testing.assert_array_equal(basis, Keys(1).basis(4, 6))
    rows = np.array([Keys(1).basis(step, 3)[0] for step in range(4000)])
    assert np.all(np.abs(rows.mean(axis=0)) <= 4.5 / np.sqrt(3 * 4000))
    np.testing.assert_allclose(rows.T @ rows / 4000, np.eye(3) / 3, atol=0.03)


def test_roles_keep_their_numbers() -> None:
    """They are part of the file format: a renumbered role would change every stored run."""
    stored = {
        "DIRECTION": 1,
        "OUTPUT": 2,
        "NOISE": 3,
        "INSTANCE": 4,
        "BASIS": 5,
        "CERTIFICATE": 6,
        "REGION": 7,
        "PROBE": 8,
    }
    assert {name: int(Role[name]) for name in stored} == stored
    assert len({int(role) for role in Role}) == len(list(Role))
    assert Keys(0).direction(0, 0, 3).tolist() == pytest.approx(STORED_DIRECTION, rel=1e-15)


STORED_DIRECTION = [-0.8270987187980854, -0.01603530748706136, 0.5618278902620989]


@pytest.mark.parametrize("seed", [-1, 2**64, 0.0, "0", None, True, np.float64(1)])
def test_a_seed_must_be_a_whole_number(seed: object) -> None:
    with pytest.raises(InvalidInput, match=r"seed = .*expected a whole number from 0 to 2\*\*64 - 1; try seed=0"):
        Keys(seed)  # type: ignore[arg-type]


def test_numpy_integers_are_seeds_too() -> None:
    assert Keys(np.int64(5)) == Keys(5)


def test_attempts_have_numbers_of_their_own_and_the_first_those_without_a_count() -> None:
    numbers = [Keys(3).generator(Role.NOISE, 5, 2, attempt).random(4).tolist() for attempt in range(4)]
    assert numbers[0] == Keys(3).generator(Role.NOISE, 5, 2).random(4).tolist()
    assert len({entry for row in numbers for entry in row}) == 16
