"""The protocol in small: every family is what it says, peers keep to their budget, runs repeat, the table adds up."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pzos
from testbed.unseen import table
from testbed.unseen.families import FAMILIES, make, of_half
from testbed.unseen.instance import HALVES, KINDS, Door, Spent
from testbed.unseen.parts import rescaled, tracked
from testbed.unseen.peers import PACKAGES, Unfit, package, unit_of
from testbed.unseen.reference import Best, Landscape, best_value
from testbed.unseen.rough import Quadratic
from testbed.unseen.runs import PEERS, Job, Run, Store, load, plan, run
from testbed.unseen.table import Cell, Scale

COMMAND = Path(__file__).parents[2] / "unseen.py"
FAST = ("peak-10", "x-scales-10", "simplex-12", "max-8", "plateau-6", "log-10", "far-15", "security-10")

BEST = {"boxed-20": 0.6892920132, "simplex-12": -5.7885815291}  # of instance 1


def test_both_halves_have_families_of_every_kind_and_none_is_in_both():
    assert len(FAMILIES) >= 36
    counts = Counter((item.kind, item.half) for item in FAMILIES.values())
    for kind in set(KINDS) - {"simulated"}:  # all of these were used for building
        assert abs(counts[kind, "tune"] - counts[kind, "held"]) <= 1
        assert counts[kind, "tune"] > 0
    assert [len(of_half(half)) for half in (*HALVES, "all")] == [37, 29, 12, 18, 18, 114]
    with pytest.raises(ValueError, match="expected one of"):
        make("chess", 0)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_exact_gradients_a_start_in_its_domain_and_repeats(name):
    instance, again, other = make(name, 0), make(name, 0), make(name, 1)
    draft = instance.draft
    assert instance.domain.contains(draft.x0, 1e-9)
    y = np.asarray(draft.respond(draft.x0))
    assert y.ndim == 1
    np.testing.assert_array_equal(y, again.draft.respond(again.draft.x0))
    assert other.true_value(other.draft.x0) != instance.true_value(draft.x0) or name.startswith(("routing", "far"))
    away = np.maximum(y, 0.5) if instance.kind == "holes" else 1.01 * y
    x = draft.x0 + 0.01 * np.asarray(draft.unit)
    assert pzos.check_leader(draft.cost.leader(name), x, away, entries=20, tolerance=1e-4).wrong == ()
    if draft.cost.residuals is not None:
        r = draft.cost.residuals(x, away)
        assert float(r @ r) == pytest.approx(draft.cost.value(x, away), rel=1e-12)
    if draft.rows:
        rows = np.array(draft.respond(np.stack([draft.x0, draft.x0])))
        np.testing.assert_allclose(rows[1], y, rtol=1e-9, atol=1e-12 * (1.0 + np.abs(y).max()))


@pytest.mark.parametrize("name", FAST)
def test_a_reference_is_not_beaten_by_steps_around_it_nor_by_a_peer(name):
    instance = make(name, 3)
    best = best_value(instance, effort=0.1)
    land = Landscape(instance)
    first = instance.true_value(instance.draft.x0)
    assert best < first
    rng = np.random.default_rng(0)
    land.values(land.start + rng.choice([0.1, 1.0], (60, 1)) * rng.standard_normal((60, land.start.size)))
    made = run(Job(name, 3, "prox-linear", 40))
    lowest = min(land.best, *made.values)
    assert (lowest - best) / (first - best) > -1e-6


def test_the_best_values_are_kept_in_a_file_and_only_go_down(tmp_path):
    best = Best(tmp_path / "deep" / "best.json")
    instance = make("sine-5", 0)
    value = best.of(instance)
    assert Best(tmp_path / "deep" / "best.json").known == {"sine-5/0": value}
    best.lower("sine-5", 0, value - 1.0)
    best.write()
    assert Best(tmp_path / "deep" / "best.json").of(instance) == value - 1.0


def test_a_quadratic_program_is_solved_to_its_conditions():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((6, 6))
    Q, G, h = A @ A.T + np.eye(6), rng.standard_normal((9, 6)), 0.3 * rng.random(9)
    solve = Quadratic(Q, G, h)
    for _ in range(20):
        c = 3.0 * rng.standard_normal(6)
        z = solve(c)
        slack = h - G @ z
        assert slack.min() > -1e-9
        active = slack < 1e-7
        multipliers = np.linalg.lstsq(G[active].T, c - Q @ z, rcond=None)[0] if active.any() else np.zeros(0)
        assert multipliers.min(initial=0.0) > -1e-6
        np.testing.assert_allclose(G[active].T @ multipliers, c - Q @ z, atol=1e-7)


def test_other_units_are_the_same_problem():
    rng = np.random.default_rng(1)
    draft = tracked(rng, lambda x: np.tanh(x[..., :3]), 4)
    scaled = rescaled(draft, of_x=np.array([1e-4, 1.0, 1e4, 10.0]), of_y=1e8, of_f=1e-8)
    value = draft.cost.value(draft.x0, draft.respond(draft.x0))
    assert scaled.cost.value(scaled.x0, scaled.respond(scaled.x0)) == pytest.approx(1e-8 * value)


def test_the_door_counts_disturbs_by_number_and_keeps_the_truth():
    instance = make("relative-12", 0)
    door, again = Door(instance, 3), Door(instance, 3)
    x = np.array(instance.draft.x0)
    first, second = door.asked(x), door.asked(x)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(again.asked(x), first)
    assert door.values == [instance.true_value(x)] * 2
    assert door.repeats == 1
    again.asked(x * (1.0 + 1e-15))  # the same up to rounding
    assert again.repeats == 1
    unlike = Door(make("reactor-5", 0), 2)  # decisions from 1e-4 to 1e5: a small one that moved makes another point
    start = unlike.instance.draft.x0
    small = int(np.argmin(np.abs(start)))
    unlike.asked(start)
    unlike.asked(np.where(np.arange(start.size) == small, (1.0 + 1e-9) * start, start))
    assert unlike.repeats == 0
    door.asked(x + 1.0)
    with pytest.raises(Spent):
        door.asked(x)
    boxed = Door(make("boxed-20", 0), 2)
    boxed.asked(np.full(20, 5.0))
    assert boxed.outside == 1
    point, _ = boxed.at(np.full(20, 5.0))
    assert point.max() == 0.8


@pytest.mark.parametrize("name", [item.name for item in FAMILIES.values() if item.kind == "noise"])
def test_noise_disturbs_what_is_seen(name):
    door = Door(make(name, 0), 120)
    x = np.array(door.instance.draft.x0)
    seen = np.array([door.asked(x + 0.01 * (k % 7)) for k in range(120)])
    true = np.array([door.instance.draft.respond(x + 0.01 * (k % 7)) for k in range(120)])
    assert (seen != true).any()
    assert np.isfinite(seen).all()


@pytest.mark.parametrize("method", [*PEERS, "default"])
def test_every_method_keeps_to_its_budget_and_repeats(method):
    first, second = run(Job("bumps-5", 2, method, 25)), run(Job("bumps-5", 2, method, 25))
    if first.unfit:
        assert method in PACKAGES or method in ("dfo-ls", "botorch-composite")
        return
    assert not first.failure
    assert 0 < len(first.values) <= 25
    assert first.values == second.values
    assert first.outside == 0
    if method == "default":
        assert first.returned <= first.values[0]


@pytest.mark.parametrize("method", ["prox-linear", "prox-linear-wide", "broyden", "broyden-wide", "lbfgs-chain"])
def test_engineers_come_near_the_optimum_of_an_easy_problem_on_every_kind_of_set(method):
    for name, best in BEST.items():
        made = run(Job(name, 1, method, 60))
        assert not made.failure
        assert Scale(made.values[0], best).gap(min(made.values)) < 0.5


def test_peers_are_told_the_scale_that_bounds_or_x0_tell():
    np.testing.assert_allclose(unit_of(make("boxed-20", 0)), 0.4)
    np.testing.assert_allclose(unit_of(make("far-15", 0)), 1.0)
    assert 0.2e-8 < unit_of(make("tiny-10", 0))[0] < 3e-8


def test_runs_are_kept_line_by_line_and_half_a_line_is_made_again(tmp_path):
    store = Store(tmp_path)
    made = Run("sine-5", 0, "default", 5, [2.0, 1.0])
    store.keep(made)
    path = tmp_path / "default.jsonl"
    path.write_text(path.read_text() + '{"family": "sine-5", "se')
    assert store.read() == {made.key: made}
    other = Run("sine-5", 1, "default", 5, [3.0])
    store.keep(other)
    assert store.read(["default"]) == {made.key: made, other.key: other}
    assert store.read(["pycma"]) == {}
    elsewhere = Run("step-5", 0, "default", 5, [4.0])
    store.keep(elsewhere)
    store.drop("default", ["sine-5"])
    assert store.read() == {elsewhere.key: elsewhere}
    store.drop("default")
    assert store.read() == {}


def test_a_solver_object_is_loaded_by_name():
    assert isinstance(load("pzos:SecantPZOS"), pzos.SecantPZOS)
    assert run(Job("sine-5", 0, "mine", 20, "pzos:SecantPZOS")).stop == "QUERIES"
    assert "AttributeError" in run(Job("sine-5", 0, "mine", 20, "pzos:Luck")).failure


def test_rounds_of_instances_come_one_after_the_other():
    jobs = plan(["sine-5", "qp-12"], range(2), ["nevergrad", "default"], 150)
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    assert [job.budget for job in jobs if job.method == "nevergrad"][:3] == [20, 50, 150]
    assert {job.budget for job in jobs if job.method == "default"} == {150}
    apart = plan(["sine-5"], range(1), ["default"], 150, separate=True, solver="a:b")
    assert [(job.budget, job.solver) for job in apart] == [(20, "a:b"), (50, "a:b"), (150, "a:b")]


def test_the_table_on_runs_made_by_hand(tmp_path):
    best = Best(tmp_path / "best.json")
    first = {seed: make("sine-5", seed).true_value(make("sine-5", seed).draft.x0) for seed in (0, 1)}
    for seed in (0, 1):
        best.lower("sine-5", seed, first[seed] - 1.0)
    runs = {}
    for seed in (0, 1):
        for method, gaps in (("default", [1.0, 0.3, 0.008]), ("pycma", [1.0, 0.1, 0.0005])):
            values = [first[seed] - 1.0 + gap for gap in gaps]
            made = Run("sine-5", seed, method, 150, values, stop="CONVERGED" if method == "default" else "", repeats=1)
            runs[made.key] = made
    runs["sine-5", 0, "dfo-ls", 150] = Run("sine-5", 0, "dfo-ls", 150, [], unfit=True)
    scale, beaten = table.scales(runs, best)
    assert beaten == []
    cells = table.cells(runs, scale)
    assert [cell.budget for cell in cells] == [20, 50, 150]
    assert cells[0].best_peer()[0] == "pycma"
    assert cells[0].ratio("default") == pytest.approx(16.0)
    assert "dfo-ls" not in cells[0].median
    text = "\n".join(
        [
            *table.cell_lines(cells, "default"),
            *table.shares(cells, "default"),
            *table.bars(cells, "default"),
            *table.ranking(cells),
            *table.behaviour(runs, scale, "default"),
            *table.queries_to(runs, scale, "default", 150),
        ]
    )
    for part in (
        "!!!",
        "> 10x   3",
        "converged claimed 2, falsely 2",
        "repeated x 2",
        "3 / 3",
        "- / 3",
        "FAIL  all: never 10x: 3 of 3",
    ):
        assert part in text
    runs["sine-5", 0, "pycma", 150].values.append(first[0] - 1.5)
    scale, beaten = table.scales(runs, best)
    assert len(beaten) == 1
    assert scale["sine-5", 0].best == first[0] - 1.5


def test_gaps_below_the_level_of_rounding_count_as_equal():
    cell = Cell("sine-5", "smooth", 20, {"default": 9e-8, "pycma": 1e-12}, {})
    assert cell.ratio("default") == 1.0
    assert Scale(2.0, 1.0).gap(np.nan) == np.inf


def test_the_command_goes_on_where_it_was(tmp_path):
    words = [sys.executable, str(COMMAND), "--out", str(tmp_path), "--families", "sine-5", "--instances", "1",
             "--budget", "20", "--methods", "default", "broyden", "--table"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    assert "pzos" in done.stdout
    assert "sine-5" in done.stdout
    assert "2/2" in done.stderr
    kept = json.loads((tmp_path / "default.jsonl").read_text().splitlines()[0])
    assert len(kept["values"]) <= 20
    again = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    assert "2/2" not in again.stderr
    assert again.stdout == done.stdout


def test_a_missing_package_is_no_failure():
    with pytest.raises(Unfit, match="not installed"):
        package("no_such_optimiser")
