"""Swaps: exchanges of many pairs bundled where they differ by the same stretch of road, and the step they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pzos.networks.equilibrium.newton import (
    Swaps,
    best_swaps,
    bundle,
    carry_out,
    list_exchanges,
    merge_stretches,
    path_codes,
)
from pzos.networks.equilibrium.paths import Paths, new_marks


def path_sets(pairs: list[list[tuple[list[int], float]]], toll: float = 0.0) -> Paths:
    """Return path sets from (links, flow) per path and pair; link 1 has a fixed cost."""
    flat = [path for pair in pairs for path in pair]
    ends = np.cumsum([0] + [len(links) for links, _ in flat])
    return Paths(
        np.cumsum([0] + [len(pair) for pair in pairs]),
        ends[:-1].copy(),
        ends[1:].copy(),
        np.array([link for links, _ in flat for link in links], dtype=np.uint16),
        np.array([flow for _, flow in flat]),
        np.array([toll * links.count(1) for links, _ in flat]),
        ends[-1:].copy(),
    )


def bundled(paths: Paths, kind: list[int], links: int) -> tuple[Any, Swaps]:
    pairs, state = np.arange(len(kind)), np.zeros((links, 3))
    prices, codes = np.empty(paths.flow.size), np.empty(paths.flow.size, np.int64)
    path_codes(pairs, paths, state, prices, codes)
    marks = new_marks(links)
    exchanges, key, differ = list_exchanges(pairs, np.array(kind, np.int32), paths, prices, codes, marks)
    return exchanges, bundle(exchanges, key, differ, paths, marks)


# Three pairs choose between link 1 and links 2, 3, behind or before links of their own.
DIAMOND = [[([0, 1], 3.0), ([0, 2, 3], 1.0)], [([1, 4], 1.0), ([2, 3, 4], 5.0)], [([1], 2.0), ([2, 3], 0.5)]]


def test_pairs_of_a_class_that_differ_alike_share_a_swap() -> None:
    exchanges, swaps = bundled(path_sets(DIAMOND, 0.25), [0, 0, 1], 5)
    assert exchanges.swap.tolist() == [0, 0, 1]
    assert exchanges.sign[0] == -exchanges.sign[1]  # the fullest path is the other one
    for s, (on_one, on_other) in enumerate([(4.0, 6.0), (2.0, 0.5)]):
        sides = [swaps.own[swaps.start[s] : swaps.middle[s]], swaps.own[swaps.middle[s] : swaps.start[s + 1]]]
        to_one = sides[0].tolist() == [1]
        assert [sorted(side.tolist()) for side in sides] == ([[1], [2, 3]] if to_one else [[2, 3], [1]])
        assert swaps.upper[s] == (on_other if to_one else on_one)
        assert swaps.lower[s] == -(on_one if to_one else on_other)
        assert swaps.fixed[s] == (0.25 if to_one else -0.25)


@pytest.mark.parametrize("part", [-1.0, -0.3, 0.4, 1.0])
def test_swaps_keep_demand_and_bounds_and_do_what_they_say_to_the_links(part: float) -> None:
    three = [([0, 1], 1.0), ([0, 2, 3], 2.0), ([4], 1.0)]
    paths = path_sets([*DIAMOND, three])
    exchanges, swaps = bundled(paths, [0, 0, 1, 0], 5)
    amount = np.where(part > 0, swaps.upper, -swaps.lower) * part

    def loads() -> np.ndarray:
        return np.bincount(paths.pool, np.repeat(paths.flow, paths.stop - paths.start), 5)

    before, demand = loads(), np.add.reduceat(paths.flow, paths.first[:-1])
    expected = np.zeros(5)
    for s, value in enumerate(0.5 * amount):
        np.add.at(expected, swaps.own[swaps.start[s] : swaps.middle[s]], value)
        np.add.at(expected, swaps.own[swaps.middle[s] : swaps.start[s + 1]], -value)
    carry_out(amount, 0.5, exchanges, swaps, paths.flow)
    assert paths.flow.min() >= 0.0
    np.testing.assert_allclose(loads() - before, expected, atol=1e-12)
    np.testing.assert_allclose(np.add.reduceat(paths.flow, paths.first[:-1]), demand, rtol=1e-14)


@pytest.mark.parametrize("seed", range(8))
def test_the_model_is_minimised_between_the_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    links, count = 12, 30  # more swaps than links: most directions have no curvature
    incidence, own, start, middle = np.zeros((links, count)), [], [0], []
    for s in range(count):
        chosen = rng.permutation(links)[:5]
        incidence[chosen[:2], s], incidence[chosen[2:], s] = 1.0, -1.0
        own.extend(chosen)
        middle.append(start[-1] + 2)
        start.append(start[-1] + 5)
    slope, gradient = rng.uniform(0.1, 3.0, links), rng.normal(size=count)
    # Gradients that the links cannot explain, as tolls that classes value differently, and many that they can.
    gradient[10:] = incidence[:, 10:].T @ rng.normal(size=links)
    lower, upper = -rng.exponential(size=count), rng.exponential(size=count)
    swaps = Swaps(np.array(start), np.array(middle), np.array(own, np.uint32), np.zeros(count), lower, upper)
    diagonal = slope @ incidence**2
    found = best_swaps(swaps, gradient, diagonal, slope, 1e-6, 200, 400)
    assert np.all((lower <= found) & (found <= upper))
    # By convexity no point of the box is lower by more than the gradient could gain in it.
    rise = gradient + incidence.T @ (slope * (incidence @ found))
    value = gradient @ found + 0.5 * slope @ (incidence @ found) ** 2
    gain = np.where(rise > 0, rise * (found - lower), rise * (found - upper)).sum()
    assert value < 0.0
    assert gain <= 1e-5 * abs(value)  # linear in the error, while the solver stops at decreases of 1e-12


def test_a_path_is_exchanged_with_the_most_similar_one_that_has_more_flow() -> None:
    both = [([0, 2, 4], 5.0), ([1, 2, 4], 3.0), ([0, 2, 3], 2.0), ([1, 2, 3], 1.0)]  # two choices one after the other
    exchanges, swaps = bundled(path_sets([both]), [0], 5)
    assert list(zip(exchanges.path.tolist(), exchanges.other.tolist(), strict=True)) == [(1, 0), (2, 0), (3, 1)]
    assert swaps.fixed.size == 2  # 0 or 1, and 3 or 4: the third exchange is a bundle with the second
    assert exchanges.most.tolist() == [2.5, 2.5, 1.5]  # paths share what they have between their exchanges
    assert exchanges.back.tolist() == [1.5, 2.0, 1.0]


def test_links_that_come_together_are_one_stretch_of_the_model() -> None:
    _, swaps = bundled(path_sets([*DIAMOND, [([5, 6, 2], 2.0), ([7], 1.0)]]), [0, 0, 1, 0], 8)
    slope = np.arange(1.0, 9.0)
    stretches, rate = merge_stretches(swaps, slope)
    assert stretches.own.size < swaps.own[: swaps.start[-1]].size

    def hessian(each: Swaps, slopes: np.ndarray) -> np.ndarray:
        incidence = np.zeros((slopes.size, each.fixed.size))
        for s in range(each.fixed.size):
            incidence[each.own[each.start[s] : each.middle[s]], s] = 1.0
            incidence[each.own[each.middle[s] : each.start[s + 1]], s] = -1.0
        return incidence.T @ (slopes[:, None] * incidence)

    np.testing.assert_allclose(hessian(stretches, rate), hessian(swaps, slope))
