"""The suite in small: every family is what it says, runs go on where they were killed, nothing is simulated twice."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import pzos
from pzos.cli.main import main
from suite import family as families
from suite.command import freeze
from suite.family import Door, Family, found
from suite.followers.bilevel import SCALAR
from suite.methods import METHODS, OURS
from suite.runs import Run, plan, run
from suite.table import Cell, Row, cells, markdown, profile, read_csv, rows, scales, verdict
from testbed.unseen.instance import Spent
from testbed.unseen.peers import Unfit

FAMILIES = found()


def circle(seed: int) -> pzos.Problem:
    """Return a cheap problem that counts how often its follower is asked."""
    target = 1.0 + 0.1 * seed

    def answer(x):
        circle.asked += 1
        return np.array([x @ x, x.sum()])

    leader = pzos.leader_from_functions(
        lambda x, y: -float((y[0] - target) ** 2 + y[1] ** 2),
        value_and_gradients=lambda x, y: (
            -float((y[0] - target) ** 2 + y[1] ** 2), np.zeros(2), np.array([-2.0 * (y[0] - target), -2.0 * y[1]])
        ),
    )  # fmt: skip
    return pzos.Problem(leader, answer, [0.5, 0.25], pzos.Box(-2.0, 2.0), sense="max")


CIRCLE = Family("circle", "", "", circle, "smooth", "a test", best=lambda seed: 0.0,
                baselines={"corner": lambda seed: np.array([2.0, 2.0])})  # fmt: skip


@pytest.fixture(autouse=True)
def _count():
    circle.asked = 0


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_what_it_says(name):
    family = FAMILIES[name]
    if family.missing():
        pytest.skip(family.missing())
    problem = family.make(0)
    instance = family.stated(0)
    assert problem.domain.contains(problem.x0, 1e-9)
    assert family.about
    noise = instance.noise(0, 0)
    y = instance.answer(np.array(problem.x0), noise)
    assert y.ndim == 1
    assert np.isfinite(y).all()
    np.testing.assert_array_equal(family.stated(0).answer(np.array(problem.x0), family.stated(0).noise(0, 0)), y)
    rng = np.random.default_rng(0)  # f may have kinks of its own at the answer itself
    near = y + 1e-3 * np.maximum(1.0, np.abs(y)) * rng.random(y.size)
    inside = np.asarray(problem.domain.project(problem.x0 + 1e-3 * rng.random(problem.x0.size)))
    assert pzos.check_leader(problem.leader, inside, near)
    for seed, make in ((0, made) for made in family.baselines.values()):
        assert np.shape(make(seed)) == problem.x0.shape


def test_a_package_that_is_missing_is_named_with_its_extra():
    reason = replace(CIRCLE, package="no_such_simulator", extra="suite-none").missing()
    assert "no_such_simulator" in reason
    assert "pzos[suite-none]" in reason


def test_two_families_of_one_name_are_refused(monkeypatch):
    monkeypatch.setattr("suite.followers.bilevel.FAMILIES", [CIRCLE, CIRCLE])
    with pytest.raises(ValueError, match="expected a new name"):
        found()


@pytest.mark.parametrize("item", SCALAR, ids=lambda item: item.name)
def test_the_values_of_the_literature_are_those_of_a_dense_search(item):
    grid = np.linspace(*(float(np.ravel(side)[0]) for side in (item.domain.lower, item.domain.upper)), 801)
    values = [item.cost(np.array([t]), np.asarray(item.answer(np.array([t])))) for t in grid]
    start = item.cost(np.array(item.x0), np.asarray(item.answer(np.array(item.x0))))
    assert min(values) == pytest.approx(item.best, abs=2e-3 * (start - item.best))


def test_every_method_asks_within_the_domain_and_at_most_its_budget(tmp_path):
    for name in METHODS:
        made = run(plan([CIRCLE], [name], instances=1, queries=10)[-1], tmp_path)
        assert made.method == name
        assert made.unfit or len(made.values) in range(1, 11), made.failure
        assert made.unfit or name in OURS or not made.beyond


def test_answers_are_kept_and_nothing_is_simulated_twice(tmp_path):
    job = plan([CIRCLE], ["cobyqa"], instances=1, queries=10)[-1]
    first = run(job, tmp_path)
    asked = circle.asked
    assert asked == first.simulated == len(first.values)
    again = run(job, tmp_path)
    assert (circle.asked, again.simulated, again.values) == (asked, 0, first.values)


def test_starts_from_elsewhere_are_a_reference_and_no_row(tmp_path):
    jobs = plan([CIRCLE], ["cobyqa"], instances=1, queries=10, starts=3)
    made = [run(job, tmp_path) for job in jobs]
    assert [item.method for item in made] == ["doing-nothing", "best-known", "corner", "cobyqa", "multistart"]
    assert (made[-1].budget, len(made[-1].values)) == (30, 30)
    assert min(made[-1].values) <= min(made[-1].values[:10])
    assert {row.method for row in rows({item.key: item for item in made})} == {"doing-nothing", "corner", "cobyqa"}


def test_a_failing_simulator_is_a_query_and_no_end():
    def broken(seed):
        problem = circle(seed)

        def answer(x):
            if x[0] > 0.6:
                raise pzos.FollowerFailure("too far")
            return np.array([x @ x, x.sum()])

        return pzos.Problem(problem.leader, answer, problem.x0, problem.domain, sense="max")

    family = replace(CIRCLE, make=broken)
    door = Door(family.stated(0), 3)
    first = door.cost(np.array([0.5, 0.25]))
    assert door.cost(np.array([1.0, 0.0])) == first
    assert door.values[1] == np.inf
    for name in ("default", "cobyqa"):
        made = run(plan([family], [name], instances=1, queries=10)[-1])
        assert not made.failure
        assert made.at(10) < made.values[0]


def test_a_probe_outside_the_set_is_answered_but_counts_for_nothing():
    door = Door(CIRCLE.stated(0), 2)
    door.asked(np.array([0.1, 0.1]))
    assert door.asked(np.array([2.5, 0.0])).tolist() == [6.25, 2.5]
    assert door.outside == 1
    assert door.values[1] == np.inf


def noisy(seed, *, common=False):
    """Return the cheap problem with noise, which may be the same at every x."""
    problem = circle(seed)
    follower = pzos.seeded(lambda x, rng: np.array([x @ x, x.sum()]) + 0.1 * rng.standard_normal(2), common=common)
    return pzos.Problem(problem.leader, follower, problem.x0, problem.domain, sense="max")


def test_common_random_numbers_are_the_same_for_every_method():
    family = replace(CIRCLE, make=lambda seed: noisy(seed, common=True), judged_by=2, kept=False)
    ours, theirs = (run(plan([family], [name], instances=1, queries=10)[-1]) for name in ("default", "cobyqa"))
    assert ours.values[0] == theirs.values[0]


def test_a_noisy_simulator_is_judged_by_the_mean():
    family = replace(CIRCLE, make=noisy, judged_by=200, kept=False)
    made = run(plan([family], ["default"], instances=1, queries=10)[-1])
    assert not made.exact
    assert made.at(10) != min(made.values)
    x = np.array(made.x)
    assert made.at(10) == pytest.approx((x @ x - 1.0) ** 2 + x.sum() ** 2, abs=0.05)


def test_a_door_is_closed_when_the_budget_is_spent():
    door = Door(CIRCLE.stated(0), 1)
    door.at(np.zeros(2))
    with pytest.raises(Spent):
        door.at(np.zeros(2))


def test_the_table_says_who_is_first_and_lists_every_loss():
    def made(method, seed, value, budget=50):
        return Run("a", seed, method, budget, [1.0, value], {"10": 1.0, str(budget): value})

    def start(seed):
        return Run("a", seed, "doing-nothing", 1, [1.0], {"1": 1.0})

    runs = [start(0), start(1), made("default", 0, 0.4), made("default", 1, 0.2), made("cobyqa", 0, 0.2),
            made("cobyqa", 1, 0.1), Run("a", 0, "best-known", 1, [0.0], {"1": 0.0}),
            Run("a", 1, "best-known", 1, [0.0], {"1": 0.0})]  # fmt: skip
    kept = {item.key: item for item in runs}
    assert scales(kept)["a", 0].gap(0.5) == 0.5
    table = rows(kept)
    (at,) = [row for row in table if (row.method, row.budget) == ("default", 50)]
    assert (at.median, at.worst, at.runs) == (pytest.approx(0.3), 0.4, 2)
    text = "\n".join(verdict(cells(table)))
    assert "first or tied (within 10 %) in 1 of 2 cells" in text
    assert "a at 50: behind cobyqa by 2x" in text
    assert Cell("a", 50, 1e-6, 0.0, "cobyqa").ratio == 1.0
    assert profile(table, 0.1, [1, 2]) == {"default": [0.0, 0.0], "cobyqa": [0.0, 0.5]}
    assert "| a | 50 | 0.3 (0.4) | cobyqa 0.15 | 2 |" in markdown(table)
    fewer = [replace(row, runs=1) if row.method == "cobyqa" else row for row in table]
    assert not cells(fewer)  # a median of one instance is not compared with one of two


def test_what_is_frozen_is_merged_by_family_and_read_again(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra 'plot'")
    (tmp_path / "_static").mkdir()
    gone = (math.inf, 3.0), (math.inf,), (2.0, 5.0)

    def row(family, method, gap):
        return Row(family, method, 50, 2, gap, 2.0 * gap, 1.5, 0.25, "a, note", gone)

    freeze([row("a", "default", 0.5), row("a", "cobyqa", 0.25), row("b", "default", 0.1)], tmp_path)
    freeze([row("b", "default", 0.2), row("b", "cobyqa", 0.4)], tmp_path)
    kept = {(item.family, item.method): item for item in read_csv(tmp_path / "_static" / "suite.csv")}
    assert kept["a", "default"] == row("a", "default", 0.5)
    assert kept["b", "default"].median == 0.2
    text = (tmp_path / "suite_table.md").read_text(encoding="utf-8")
    assert "behind cobyqa by 2x" in text
    assert f"Last run with pzos {pzos.__version__}" in text
    assert (tmp_path / "_static" / "suite_cells.png").stat().st_size > 0


def test_the_command_goes_on_where_it_was_killed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("suite.followers.bilevel.FAMILIES", [CIRCLE])
    args = ["bench", "--suite", "real", "--families", "circle", "--methods", "default", "cobyqa",
            "--instances", "1", "--queries", "10", "--out", str(tmp_path), "--figures"]  # fmt: skip
    assert main(args) == 0
    first = capsys.readouterr()
    assert "first or tied" in first.out
    assert "corner" in first.out
    assert (tmp_path / "suite.csv").read_text(encoding="utf-8").startswith("family,method,queries")
    lines = (tmp_path / "cobyqa.jsonl").read_text(encoding="utf-8")
    (tmp_path / "cobyqa.jsonl").write_text(lines[: len(lines) // 2], encoding="utf-8")  # a kill in the middle
    asked = circle.asked
    assert main(args) == 0
    assert circle.asked == asked
    assert "1/1 circle/0 cobyqa @10" in capsys.readouterr().err
    assert json.loads((tmp_path / "cobyqa.jsonl").read_text(encoding="utf-8").splitlines()[-1])["budget"] == 10


def test_the_command_lists_families_and_refuses_unknown_names(capsys):
    assert main(["bench", "--suite", "real", "--list"]) == 0
    assert "bilevel-scalar" in capsys.readouterr().out
    assert main(["bench", "--suite", "real", "--families", "chess", "--methods", "luck"]) == 2
    assert "chess" in capsys.readouterr().err


def test_a_row_that_takes_too_long_to_tune_is_left_out(monkeypatch):
    monkeypatch.setattr("suite.methods.TUNING_SECONDS", 0.0)
    with pytest.raises(Unfit, match="tuning it takes 36 simulations"):
        METHODS["gfm"](Door(replace(CIRCLE, name="slow").stated(0), 3), 0)


def test_the_folder_of_followers_is_there():
    assert (families.FOLDER / "bilevel.py").is_file()
