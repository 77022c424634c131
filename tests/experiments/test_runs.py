"""The store gives a run back bit for bit; nothing is computed twice, and where it is does not matter."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pzos.answers.workers import Workers
from pzos.base.errors import InvalidInput
from pzos.experiments import runs as experiment
from pzos.experiments.descriptions import RunSpec, Variant
from pzos.experiments.lockstep import RunOutcome, dimension_of, execute
from pzos.experiments.runs import RunStore, compute_missing, jobs

OUTCOME = RunOutcome(np.array([1.0, np.pi, -0.0]), np.array([1e-300, 2.0]), 3, 4, 5)


def test_what_is_stored_comes_back_bit_for_bit(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.sqlite")
    store.add("a", OUTCOME)
    store.close()
    again = RunStore(tmp_path / "runs.sqlite")
    assert again.finished() == {"a"}
    (outcome,) = again.load(["a"])
    assert outcome.values.tobytes() == OUTCOME.values.tobytes()
    assert outcome[2:] == OUTCOME[2:]
    again.close()


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.sqlite").write_bytes(b"not a database, but long enough to look at" * 40)
    with pytest.raises(InvalidInput, match="expected a store of finished runs"):
        RunStore(tmp_path / "runs.sqlite")


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RunStore(tmp_path / "runs.sqlite").close()
    monkeypatch.setattr("pzos.__version__", "999")
    with pytest.raises(InvalidInput, match="choose another --out"):
        RunStore(tmp_path / "runs.sqlite")


SPECS = [RunSpec("security", at, at, 5 + at, 0.05, 3 + 3 * at, Variant("PZOS", radius=0.1)) for at in (0, 1)]


def test_a_job_is_all_runs_on_a_few_instances_of_one_dimension() -> None:
    variants = Variant("PZOS"), Variant("ZOS", 4)
    routing = [RunSpec("routing", at, 500_000 + at, 0, 0.7, 150, one) for at in range(225) for one in variants]
    security = [replace(SPECS[0], seed=seed) for seed in range(20)]
    found = jobs([*routing, *security])
    assert sorted(spec.key for job in found for spec in job) == sorted(spec.key for spec in [*routing, *security])
    for job in found:
        assert len({(spec.family, dimension_of(spec)) for spec in job}) == 1
        assert len({spec.seed for spec in job}) <= 8
        assert job[0].family == "security" or len(job) == 2 * len({spec.seed for spec in job})
    assert sorted(len(job) for job in found if job[0].family == "security") == [4, 8, 8]


@pytest.fixture
def store(tmp_path: Path):
    opened = RunStore(tmp_path / "runs.sqlite")
    yield opened
    opened.close()


def test_only_what_is_missing_is_computed_the_longest_first(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[RunSpec] = []
    monkeypatch.setattr(experiment, "execute", lambda job: done.extend(job) or [OUTCOME] * len(job))
    assert compute_missing([*SPECS, *SPECS], store) == 2
    assert done == SPECS[::-1]
    assert compute_missing(SPECS, store) == 0
    more = RunSpec("routing", 0, 0, 0, 0.7, 2, Variant("ZOS"))
    assert compute_missing([*SPECS, more], store) == 1
    assert done[2:] == [more]


@pytest.mark.parametrize("where", ["executor", "processes"])
def test_where_a_run_is_computed_changes_no_bit(where: str, store: RunStore) -> None:
    expected = execute(SPECS)
    if where == "executor":
        with ThreadPoolExecutor(2) as executor:
            compute_missing(SPECS, store, executor)
    else:
        with Workers(2) as workers:
            compute_missing(SPECS, store, workers)
    for found, own in zip(store.load(spec.key for spec in SPECS), expected, strict=True):
        assert found.values.tobytes() == own.values.tobytes()
        assert found.gradient_norms_squared.tobytes() == own.gradient_norms_squared.tobytes()
        assert found[2:] == own[2:]


def test_a_run_that_fails_ends_the_others_and_keeps_what_is_done(store: RunStore, monkeypatch) -> None:
    def fails(job: list[RunSpec]) -> list[RunOutcome]:
        if job == SPECS[:1]:
            raise RuntimeError("out of order")
        return [OUTCOME]

    monkeypatch.setattr(experiment, "execute", fails)
    with pytest.raises(RuntimeError, match="out of order"):
        compute_missing(SPECS, store)
    assert store.finished() == {SPECS[1].key}


def test_a_bar_is_shown_on_a_terminal_only(store: RunStore, monkeypatch, capsys) -> None:
    pytest.importorskip("rich", reason="needs the extra 'cli'")
    monkeypatch.setattr(experiment, "execute", lambda job: [OUTCOME] * len(job))
    compute_missing(SPECS[:1], store)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(experiment.sys.stderr, "isatty", lambda: True, raising=False)
    compute_missing(SPECS, store)
    assert "1/1" in capsys.readouterr().err
