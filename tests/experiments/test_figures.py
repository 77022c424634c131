"""Every figure on a few instances: files, numbers, and claims that say what was found and can fail."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pzos.cli.reproduce import FIGURES
from pzos.experiments.claims import Claim
from pzos.experiments.tables import Context, write_columns

NAMES = (
    "second_moments", "security", "security_dimension", "routing", "routing_scatter", "routing_batch",
    "routing_oracle_calls", "routing_radius", "routing_constrained", "goldstein",
)  # fmt: skip


@pytest.fixture(scope="module")
def claims(computed: Callable[[], Context]) -> dict[str, Sequence[Claim]]:
    pytest.importorskip("matplotlib", reason="figures need the extra plot")
    context = computed()
    measured = {name: figure.measure(context) for name, figure in FIGURES.items()}
    for name, one in measured.items():
        one.draw()
        write_columns(context.folder / f"{name}_figure.csv", one.columns)
    return {name: one.claims for name, one in measured.items()}


def test_the_figures_are_those_of_the_paper() -> None:
    assert set(FIGURES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_comes_with_png_pdf_and_numbers(
    name: str, claims: dict[str, Sequence[Claim]], computed: Callable[[], Context]
) -> None:
    folder = computed().folder
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    with (folder / f"{name}_figure.csv").open() as file:
        rows = list(csv.reader(file))
    assert len(rows) > 2
    assert all(np.isfinite([float(cell) for cell in row]).all() for row in rows[1:])


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_says_what_was_found(name: str, claims: dict[str, Sequence[Claim]]) -> None:
    assert claims[name]
    assert len({claim.claim for claim in claims[name]}) == len(claims[name])
    for claim in claims[name]:
        assert all(text.strip() == text != "" for text in claim[:3])
        assert claim.source == "finding" or claim.bar is not None
        counted = re.match(r"(?:at )?(\d+) of (\d+)(?! steps)", claim.found)
        if counted:  # the number is the share that the words count
            assert claim.number == pytest.approx(int(counted[1]) / int(counted[2])), claim


@pytest.mark.parametrize("name", [name for name in NAMES if name != "goldstein"])
def test_a_few_instances_are_too_small_to_judge_the_paper(name: str, claims: dict[str, Sequence[Claim]]) -> None:
    assert {claim.verdict for claim in claims[name] if claim.source == "paper"} == {"too small to judge"}


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_of_the_paper_names_its_place(name: str, claims: dict[str, Sequence[Claim]]) -> None:
    assert all(re.match(r"Fig\. \d+|Sec\. 5", claim.where) for claim in claims[name] if claim.source == "paper")


def test_captions_name_the_numbers_of_the_scale(computed: Callable[[], Context]) -> None:
    captions = {name: figure.caption.format(scale=computed().scale) for name, figure in FIGURES.items()}
    assert "n in [100, 300], 6 instances: mean" in captions["security_dimension"]  # 100, 105, 150, twice each
    assert not any("{" in text for text in captions.values())


def test_the_appendix_examples_hold(claims: dict[str, Sequence[Claim]]) -> None:
    assert [claim.verdict for claim in claims["goldstein"]] == ["holds"] * 4


def test_algorithm_4_is_run_at_each_batch(claims: dict[str, Sequence[Claim]], computed: Callable[[], Context]) -> None:
    with (computed().folder / "routing_batches.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["algorithm"], row["batch"]) for row in rows} == {
        (name, q) for name in ("PZOS", "ZOS") for q in ("1", "2", "4")
    }
    last = {row["batch"]: row["queries"] for row in rows if row["algorithm"] == "PZOS"}
    assert last == {"1": "180", "2": "300", "4": "540"}  # 60 steps of 2Q + 1


def test_pzos_has_the_smaller_second_moment(
    claims: dict[str, Sequence[Claim]], computed: Callable[[], Context]
) -> None:
    with (computed().folder / "second_moments.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["n", "pzos_mean", "pzos_2sd", "zos_mean", "zos_2sd"]
    assert all(float(row["pzos_mean"]) < float(row["zos_mean"]) for row in rows)


def test_pzos_leads_on_routing_games(computed: Callable[[], Context]) -> None:
    context = computed()
    pzos, zos = (context.runs("routing", variant) for variant in context.scale.routing.base())
    assert (pzos.values[:, 25] > zos.values[:, 25]).all()
