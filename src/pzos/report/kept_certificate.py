"""The certificate kept in a study file of its own (``pzos certify --keep FILE``), rebuilt and put into words."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pzos.journal import open_journal
from pzos.rows import as_array
from pzos.stationarity.batch import known_at

if TYPE_CHECKING:
    from pzos.problem import Problem


def certificate_of(path: Path, solver: dict[str, Any], problem: Problem | None) -> str:
    """Return the certificate in the file at ``path`` in words; "" if it holds none, or the problem is not given."""
    if problem is None or not str(solver.get("type", "")).endswith(".CertificateSolver"):
        return ""
    from pzos.stationarity.certificate import CertificateSolver
    from pzos.study import Study

    journal = open_journal(path, read_only=True)
    try:
        header = json.loads(journal.header or "{}")
        first = next((row for row in journal.all_answers() if row.index == 0), None)
    finally:
        journal.close()
    if first is None or solver.get("foresee") is not None:
        return ""
    names = {field.name for field in fields(CertificateSolver)} & set(solver)
    settings = {name: _number(solver[name]) for name in names}
    own = replace(CertificateSolver(delta=settings["delta"]), **settings)
    known = known_at("report", problem.known(), as_array(first.x))
    seed = header.get("identity", {}).get("seed", 0)
    with Study.open(path, known, own, read_only=True, seed=seed, steps=1, monitor=False) as study:
        report = getattr(study.state, "report", None)
        return "" if report is None else str(report)


def _number(stored: Any) -> Any:
    """Return a setting as it was: real numbers are kept as text."""
    try:
        return float(stored) if isinstance(stored, str) else stored
    except ValueError:
        return stored
