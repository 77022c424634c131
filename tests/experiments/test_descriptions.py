"""The experiments are the paper's, and every run has an address of its own."""

from __future__ import annotations

from pzos.experiments.descriptions import FULL, QUICK, RunSpec, Variant, both


def test_the_full_scale_is_the_papers() -> None:
    security, routing = FULL.security, FULL.routing
    assert security.dimensions == (2, *range(5, 301, 5))
    assert len(security.dimensions) == 61
    assert len(list(security.runs(0, security.base()))) == 2 * 427
    assert (security.steps, security.radius, security.scale(100), security.scale(105)) == (500, 0.1, 0.05, 0.03)
    assert (routing.instances, routing.steps, routing.radius, routing.step_scale) == (225, 150, 0.5, 0.7)
    assert sum(n >= 100 for n in security.dimensions) * security.repetitions == 287


def test_oracle_calls_are_counted_as_in_the_paper() -> None:
    assert [Variant("PZOS", q).queries_per_step for q in (1, 2, 4)] == [3, 5, 9]
    assert [Variant("ZOS", q).queries_per_step for q in (1, 2, 4)] == [2, 4, 8]


def test_both_algorithms_share_instance_and_directions() -> None:
    by_instance: dict[int, set[int]] = {}
    for spec in [*FULL.security.runs(3, FULL.security.base()), *FULL.routing.runs(3, FULL.routing.batch_variants())]:
        by_instance.setdefault((spec.family, spec.instance), set()).add(spec.seed)  # type: ignore[arg-type]
    assert all(len(seeds) == 1 for seeds in by_instance.values())
    assert len({next(iter(seeds)) for seeds in by_instance.values()}) == len(by_instance)


def test_a_key_names_everything_a_run_depends_on() -> None:
    specs: list[RunSpec] = []
    for scale in (FULL, QUICK):
        for seed in (0, 1):
            routing = scale.routing
            variants = {*routing.batch_variants(), *routing.radius_variants(), *routing.constrained_variants()}
            variants |= {*routing.bold(), *(variant for pair in routing.batch_pairs() for variant in pair)}
            security = (*scale.security.base(), *scale.security.bold())
            specs += [*scale.security.runs(seed, security), *routing.runs(seed, tuple(variants))]
    assert len({spec.key for spec in specs}) == len(set(specs))


def test_variants_differ_in_one_thing_only() -> None:
    routing = FULL.routing
    assert [v.label for v in routing.batch_variants()] == ["PZOS", "ZOS", "ZOS (Q=2)", "ZOS (Q=4)"]
    assert {(v.algorithm, v.radius) for v in routing.radius_variants()} == {
        (name, mu) for name in ("PZOS", "ZOS") for mu in (0.1, 0.5, 0.9, 2.0)
    }
    assert routing.constrained_variants() == both(0.5, nonnegative=True) != routing.base() == both(0.5)


def test_bold_runs_take_the_larger_step_on_some_of_the_same_instances() -> None:
    bold = list(FULL.security.runs(0, FULL.security.bold()))
    assert len(bold) == 2 * 3 * 7
    assert {(spec.targets, spec.step_scale) for spec in bold} == {(n, 0.05) for n in (200, 250, 300)}
    plain = {(spec.instance, spec.seed) for spec in FULL.security.runs(0, FULL.security.base())}
    assert {(spec.instance, spec.seed) for spec in bold} < plain
    routes = list(FULL.routing.runs(0, FULL.routing.bold()))
    assert {spec.step_scale for spec in routes} == {1.05}
    assert [spec.instance for spec in routes[::2]] == list(range(60))


def test_batches_of_both_algorithms_are_paired() -> None:
    assert [[v.label for v in pair] for pair in FULL.routing.batch_pairs()] == [
        ["PZOS", "ZOS"], ["PZOS (Q=2)", "ZOS (Q=2)"], ["PZOS (Q=4)", "ZOS (Q=4)"],
    ]  # fmt: skip


def test_instances_of_a_dimension_are_neighbours() -> None:
    security = QUICK.security
    specs = list(security.runs(2, security.base()))
    assert [spec.instance for spec in specs[::2]] == list(range(8 * 3))
    assert [spec.targets for spec in specs[:: 2 * 3]] == list(security.dimensions)
    assert {spec.step_scale for spec in specs if spec.targets > 100} == {0.03}
    assert specs[-1].seed == 2_000_000 + 23
    assert QUICK.experiment("security") is security
    assert QUICK.experiment("routing") is QUICK.routing
