"""Certificates kept in study files of their own, rebuilt from their answers.

``pzos certify --keep FILE`` makes one, and a durable run by default ends with one beside its study.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pzos.durable.log import read_study
from pzos.stationarity.one_batch import known_at

if TYPE_CHECKING:
    from pzos.problem.problem import Problem
    from pzos.stationarity.certificate import Certificate
    from pzos.study.study import Study


def certificate_of(path: Path, solver: dict[str, Any], problem: Problem | None) -> str:
    """Return the certificate in the file at ``path`` in words; "" if it holds none, or the problem is not given."""
    if problem is None or not str(solver.get("type", "")).endswith(".CertificateSolver"):
        return ""
    from pzos.stationarity.certificate import CertificateSolver
    from pzos.study.study import Study

    contents = read_study(path)
    header = contents.header or {}
    first = next((row for row in contents.answers if row.index == 0), None)
    if first is None or solver.get("foresee") is not None:
        return ""
    names = {field.name for field in fields(CertificateSolver)} & set(solver)
    settings = {name: _number(solver[name]) for name in names}
    own = replace(CertificateSolver(delta=settings["delta"]), **settings)
    known = known_at("report", problem.known(), first.x)
    seed = header.get("identity", {}).get("seed", 0)
    with Study.open(path, known, own, read_only=True, seed=seed, steps=1, monitor=False) as study:
        report = getattr(study.state, "report", None)
        return "" if report is None else str(report)


def certificate_beside(path: Path, study: Study) -> Certificate | None:
    """Return the certificate a run by default ended with, kept in a file beside its study; None if there is none."""
    from pzos.methods.default import foresee, smoothing_radius
    from pzos.stationarity.certificate import CertificateSolver
    from pzos.study.study import Study

    file = path.with_name(f"{path.name}.certificate-{study.queries}")
    delta = smoothing_radius(study.state) if file.exists() else None
    if delta is None:
        return None
    kept = (read_study(file).header or {}).get("identity", {}).get("solver", {})
    solver = CertificateSolver(float(delta), int(kept["directions"]), foresee=foresee(study.task, study.state))
    known = known_at("report", study.known, study.state.x)
    settings: dict[str, Any] = {"seed": study.task.keys.seed, "steps": 1, "monitor": False}
    with Study.open(file, known, solver, read_only=True, **settings) as kept_study:
        found: Certificate | None = getattr(kept_study.state, "report", None)
        return found


def _number(stored: Any) -> Any:
    """Return a setting as it was: real numbers are kept as text."""
    try:
        return float(stored) if isinstance(stored, str) else stored
    except ValueError:
        return stored
