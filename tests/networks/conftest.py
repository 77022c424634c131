"""Where the public test networks lie, if they are here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pzos.networks import Network, generated_city, read_tntp

STEMS = {
    "Braess-Example": ("Braess", {}),
    "SiouxFalls": ("SiouxFalls", {}),
    "Eastern-Massachusetts": ("EMA", {}),
    "Anaheim": ("Anaheim", {}),
    "Winnipeg": ("Winnipeg", {}),
    "Terrassa-Asymmetric": ("Terrassa-Asym", {}),
    "Chicago-Sketch": ("ChicagoSketch", {"toll_factor": 0.02, "distance_factor": 0.04}),
}


def tntp_folder() -> Path | None:
    """Return the folder of the public networks: PZOS_TNTP, or shared/data/tntp beside the repository."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data" / "tntp"
    named = os.environ.get("PZOS_TNTP")
    folder = Path(named) if named else beside
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def tntp() -> Callable[[str, str], Path]:
    """Return the path of a file, (network, kind) -> path, or skip the test."""

    def find(name: str, kind: str) -> Path:
        folder = tntp_folder()
        if folder is None:
            pytest.skip("no public TNTP networks here (set PZOS_TNTP or put them in ../shared/data/tntp)")
        return folder / name / f"{STEMS[name][0]}_{kind}.tntp"

    return find


@pytest.fixture(scope="session")
def public(tntp: Callable[[str, str], Path]) -> Callable[[str], Network]:
    """Return a reader of the public networks by name."""

    def read(name: str) -> Network:
        return read_tntp(tntp(name, "net"), tntp(name, "trips"), **STEMS[name][1])

    return read


@pytest.fixture(scope="session")
def city() -> Network:
    """Return the generated city used by many tests."""
    return generated_city(5, 5, zones=9, congestion=1.2, seed=3)
