from __future__ import annotations

import numpy as np
import pytest

from pzos.methods.response_model.prior import LinearPrior, fit_conserving, fit_own

RNG = np.random.default_rng(5)
N = 12
OWN = -0.5 - RNG.random(N)
ONES = np.ones((1, N))
TWO = np.vstack([np.r_[np.ones(6), np.zeros(6)], np.r_[np.zeros(6), np.ones(6)]])


def jacobian(laws):
    shares = laws.T * (0.5 + RNG.random((N, len(laws))))
    shares /= np.einsum("mi,im->m", laws, shares)
    return LinearPrior(OWN, shares, laws)


def rows(count):
    s = RNG.standard_normal((count, N))
    return s / np.linalg.norm(s, axis=1)[:, None]


@pytest.mark.parametrize("laws", [None, ONES, TWO])
def test_pull_is_the_transpose_of_apply(laws):
    prior = LinearPrior(OWN) if laws is None else jacobian(laws)
    matrix = prior.apply(np.eye(N)).T
    g = RNG.standard_normal(N)
    np.testing.assert_allclose(prior.pull(g), matrix.T @ g)
    np.testing.assert_allclose(prior.apply(g), matrix @ g)
    if laws is not None:
        np.testing.assert_allclose(laws @ matrix, 0.0, atol=1e-12)


def test_no_prior_says_nothing():
    assert not LinearPrior().apply(np.ones(N)).any()
    assert not LinearPrior().pull(np.ones(N)).any()


def test_own_effects_are_recovered():
    s = rows(60)
    np.testing.assert_allclose(fit_own(s, s * OWN).own, OWN, rtol=1e-3)


def test_one_row_already_tells_the_common_effect():
    s = rows(1)
    assert fit_own(s, s * -0.7).own == pytest.approx(np.full(N, -0.7), rel=0.05)


@pytest.mark.parametrize("laws", [ONES, TWO])
def test_own_effects_under_laws_are_recovered(laws):
    true = jacobian(laws)
    s = rows(60)
    found = fit_conserving(s, true.apply(s), laws)
    fresh = rows(20)
    error = np.linalg.norm(found.apply(fresh) - true.apply(fresh)) / np.linalg.norm(true.apply(fresh))
    assert error < 0.02
    np.testing.assert_allclose(laws @ found.shares, np.eye(len(laws)), atol=1e-9)
    warm = fit_conserving(s, true.apply(s), laws, found)
    assert np.linalg.norm(warm.apply(fresh) - true.apply(fresh)) <= 1.5 * np.linalg.norm(
        found.apply(fresh) - true.apply(fresh)
    )


def test_a_conserving_prior_beats_own_effects_where_a_law_holds():
    true, s, fresh = jacobian(ONES), rows(5), rows(20)
    y = true.apply(fresh)
    with_law = np.linalg.norm(fit_conserving(s, true.apply(s), ONES).apply(fresh) - y)
    without = np.linalg.norm(fit_own(s, true.apply(s)).apply(fresh) - y)
    assert with_law < 0.7 * without


def test_totals_that_are_known_are_kept():
    true = jacobian(ONES)
    s = rows(4)
    np.testing.assert_allclose(true.apply(s, true.apply(s)), true.apply(s), atol=1e-12)
    assert not LinearPrior().apply(s, s).any()
