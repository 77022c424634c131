import numpy as np
import pytest
from hypothesis import given, strategies as st

from pzos.base.errors import InvalidInput, NotConverged
from pzos.stationarity import Interval, certify_hull, goldstein_interval, partial_goldstein_interval, threshold
from pzos.stationarity.piecewise import Piece, PiecewiseResponse, draw, full_not_partial, partial_not_full, smooth_range

DELTAS = np.linspace(0.01, 2.0, 200)  # contains 1/2, 1 and 3/2 exactly


def appendix(example: int) -> np.ndarray:
    """The intervals as the appendix prints them: full low, full high, partial low, partial high."""
    if example == 1:
        return np.column_stack([-2 * DELTAS - 3, 2 * DELTAS - 1, 0 * DELTAS - 3, 0 * DELTAS - 1])
    near = DELTAS < 1
    return np.column_stack(
        [
            np.where(near, 1, 3 - 2 * DELTAS),
            np.where(near, 3, 1 + 2 * DELTAS),
            np.where(near, 1, -1),
            np.full(DELTAS.size, 3.0),
        ]
    )


EXAMPLES = {1: full_not_partial(), 2: partial_not_full()}


@pytest.mark.parametrize("number", [1, 2])
def test_every_interval_of_the_appendix(number: int) -> None:
    assert np.abs(EXAMPLES[number].intervals(DELTAS) - appendix(number)).max() <= 1e-9


def test_every_threshold_of_the_appendix() -> None:
    first, second = EXAMPLES[1], EXAMPLES[2]
    assert threshold(first.leader, first.response, 0.0, "full") == pytest.approx(0.5, abs=1e-9)
    assert threshold(first.leader, first.response, 0.0, "partial") == np.inf
    # the smallest partial norm is 1 for every delta: stationary for epsilon = 1, for nothing below
    assert threshold(first.leader, first.response, 0.0, "partial", epsilon=1.0) <= 1e-9
    assert threshold(first.leader, first.response, 0.0, "partial", epsilon=1.0 - 1e-9) == np.inf
    assert threshold(second.leader, second.response, 0.0, "partial") == pytest.approx(1.0, abs=1e-9)
    assert threshold(second.leader, second.response, 0.0, "full") == pytest.approx(1.5, abs=1e-9)
    # (delta, eps) with 1 <= delta < 3/2: Goldstein stationary exactly for eps >= 3 - 2 delta
    assert threshold(second.leader, second.response, 0.0, "full", epsilon=0.5) == pytest.approx(1.25, abs=1e-9)


@pytest.mark.parametrize("number", [1, 2])
def test_smallest_norms_of_the_appendix(number: int) -> None:
    example = EXAMPLES[number]
    for delta in DELTAS:
        full = goldstein_interval(example.leader, example.response, 0.0, float(delta)).min_norm
        partial = partial_goldstein_interval(example.leader, example.response, 0.0, float(delta)).min_norm
        if number == 1:
            assert (full, partial) == pytest.approx((max(0.0, 1 - 2 * delta), 1.0), abs=1e-9)
        else:
            expected = 1.0 if delta < 1 else max(0.0, 3 - 2 * delta)
            assert (full, partial) == pytest.approx((expected, 1.0 if delta < 1 else 0.0), abs=1e-9)


@pytest.mark.parametrize("number", [1, 2])
def test_the_hull_sees_every_interval_from_queries_alone(number: int) -> None:
    problem, expected = EXAMPLES[number].problem(), appendix(number)
    for delta, row in zip(DELTAS, expected, strict=True):
        report = certify_hull(problem, delta=float(delta), points=5)
        found = (
            report.full_gradients.min(),
            report.full_gradients.max(),
            report.partial_gradients.min(),
            report.partial_gradients.max(),
        )
        assert np.abs(np.array(found) - row).max() <= 1e-3
        assert report.full.norm == pytest.approx(Interval(row[0], row[1]).min_norm, abs=1e-3)
        assert report.partial.norm == pytest.approx(Interval(row[2], row[3]).min_norm, abs=1e-3)


def test_follower_and_objective_of_the_examples() -> None:
    assert EXAMPLES[1].objective(0.5) == 0.75
    assert EXAMPLES[2].objective(1.5) == 1.25
    assert EXAMPLES[2].response(np.array([2.0])).tolist() == [2.0, 1.0]


@given(st.floats(-3, 3), st.floats(0.01, 3))
def test_ranges_find_extremes_inside(middle: float, half: float) -> None:
    low, high = middle - half, middle + half
    grid = np.linspace(low, high, 2001)
    found = smooth_range(lambda x: float(np.sin(2 * x) + 0.1 * x**2), low, high)
    values = np.sin(2 * grid) + 0.1 * grid**2
    assert found.low <= values.min() + 1e-12
    assert found.high >= values.max() - 1e-12
    assert found.low == pytest.approx(values.min(), abs=1e-4)
    assert found.high == pytest.approx(values.max(), abs=1e-4)


def test_a_kink_inside_a_piece_is_refused() -> None:
    with pytest.raises(NotConverged, match="add a break"):
        smooth_range(lambda x: abs(x - 0.1234), -1.0, 1.0)


def test_a_response_with_a_jump_is_refused() -> None:
    one = Piece(lambda x: np.zeros(1), lambda x: np.zeros(1))
    other = Piece(lambda x: np.ones(1), lambda x: np.zeros(1))
    with pytest.raises(InvalidInput, match="continuous"):
        PiecewiseResponse((0.0,), (one, other))
    with pytest.raises(InvalidInput, match=r"(?s)breaks.*pieces"):
        PiecewiseResponse((1.0, 0.0), (one,))


def test_the_examples_can_be_drawn(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    draw(EXAMPLES[1], DELTAS[::20], tmp_path / "example.png")
    assert (tmp_path / "example.png").stat().st_size > 1000
