"""The default: what is chosen, how it is explained, and the certificate it ends with."""

from __future__ import annotations

import numpy as np
import pytest

import pzos
from pzos.base.errors import InvalidInput
from pzos.games.security import SecurityGame
from pzos.methods.default import choose
from pzos.methods.solver import Certifiable, Foreseeing, Stop, foreseen
from pzos.methods.trust_region.solver import CompositeTrustRegion
from pzos.problem.follower import seeded
from pzos.stationarity.bounds import FEWEST_QUERIES
from pzos.stationarity.stopping import StopWhenStationary

GAME = SecurityGame.random(4, 8)


def test_the_choice_is_explained():
    problem = GAME.problem(structure=[pzos.own_effect(), pzos.conserved()])
    solver, why = choose(problem.known(), 40)
    assert isinstance(solver, CompositeTrustRegion)
    for words in (
        "trust region",
        "8 decisions",
        "at most 40 queries",
        "own effects",
        "conservation law",
        "certificate",
    ):
        assert words in why
    assert "nothing declared" in choose(GAME.problem().known())[1]


def test_memory_is_limited_in_very_many_dimensions():
    problem = pzos.Problem(GAME.leader(), np.abs, np.zeros(200_000))
    solver, _ = choose(problem.known())
    assert solver.points * 200_000 <= 16_000_000
    assert choose(GAME.problem().known())[0].points is None


def test_limits_do_not_change_the_solver():
    """So that a durable run may go on with a larger budget."""
    known = GAME.problem().known()
    assert choose(known, 10)[0] == choose(known, 1000)[0]


def test_a_certificate_asked_for_by_name_is_counted_apart():
    calls = []

    def counted(x):
        calls.append(x)
        return GAME.response(x)

    base = GAME.problem()
    problem = pzos.Problem(base.leader, counted, base.x0, base.domain)
    result = pzos.solve(problem, queries=30, progress=False, certificate=True)
    assert result.queries == 30
    assert result.trace["queries"][-1] == 30
    assert result.certificate.queries == FEWEST_QUERIES
    assert len(calls) == result.queries + result.monitoring
    np.testing.assert_array_equal(result.certificate.x, result.x)
    assert result.certificate.stationary(0.05)
    assert "certificate" in repr(result)
    assert "trust region" in result.explanation
    bare = pzos.solve(problem, queries=30, progress=False, certificate=False)
    assert bare.certificate is None
    assert bare.monitoring == 0
    np.testing.assert_array_equal(bare.x, result.x)


def test_a_larger_certificate_may_be_asked_for():
    result = pzos.solve(GAME.problem(), queries=20, progress=False, certificate=81)
    assert result.certificate.queries == 81


@pytest.mark.parametrize("certificate", [5, 32])
def test_too_small_a_certificate_is_refused(certificate):
    with pytest.raises(InvalidInput, match="certificate"):
        pzos.solve(GAME.problem(), queries=3, progress=False, certificate=certificate)


def test_a_named_solver_ends_without_a_certificate_unless_it_learned_a_model():
    assert pzos.solve(GAME.problem(), pzos.PZOS(), steps=3, progress=False).certificate is None
    with pytest.raises(InvalidInput, match="certify"):
        pzos.solve(GAME.problem(), pzos.PZOS(), steps=3, progress=False, certificate=True)
    named = pzos.solve(GAME.problem(), CompositeTrustRegion(), queries=10, progress=False, certificate=True)
    assert named.certificate is not None


def test_no_certificate_when_the_time_is_up():
    result = pzos.solve(GAME.problem(), seconds=1e-9, progress=False)
    assert result.stop is Stop.SECONDS
    assert result.certificate is None


def test_what_the_run_learned_takes_the_noise_out_of_the_estimator():
    """The same directions around x with the leader's own gradient as prediction, and with the model's."""
    problem = SecurityGame.random(4, 40).problem()
    study = pzos.Study(problem.known(), CompositeTrustRegion(), queries=40)
    result = pzos.drive(study, pzos.Oracle(problem.follower), progress=False)
    settings = {"delta": study.solver.certifying_radius(study.state), "queries": 61, "prediction": "none"}
    plain = result.certify(problem, **settings)
    learned = result.certify(problem, foresee=foreseen(study.solver, study.task, study.state), **settings)
    assert learned.partial.upper < 0.2 * plain.partial.upper


def test_a_wrong_model_does_not_make_a_certificate_wrong():
    """At x0, far from stationary, the bound must stay above the norm of the gradient, whatever was learned."""
    from pzos.games.derivatives import security_gradient

    study = pzos.Study(GAME.problem().known(), CompositeTrustRegion(), queries=2)
    pzos.drive(study, pzos.Oracle(GAME.problem().follower), progress=False)
    steep = float(np.linalg.norm(security_gradient(GAME, GAME.start())[1]))
    found = pzos.stationarity.certify(
        GAME.problem(),
        delta=1e-3,
        queries=201,
        foresee=foreseen(study.solver, study.task, study.state),
        projected=False,
    )
    assert 0.9 * steep < found.partial.upper < 2.0 * steep


def test_noise_makes_the_certificate_look_farther():
    base = GAME.problem()
    noisy = seeded(lambda x, generator: GAME.response(x) * (1.0 + 0.01 * generator.standard_normal(8)))
    problem = pzos.Problem(base.leader, noisy, base.x0, base.domain)
    result = pzos.solve(problem, queries=40, progress=False, certificate=True)
    exact = pzos.solve(base, queries=40, progress=False, certificate=True)
    assert result.certificate.delta >= exact.certificate.delta


def test_a_durable_default_run_keeps_its_certificate(tmp_path):
    calls = []

    def counted(x):
        calls.append(x)
        return GAME.response(x)

    base = GAME.problem()
    problem = pzos.Problem(base.leader, counted, base.x0, base.domain)
    first = pzos.solve(problem, queries=12, path=tmp_path / "run", progress=False, certificate=True)
    asked = len(calls)
    again = pzos.solve(problem, queries=12, path=tmp_path / "run", progress=False, certificate=True)
    assert len(calls) == asked  # nothing is asked twice
    assert again.certificate.partial.upper == first.certificate.partial.upper
    longer = pzos.solve(problem, queries=20, path=tmp_path / "run", progress=False, certificate=True)
    assert longer.queries == 20
    assert longer.certificate is not None


def test_states_without_a_model_foresee_nothing():
    study = pzos.Study(GAME.problem().known(), pzos.PZOS(), steps=1)
    assert foreseen(study.solver, study.task, study.state) is None
    assert not isinstance(study.solver, Certifiable)
    assert isinstance(pzos.MemoryPZOS(), Foreseeing)
    assert isinstance(CompositeTrustRegion(), Foreseeing)
    assert not isinstance(pzos.PZOS(), Foreseeing)
    fresh = pzos.Study(GAME.problem().known(), CompositeTrustRegion(), steps=1)
    assert foreseen(fresh.solver, fresh.task, fresh.state) is None
    assert CompositeTrustRegion().certifying_radius(fresh.state) is None


def test_watched_for_stationarity_the_trust_region_stops():
    solver = StopWhenStationary(CompositeTrustRegion(), delta=0.05, epsilon=0.05, share=0.6, first=20)
    study = pzos.Study(GAME.problem().known(), solver, queries=600)
    pzos.drive(study, pzos.Oracle(GAME.problem().follower), progress=False)
    assert study.stop is Stop.STATIONARY
    assert study.result().certificate.stationary(0.05)
