"""Second moments: the published points, the comparison with them by hand, and claims that can fail."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.made import made_pair
from pzos.experiments.moments import Agreement, agreement, moment_claims, own_moments, published_moments

PUBLISHED = published_moments()


def compared(factor: float, instances: int = 7) -> dict[str, Agreement]:
    ours = PUBLISHED | {name: PUBLISHED[name] * factor for name in PUBLISHED if name.endswith("_mean")}
    return {name: agreement(ours, PUBLISHED, name.lower(), instances) for name in ("PZOS", "ZOS")}


def test_all_points_of_the_papers_figure_are_there() -> None:
    np.testing.assert_array_equal(PUBLISHED["n"], [2, *range(5, 301, 5)])
    assert all(values.shape == (61,) and (values > 0).all() for values in PUBLISHED.values())
    first = [PUBLISHED[name][0] for name in ("pzos_mean", "pzos_2sd", "zos_mean", "zos_2sd")]
    assert first == [0.037149373302615, 0.0355545303998001, 0.0720382310531737, 0.0717059749795495]
    assert (PUBLISHED["pzos_mean"][-1], PUBLISHED["zos_mean"][-1]) == (
        795.603027530778,
        pytest.approx(3734.08068616977),
    )


def test_two_points_compared_by_hand() -> None:
    ours = {"n": np.array([5.0, 10.0]), "zos_mean": np.array([2.0, 3.0]), "zos_2sd": np.array([1.2, 0.6])}
    theirs = {"n": np.array([10.0, 20.0]), "zos_mean": np.array([2.0, 9.0]), "zos_2sd": np.array([0.8, 1.0])}
    found = agreement(ours, theirs, "zos", instances=4)  # only n = 10 is on both sides
    assert found.log_ratios == pytest.approx([np.log(1.5)])
    assert found.errors == pytest.approx([np.sqrt((0.3 / 3.0) ** 2 / 4 + (0.4 / 2.0) ** 2 / 7)])
    both = Agreement(np.array([0.1, -0.2]), np.array([0.1, 0.2]))
    assert both.mean == pytest.approx((0.1 * 100 - 0.2 * 25) / 125)
    assert both.error == pytest.approx(125**-0.5)
    assert both.chi_square == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, "holds"), (1.01, "holds"), (1.05, "does not hold"), (0.9, "does not hold")]
)
def test_a_bias_of_all_means_is_found_where_no_single_point_shows_it(factor: float, verdict: str) -> None:
    *_, agrees, _ = moment_claims(PUBLISHED, compared(factor))
    assert agrees.verdict == verdict
    assert f"ZOS {factor:.3f} +- " in agrees.found


def test_scatter_beyond_the_sampling_error_is_found_without_a_bias() -> None:
    size = np.full(61, 0.1)
    noisy = Agreement(0.2 * (-1.0) ** np.arange(61), size)  # every point two errors off, the mean is none
    *_, agrees, _ = moment_claims(PUBLISHED, {"PZOS": Agreement(0.0 * size, size), "ZOS": noisy})
    assert agrees.verdict == "does not hold"
    assert agrees.number == pytest.approx((4.0 * 61 - 122) / np.sqrt(244))


def test_the_published_numbers_bear_out_the_papers_own_claims() -> None:
    below, grows, _, slope = moment_claims(PUBLISHED, compared(1.0))
    assert (below.found, below.verdict) == ("61 of 61", "holds")
    assert (grows.verdict, round(grows.number, 3)) == ("holds", 0.999)
    assert (slope.source, round(slope.number, 2)) == ("finding", 2.48)


def test_moments_the_other_way_round_refute_order_and_growth() -> None:
    swapped = PUBLISHED | {"pzos_mean": PUBLISHED["zos_mean"], "zos_mean": PUBLISHED["pzos_mean"]}
    below, grows, *_ = moment_claims(swapped, compared(1.0))
    assert (below.verdict, grows.verdict) == ("does not hold", "does not hold")


def test_few_dimensions_are_too_small_to_judge() -> None:
    few = {name: values[:8] for name, values in PUBLISHED.items()}
    both = {name: agreement(few, PUBLISHED, name.lower(), 3) for name in ("PZOS", "ZOS")}
    assert {claim.verdict for claim in moment_claims(few, both)} == {"too small to judge"}


def test_moments_are_means_over_steps_then_over_instances() -> None:
    values = np.linspace(1.0, 0.0, 44).reshape(4, 11)
    pair = made_pair(values, values, dimensions=np.array([5.0, 5.0, 10.0, 10.0]))
    pair.pzos.norms[:] = np.array([1.0, 3.0, 4.0, 4.0])[:, None]
    found = own_moments(pair)
    np.testing.assert_array_equal(found["n"], [5.0, 10.0])
    np.testing.assert_allclose(found["pzos_mean"], [2.0, 4.0])
    np.testing.assert_allclose(found["pzos_2sd"], [2.0 * np.sqrt(2.0), 0.0], atol=1e-15)
    np.testing.assert_allclose(found["zos_mean"], 1.0)
