from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pzos.base.errors import InvalidInput
from pzos.experiments.runs import RunOutcome
from pzos.experiments.store import RunStore

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
