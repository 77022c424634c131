from itertools import pairwise

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.base.types import Purpose
from pzos.stationarity import StopWhenStationary, certify

from .instances import linear_problem, random_instance


def solved(
    solver: StopWhenStationary | pzos.PZOS, problem: pzos.Problem, **limits
) -> tuple[pzos.Study, list[pzos.Query]]:
    study = pzos.Study(problem.known(), solver, monitor=False, **limits)
    asked = []
    while not study.done:
        for query in study.ask():
            asked.append(query)
            study.tell(query, problem.follower.respond(query.x, None).y)
    return study, asked


def test_it_stops_at_a_stationary_point_and_the_point_is_one() -> None:
    problem, _, _ = linear_problem(6, 2.0)
    study, _ = solved(
        StopWhenStationary(pzos.PZOS(step=0.02, radius=0.05), delta=0.1, epsilon=0.3), problem, steps=20000
    )
    assert study.stop is pzos.Stop.STATIONARY
    report = study.result().certificate
    assert report is not None
    assert report.x is study.state.x
    assert certify(problem, study.state.x, delta=0.1, seed=99).stationary(0.3)
    assert np.nanmin(study.trace["stationarity_bound"]) <= 0.3


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_certificates_cost_at_most_their_share_at_any_time(share: float) -> None:
    problem = random_instance(1).problem
    solver = StopWhenStationary(pzos.PZOS(step=1e-3, radius=0.05), delta=0.1, epsilon=1e-9, share=share, first=20)
    study, asked = solved(solver, problem, steps=2000)
    assert study.stop is pzos.Stop.STEPS
    steps = [query.step for query in asked if query.purpose is Purpose.CERTIFICATE]
    checks = sorted(set(steps))
    assert len(checks) >= 3
    certificates = 0
    for spent, query in enumerate(asked, start=1):
        certificates += query.step in checks
        if query.step not in checks or query is asked[-1]:
            assert certificates <= share * spent
    gaps = np.diff(checks)
    assert all(later > earlier for earlier, later in pairwise(gaps))


def test_confidence_is_spread_over_the_looks() -> None:
    problem = random_instance(2).problem
    solver = StopWhenStationary(pzos.PZOS(step=1e-3, radius=0.05), delta=0.1, epsilon=1e-9, first=20)
    study, _ = solved(solver, problem, steps=1500)
    state = study.state
    report = study.result().certificate
    k = state.checks  # type: ignore[attr-defined]
    assert report is not None
    assert report.confidence == pytest.approx(1 - 0.05 / (k * (k + 1)))
    assert sum(1 / (j * (j + 1)) for j in range(1, 10**4)) <= 1.0


def test_the_solver_inside_runs_as_if_alone() -> None:
    problem = random_instance(3).problem
    inner = pzos.PZOS(step=1e-2, radius=0.05)
    watched, _ = solved(StopWhenStationary(inner, delta=0.1, epsilon=1e-12, first=20), problem, steps=300)
    checks = watched.state.checks  # type: ignore[attr-defined]
    alone, _ = solved(inner, problem, steps=300 - checks)
    assert checks >= 1
    assert np.array_equal(alone.state.x, watched.state.x)


def test_a_memory_inside_is_used() -> None:
    class Remembering:
        """PZOS with a perfect memory, in the shape of the solvers that have one."""

        def __init__(self, product) -> None:
            self.inner, self.prediction, self.product = pzos.PZOS(step=0.01, radius=0.05), self, product

        def predict(self, learned, x, at):
            return learned(at.grad_y)

        def init(self, task):
            return _With(self.inner.init(task), self.product)

        def ask(self, task, state):
            return self.inner.ask(task, state.state)

        def tell(self, task, state, plan, answers):
            told, outcome = self.inner.tell(task, state.state, plan, answers)
            return _With(told, self.product), outcome

        def stop(self, task, state):
            return None

    problem, _, _ = linear_problem(6, 2.0)
    zero = problem.follower.respond(np.zeros(6), None).y
    A = np.column_stack([problem.follower.respond(e, None).y - zero for e in np.eye(6)])
    solver = StopWhenStationary(Remembering(lambda u: A.T @ u), delta=0.1, epsilon=1e-12, first=20)
    study, _ = solved(solver, problem, steps=200)
    report = study.result().certificate
    assert report is not None
    assert report.partial.upper - report.partial.estimate <= 1e-9 * report.partial.upper


class _With:
    def __init__(self, state, learned) -> None:
        self.state, self.learned, self.x, self.value = state, learned, state.x, state.value


def test_the_memory_of_memory_pzos_narrows_the_first_certificate() -> None:
    problem, _, unit = linear_problem(12, 2.0)
    excesses = []
    for inner in (pzos.MemoryPZOS(), pzos.PZOS(step=0.02, radius=0.05)):
        # 16 directions for 12 dimensions: too few for the pilot alone to remove the noise
        solver = StopWhenStationary(inner, delta=0.1, epsilon=1e-12, first=16, growth=1.0)
        study, _ = solved(solver, problem, queries=1000)
        report = study.result().certificate
        assert report is not None
        excesses.append((report.partial.upper - report.partial.estimate) / unit)
    assert excesses[0] < 0.1 * excesses[1]


def test_other_states_have_no_certificate_and_faults_are_named() -> None:
    assert pzos.Study(random_instance(3).problem.known(), pzos.PZOS(), steps=1).result().certificate is None
    with pytest.raises(InvalidInput, match=r"(?s)solver.*delta.*share"):
        StopWhenStationary(pzos.PZOS, delta=0.0, epsilon=0.1, share=2.0)  # type: ignore[arg-type]
