"""The certificate a default run ends with: fresh directions around what the run learned.

The memory of the run, its model of the response, becomes the prediction h of the unbiased estimator
g = h + d (D - h.v) v. However wrong the model is, g stays unbiased; where it is right, little noise is left, and few
directions do.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pzos.base.checks import Faults
from pzos.methods.solver import Task
from pzos.stationarity.bounds import FEWEST
from pzos.stationarity.certificate import Certificate, CertificateSolver
from pzos.stationarity.one_batch import known_at
from pzos.study.study import Study

if TYPE_CHECKING:
    from pzos.answers.oracle import Oracle

#: The fewest queries a certificate needs.
FEWEST_QUERIES = 4 * FEWEST + 1


def ending_certificate(
    task: Task,
    state: Any,
    oracle: Oracle,
    *,
    queries: int | None = None,
    path: str | os.PathLike[str] | None = None,
    spent: int = 0,
) -> Certificate | None:
    """Certify the point a run ended in; None if the followers failed too often there.

    delta is a hundredth of the scale of x that the run found, larger under noise. A durable run keeps the answers in
    ``path``.certificate-N, N the queries ``spent`` before, so that a run that goes on can be certified once more.
    """
    from pzos.methods.default import foresee, smoothing_radius
    from pzos.study.run import drive

    queries = FEWEST_QUERIES if queries is None else queries
    faults = Faults("solve")
    whole = isinstance(queries, int) and not isinstance(queries, bool) and queries >= FEWEST_QUERIES
    faults.check(whole, "certificate", queries, f"a whole number, {FEWEST_QUERIES} or more", "or True or False")
    delta = smoothing_radius(state)
    fits = delta is not None
    faults.check(fits, "certificate", queries, "the default solver", "call result.certify(problem, delta=...)")
    faults.raise_if_any()
    solver = CertificateSolver(float(delta or 0.0), (int(queries) - 1) // 2, foresee=foresee(task, state))
    known = known_at("solve", task.known, state.x)
    settings: dict[str, Any] = {"seed": task.keys.seed, "steps": 1, "monitor": False}
    file = None if path is None else f"{os.fspath(path)}.certificate-{spent}"
    study = Study(known, solver, **settings) if file is None else Study.open(file, known, solver, **settings)
    with study:
        drive(study, oracle, progress=False)
        report: Certificate | None = getattr(study.state, "report", None)
        return report
