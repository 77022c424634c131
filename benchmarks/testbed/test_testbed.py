"""The test bed in small: cases with true references, methods on equal terms, tables, profiles, figures, the command."""

from __future__ import annotations

import argparse
import csv
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pzos.base.errors import InvalidInput, NotConverged
from pzos.games.routing import RoutingGame
from pzos.games.security import SecurityGame
from pzos.networks import Demand, Latency, Network
from testbed import command, related, tuning
from testbed.cases import Counter, Spent, answer, make
from testbed.command import shown
from testbed.frank_wolfe import Travellers, routing_by_frank_wolfe, security_by_frank_wolfe
from testbed.related import ROWS, by_frank_wolfe
from testbed.table import METHODS, Curve, curve, profile, run_table, stacked, summary
from testbed.tuning import TUNING_SEEDS, setting

PACKAGES = {"pycma": "cma", "nevergrad": "nevergrad", "py-bobyqa": "pybobyqa", "dfo-ls": "dfols", "pounders": "ibcdfo"}

BENCHMARKS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def case():
    return make("security-10", 400)


def installed(method):
    import importlib.util

    return method not in PACKAGES or importlib.util.find_spec(PACKAGES[method]) is not None


@pytest.mark.parametrize("family", ["security-10", "security-10-declared", "routing-1", "routing-0.02", "cournot"])
def test_references_are_better_than_what_a_short_run_finds(family):
    case = make(family, 401)
    found = curve(case, "default", 30)
    assert not found.failure
    assert found.gaps[0] == pytest.approx(1.0)
    assert found.at(30) > -1e-6
    assert found.at(30) < 0.2


def test_the_reference_is_stationary(case):
    """No random point near the start nor any coordinate step from a long run's point is below it."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = case.problem.domain.project(case.problem.x0 + rng.standard_normal(10))
        assert case.true_value(x) >= case.best


def test_noise_is_one_percent_of_every_entry_and_repeats():
    noisy = make("security-10", 400, 0.01)
    x = noisy.problem.x0
    first, second = Counter(noisy, 9), Counter(noisy, 9)
    first(x)
    second(x)
    np.testing.assert_array_equal(first.last, second.last)
    relative = first.last / answer(noisy.clean, x) - 1.0
    assert 0.001 < np.sqrt(np.mean(relative[np.isfinite(relative)] ** 2)) < 0.03
    assert first.values[0] == noisy.true_value(x)


def test_the_counter_ends_a_method_at_its_budget(case):
    counter = Counter(case, 2)
    counter(case.problem.x0)
    counter(case.problem.x0)
    with pytest.raises(Spent):
        counter(case.problem.x0)


@pytest.mark.parametrize("method", [name for name in METHODS if "tuned" not in name])
def test_every_method_runs_within_its_budget_or_says_what_is_missing(case, method):
    budget = 45 if method == "gfm-plus" else 20  # its first batch alone takes 20, and one to watch it
    found = curve(case, method, budget)
    if not installed(method):
        assert "pzos[peers]" in found.failure
        return
    assert not found.failure
    assert 0 < found.gaps.size <= budget
    assert found.gaps[0] < 10.0  # most start at x0, pycma beside it
    assert (np.diff(found.gaps) <= 0).all()


def test_tuned_steps_beat_the_papers(case):
    assert curve(case, "pzos-tuned", 60).at(60) < curve(case, "pzos-paper", 60).at(60)


def test_every_related_method_is_tuned_on_as_many_candidates_as_pzos(case):
    for name, row in ROWS.items():
        candidates = row.grid(setting(case, 60))
        assert len(set(candidates)) == len(setting(case, 60).steps) == 12, name
    assert not set(TUNING_SEEDS) & set(range(100))


def test_gains_so_long_that_the_followers_break_are_not_chosen(monkeypatch):
    def broken_beyond_one(case, queries, alpha, beta):
        if alpha > 1.0:
            raise NotConverged("the followers broke")
        return [case.best + alpha]

    monkeypatch.setattr(related, "_hypergradient", broken_beyond_one)
    related._best_gains.cache_clear()
    assert related._best_gains("security-10", 0.0, 5)[0] == pytest.approx(30.0 * 0.003)
    related._best_gains.cache_clear()


def test_two_phase_gfm_spends_its_budget_and_no_more(case):
    for queries in (50, 150, 450):
        for solver in ROWS["2-gfm"].grid(setting(case, queries)):
            spent = 2 * solver.rounds * (solver.steps + solver.judging)
            assert 0.8 * queries <= spent <= queries


def test_frank_wolfe_followers_come_near_the_exact_ones_and_nearer_with_more_steps():
    security, routing = SecurityGame.random(400, 10), RoutingGame.random(401)
    for game, x, answers in (
        (security, security.start(), security_by_frank_wolfe),
        (routing, np.linspace(0.0, 2.0, routing.edges), routing_by_frank_wolfe),
    ):
        exact = game.response(x)
        errors = [np.abs(answers(game, steps)(x) - exact).sum() / exact.sum() for steps in (20, 1000)]
        assert errors[1] < 0.02
        assert errors[1] < 0.5 * errors[0]


def test_travellers_between_two_zones_come_near_the_exact_equilibrium():
    free, slope = np.array([0.0, 50.0, 50.0, 10.0, 0.0]), np.array([10.0, 1.0, 1.0, 1.0, 10.0])
    trips = Demand.from_list([0], [1], [6.0])
    braess = Network.from_arrays([0, 0, 2, 2, 3], [2, 3, 1, 3, 1], Latency.affine(free, slope), trips)
    for tolls in (np.zeros(5), np.array([0.0, 0.0, 0.0, 5.0, 1.0])):
        assert Travellers(braess, 0, 1).flow(6.0, tolls) == pytest.approx(braess.assign(tolls).flow, abs=0.1)


def test_frank_wolfe_followers_are_judged_by_the_exact_ones(case):
    prepared = by_frank_wolfe(case)
    x = case.problem.x0
    assert prepared.true_value(x) == case.true_value(x)
    assert answer(prepared.problem.follower, x) != pytest.approx(answer(case.problem.follower, x), rel=1e-6)


def test_the_default_beats_the_methods_that_do_not_remember(case):
    ours = curve(case, "default", 30).at(30)
    for rival in ("pzos-paper", "zos-paper", "naive", "lbfgsb-differences"):
        assert ours < curve(case, rival, 30).at(30)


def test_what_does_not_apply_is_a_failure_with_its_reason():
    case = make("routing-1", 402)
    assert "sum of squares" in curve(case, "dfo-ls", 5).failure
    firms = make("cournot", 403)
    assert "Jacobian" in curve(firms, "white-box", 5).failure
    with pytest.raises(InvalidInput, match="model"):
        by_frank_wolfe(firms)


def curves():
    return [
        Curve("f", "good", 0, np.array([1.0, 0.05, 0.001]), 0.1),
        Curve("f", "good", 1, np.array([1.0, 0.5, 0.005]), 0.1),
        Curve("f", "bad", 0, np.array([1.0, 0.9]), 0.1),
        Curve("f", "bad", 1, np.zeros(0), 0.1, "ValueError: broke"),
    ]


def test_summary_profile_and_stack():
    rows = {row["method"]: row for row in summary(curves(), [2, 3])}
    assert rows["good"]["@2"] == "2.8e-01 (5e-01)"
    assert rows["good"]["to 0.1"] == "2.5"
    assert rows["bad"]["to 0.1"] == "-"
    assert rows["bad"]["failed"].startswith("1: ValueError")
    shares = profile(curves(), 0.1, [1, 2, 3])
    np.testing.assert_array_equal(shares["good"], [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(shares["bad"], 0.0)
    assert stacked(curves()[:3], 3).tolist()[2] == [1.0, 0.9, 0.9]
    assert "broke" in shown(summary(curves(), [2]))
    assert shown([]) == "nothing was run\n"


def test_unknown_names_are_refused():
    with pytest.raises(InvalidInput, match="family"):
        make("chess", 0)
    with pytest.raises(InvalidInput, match="method"):
        run_table(["security-10"], ["luck"], [0], 5)


def test_figures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from testbed.figures import draw

    written = draw(curves(), 3, tmp_path)
    assert [path.name for path in written] == ["f.png", "profiles.png"]
    assert all(path.stat().st_size > 5000 for path in written)


def test_the_command(tmp_path):
    done = subprocess.run(
        [
            sys.executable, "-m", "pzos", "bench", "--families", "security-10", "--methods", "default", "naive",
            "--instances", "2", "--first-seed", "404", "--queries", "20", "--noise", "0.01", "--out", str(tmp_path),
        ],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert "security n=10 noise 0.01" in done.stdout
    assert "@20" in done.stdout
    assert "seed 405" in done.stderr
    with (tmp_path / "gaps.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"default", "naive"}
    assert max(int(row["query"]) for row in rows) == 20


def test_all_methods_run_on_both_games_in_one_go(capsys, monkeypatch):
    """The small version: instead of a tuned method the first of its candidates, so that it takes seconds."""
    monkeypatch.setattr(tuning, "_least_gap", lambda *_: 0.0)
    monkeypatch.setattr(related, "_best_gains", lambda *_: (0.01, 1.0))
    tuning.tuned.cache_clear()
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    few = ["--families", "security-10", "routing-0.1", "--methods", "all", "--instances", "1", "--queries", "42"]
    assert command.run(parser.parse_args(few)) == 0
    out, err = capsys.readouterr()
    rows = [line.split() for line in out.splitlines()[1:]]
    wanted = {name for name in METHODS if installed(name)}
    for family, inapplicable in (("security", set()), ("routing", {"dfo-ls"})):
        ran = {row[2]: row[4] for row in rows if row[0] == family}
        assert set(ran) == wanted - inapplicable
        assert "-" not in ran.values()  # each has a gap to show
    assert "FAILED" not in err
    assert "left out: dfo-ls: routing lambda=0.1: expected a cost that is a sum of squares" in err
    tuning.tuned.cache_clear()


def test_the_command_names_what_it_does_not_know():
    done = subprocess.run(
        [sys.executable, "-m", "pzos", "bench", "--families", "chess"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "chess" in done.stderr


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_every_benchmark_can_be_loaded(path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    try:
        names = runpy.run_path(str(path), run_name="loaded")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in ("pzos", "testbed") or (BENCHMARKS / error.name).exists():
            raise
        pytest.skip(f"needs {error.name}")
    assert names["__doc__"]


def test_the_page_on_related_work_shows_what_was_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    page = runpy.run_path(str(BENCHMARKS / "related.py"), run_name="loaded")
    gaps = page["read"]()
    assert page["TABLE"].read_text(encoding="utf-8") == page["table"](gaps) + "\n" + page["each_budget"](gaps)
    for family in page["FAMILIES"]:
        for method in page["METHODS"]:
            seeds = {gap.seed for gap in gaps if (gap.family, gap.method) == (family, method)}
            assert seeds == set(range(7)), (family, method)
    assert set(page["METHODS"]) >= set(related.RELATED)
