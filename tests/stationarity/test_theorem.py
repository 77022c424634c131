"""The theorem as an experiment, small: its schedule on a toy with known constants meets its epsilon."""

import numpy as np

import pzos
from pzos.stationarity import Constants, min_norm_point, sharp_moment_constant, theorem_schedule
from pzos.study.run import iterate


def test_the_partial_schedule_keeps_its_promise() -> None:
    # f = sqrt(1 + |x - p|^2) + a.y, y* = |x|/2: L_f = L_g = 1, L_y = 1/2; benchmarks/theorem.py is the long version
    target, weights, start = np.array([2.0, 0.3]), np.array([0.8, 0.6]), np.array([2.5, -0.2])

    def known_part(x: np.ndarray) -> np.ndarray:
        return (x - target) / np.sqrt(1.0 + (x - target) @ (x - target))

    leader = pzos.leader_from_functions(
        lambda x, y: float(np.sqrt(1.0 + (x - target) @ (x - target)) + weights @ y),
        lambda x, y: known_part(x),
        lambda x, y: weights.copy(),
    )
    problem = pzos.Problem(leader, lambda x: 0.5 * np.abs(x), start)
    gap = leader.value(start, 0.5 * np.abs(start)) - 1.0  # F >= 1
    constants = Constants(1.0, 1.0, 0.5, 2, gap, k2=sharp_moment_constant(2))
    plan = theorem_schedule(constants, delta=0.5, epsilon=0.7, notion="partial")
    assert 500 <= plan.steps <= 5000
    solver = pzos.PZOS(step=plan.step, radius=plan.radius)
    study = pzos.Study(problem.known(), solver, steps=plan.steps, monitor=False)
    norms = []
    for record in iterate(study, pzos.Oracle(problem.follower)):
        if record.step % 20 == 0:
            x = record.x
            met = [
                np.array([i, j])
                for i in (1.0, -1.0)
                for j in (1.0, -1.0)
                if np.linalg.norm(np.where(np.array([i, j]) * x >= 0, 0.0, x)) <= plan.delta
            ]
            norms.append(min_norm_point(np.array([known_part(x) + 0.5 * weights * s for s in met])).norm)
    assert np.mean(norms) <= plan.epsilon
