"""Every figure on a few instances: files, numbers, and claims that say what was found and can fail."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pzos.cli.reproduce import FIGURES
from pzos.experiments.tables import Claim, Context, write_columns

NAMES = (
    "second_moments", "security", "security_dimension", "routing", "routing_scatter", "routing_batch",
    "routing_oracle_calls", "routing_radius", "routing_constrained", "goldstein",
)  # fmt: skip


@pytest.fixture(scope="module")
def claims(computed: Callable[[], Context]) -> dict[str, Sequence[Claim]]:
    pytest.importorskip("matplotlib", reason="figures need the extra plot")
    context = computed()
    drawn = {name: figure.draw(context) for name, figure in FIGURES.items()}
    for name, (columns, _) in drawn.items():
        write_columns(context.folder / f"{name}_figure.csv", columns)
    return {name: one.claims for name, one in drawn.items()}


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
    for claim in claims[name]:
        assert all(text.strip() == text != "" for text in claim[:3])
        counted = re.match(r"(?:\w+ )*(\d+) of (\d+)", claim.found)
        if counted and not any(word in claim.claim for word in ("25 %", "varies less", "never")):
            assert claim.holds is (counted[1] == counted[2]), claim  # a claim about all holds if it was all


def test_captions_name_the_numbers_of_the_scale(computed: Callable[[], Context]) -> None:
    captions = {name: figure.caption.format(scale=computed().scale) for name, figure in FIGURES.items()}
    assert "n in [100, 300], 6 instances: mean" in captions["security_dimension"]  # 100, 105, 150, twice each
    assert not any("{" in text for text in captions.values())


def test_claims_can_fail(claims: dict[str, Sequence[Claim]]) -> None:
    """The tiny scale has 2 x 260 evaluations a dimension, so the claim about 3500 must not hold."""
    claim = next(c for c in claims["second_moments"] if "3500" in c.claim)
    assert claim.found == "520"
    assert not claim.holds


def test_the_appendix_examples_hold(claims: dict[str, Sequence[Claim]]) -> None:
    assert all(claim.holds for claim in claims["goldstein"])


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
