"""A sampler for Optuna (extra ``optuna``): trials are queries, and what the followers did is an attribute of the trial.

The objective has the followers answer, says so with ``trial.set_user_attr("y", [...])`` and returns the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pzos.base.checks import Faults
from pzos.base.errors import InvalidInput, MissingExtra
from pzos.base.types import Query
from pzos.methods.default import choose
from pzos.problem.follower import Nobody
from pzos.problem.leader import Leader
from pzos.problem.plain_cost import leader_from_cost
from pzos.problem.problem import Problem
from pzos.problem.sets import box_of
from pzos.study.study import Study

try:
    import optuna
except ImportError as error:
    raise MissingExtra("optuna", "optuna", "pzos.integrations.optuna") from error

_ELSEWHERE = Nobody("the followers are asked by the objective that Optuna calls")
#: More than anyone will ask: how many trials there are is Optuna's to say.
_UNLIMITED = 10**9


class PzosSampler(optuna.samplers.BaseSampler):
    """Trials at the points where pzos asks: ``optuna.create_study(sampler=PzosSampler(cost, {"price": (0, 8)}))``.

    ``cost(x, y)`` is the known cost, x the parameters of ``space`` (bounds by name) in its order, y what the objective
    leaves in the trial's user attribute "y". The start is the middle of the bounds unless ``x0`` is given. A trial that
    fails is a query without an answer; when pzos can improve no further it stops the study. Parameters outside of
    ``space`` are left to an independent sampler.
    """

    def __init__(
        self,
        cost: Leader | Callable[[Any, Any], Any],
        space: Mapping[str, tuple[float, float]],
        *,
        x0: npt.ArrayLike | None = None,
        seed: int = 0,
    ) -> None:
        faults = Faults("PzosSampler")
        named = isinstance(space, Mapping) and len(space) > 0
        box = None
        if faults.check(named, "space", space, "bounds by name", 'try {"price": (0, 8)}'):
            box = box_of(faults, list(space.values()))
        faults.raise_if_any()
        self._leader = cost if isinstance(cost, Leader) else leader_from_cost(cost)
        self._space, self._box, self._seed = dict(space), box, seed
        self._x0 = x0 if x0 is not None or box is None else 0.5 * (box.lower + box.upper)
        self._independent = optuna.samplers.RandomSampler(seed=seed)
        self._asked: dict[int, Query] = {}
        self.study: Study | None = None

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        """Return the parameters pzos decides on."""
        return {name: optuna.distributions.FloatDistribution(*map(float, ends)) for name, ends in self._space.items()}

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
        """Return the next point to ask about."""
        if self.study is None:
            sense = "max" if study.direction == optuna.study.StudyDirection.MAXIMIZE else "min"
            known = Problem(self._leader, _ELSEWHERE, self._x0, self._box, sense).known()  # type: ignore[arg-type]
            self.study = Study(known, choose(known)[0], seed=self._seed, queries=_UNLIMITED, order="told")
        query = self.study.ask_one()
        if query is None:
            study.stop()
            x = self.study.result().x
        else:
            self._asked[trial.number], x = query, query.x
        return dict(zip(self._space, map(float, x), strict=True))

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        """Return a parameter that pzos does not decide on."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
        """Take what the followers did."""
        query = self._asked.pop(trial.number, None)
        if query is None or self.study is None:
            return
        if state != optuna.trial.TrialState.COMPLETE:
            self.study.fail(query, f"trial {trial.number} ended as {state.name.lower()}")
            return
        if "y" not in trial.user_attrs:
            raise InvalidInput(
                f'PzosSampler: trial {trial.number} has no user attribute "y": expected what the followers did; call '
                'trial.set_user_attr("y", [...]) in the objective'
            )
        self.study.tell(query, np.asarray(trial.user_attrs["y"], dtype=np.float64))
