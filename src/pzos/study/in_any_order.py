"""A study that never waits: one query at a time is handed out, and an answer is taken whenever it comes.

Every query has a number of its own (``step``; its ``index`` is 0). The state is a fold over what happened: a query was
issued, an answer was told. What is issued is a function of the answers so far and of the queries that are open, so the
order of both, which the file of a durable study keeps, gives the same bits again, for any number of workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from pzos.base.errors import InvalidAnswer, InvalidInput, InvalidLeader
from pzos.base.types import CACHED_SECONDS, Query, Response, Vector
from pzos.methods.estimators import Plan
from pzos.methods.solver import Informed, Stop
from pzos.study.admission import check_answer, check_same, check_taken
from pzos.study.events import AT_ONCE, Differs, Event, Keeper, difference
from pzos.study.limits import Limits
from pzos.study.result import Record
from pzos.study.rounding import LAST_DIGITS, STEPS_AGAIN, WITHIN_REACH, Step, shaken_proposals
from pzos.study.study import Study


class _Issued(NamedTuple):
    """A query that is out, and what the solver needs to read its answer."""

    query: Query
    plan: Plan


class InAnyOrder(Study):
    """``Study(..., order="told")`` for a solver that can propose."""

    solver: Any  # it proposes

    def _begin(self) -> None:
        super()._begin()
        self._out: dict[int, _Issued] = {}
        self._issued = 0
        self._told: dict[int, Response] = {}
        self._taken = deque[Step](maxlen=STEPS_AGAIN)

    # ---- asking -------------------------------------------------------------------------------------------

    def ask(self) -> list[Query]:
        """Return the open queries; if there are none, one more is issued unless the study is over."""
        if not self._out:
            self.ask_one()
        return [] if self._finished else [issued.query for issued in self._out.values()]

    def batch(self) -> list[Query]:
        """Return the open queries."""
        return self.ask()

    def ask_one(self) -> Query | None:
        """Issue one more query, however many are open; None if there is nothing more to ask.

        Then the study ends with the last answer that is still to come; only a target that is reached ends it at once.
        """
        if self._finished:
            return None
        self._stop = self._stop or self._limit_reached()
        if self._stop is not None:
            self._finished = not self._out
            return None
        plan = self.solver.propose(self.task, self.state, [issued.plan for issued in self._out.values()])
        (x,), (purpose,) = plan.points, plan.purposes
        x.setflags(write=False)
        query = Query(self._issued, 0, x, purpose)
        if self._keeper is not None and not self._replaying:
            self._keeper.issued(query)
        self._out[query.step] = _Issued(query, plan)
        self._issued += 1
        return query

    def _counted(self) -> tuple[int, int]:
        return self._issued, self._issued

    def _own(self, address: Query | Response) -> Query | None:
        issued = self._out.get(address.step) if address.index == 0 else None
        return None if issued is None else issued.query

    # ---- telling ------------------------------------------------------------------------------------------

    def receive(self, response: Response) -> Record | None:
        """Take a response; whatever can fail comes first, so that an error leaves the study as it was."""
        told = self._told.get(response.step) if response.index == 0 else None
        if told is not None:
            check_same(told, response)
            return None
        query = self._own(response)
        if query is None:
            now = f"open are {', '.join(f'{step}.0' for step in self._out)}" if self._out else "no query is open"
            raise InvalidAnswer(
                f"query {response.step}.{response.index}: expected an open query ({now}); "
                "tell only answers to queries that were asked"
            )
        if not response.failure:
            check_answer(response, self._response_shape)
            response.y.setflags(write=False)
            if self._keeper is not None and not self._replaying:
                check_taken(self.known, self.state.x, query, response.y)
        answer = None if response.failure else response.y
        plan = self._out[query.step].plan
        try:
            state, outcome = self.solver.take(self.task, self.state, plan, answer)
        except InvalidLeader as error:
            raise InvalidLeader(f"query {query.step}.0: {error}") from error
        if self._keeper is not None and not self._replaying:
            self._keeper.append(query, response, self.elapsed)
        if self._replaying:
            self._taken.append(Step(self.state, plan, (answer,)))
        del self._out[query.step]
        self._told[query.step] = response
        self._response_shape = self._response_shape if answer is None else answer.shape
        self.failures += bool(response.failure)
        self._ledger.close(plan.purposes)
        if response.failure or response.seconds == CACHED_SECONDS:
            self._ledger.note(query, response)
        self._selected.tell([query.x], [answer])
        self._collected.take([query], [response])
        self.queries += 1
        self.state = state
        self._inform(query.step)
        self._inform()
        record = self._record(outcome, outcome.value)
        self._selected.draw(record)
        self._step += 1
        if self.limits.target is not None and self._selected.reaches(self.limits.target):
            self._stop, self._finished = Stop.TARGET, True
        return record

    def _inform(self, step: int = AT_ONCE) -> None:
        """Tell the solver what was set aside when the answer to this query had been taken back, or at a damage."""
        if step == AT_ONCE and self._missing_final_value():
            return
        known = [(event.query.x, event.response) for event in self._aside.pop(step, ())]
        pairs = [(x, told.y) for x, told in known if told is not None and not told.failure]
        if pairs and isinstance(self.solver, Informed):
            self.state = self.solver.informed(self.task, self.state, pairs)

    def withdraw(self, query: Query | Response, why: str = "") -> None:
        """Take the answer to ``query`` back; what was asked after it was told is set aside, and known from then on."""
        if self._keeper is None:
            raise InvalidInput(
                f"withdraw: query {query.step}.{query.index}: expected a durable study, which remembers in which order "
                "answers came: pzos.Study.open(path, ...)"
            )
        super().withdraw(query, why)

    # ---- keeping and replaying ----------------------------------------------------------------------------

    def keep(self, keeper: Keeper) -> None:
        """Write every query and every answer from now on to ``keeper``."""
        self._keeper = keeper

    def replay(self, events: Iterable[Event], differs: Differs | None = None, *, whole: Limits | None = None) -> float:
        """Rebuild a fresh study from what was kept of it, in the order in which it was; returns the difference."""
        if whole is not None:
            self._replay_limits = whole
        self._differs = differs
        elapsed, limits, self._replaying, self.limits = 0.0, self.limits, True, self._replay_limits
        try:
            for event in events:
                if event.aside is not None:
                    self._aside.setdefault(event.aside, []).append(event)
                    continue
                self._inform()
                elapsed = max(elapsed, event.elapsed)
                if not self._goes_along(event):
                    break
            self._inform()
        finally:
            self._replaying, self.limits = False, limits
            self._stop = self._stop if self._finished else None  # a limit may have been raised since
            self.set_clock(elapsed)
        return self.difference

    def _goes_along(self, event: Event) -> bool:
        """Do once more what an event says; False if a limit ends the study there."""
        step = event.query.step
        if self._finished:
            return False
        if step > self._issued or (step < self._issued and step not in self._out and step not in self._told):
            raise InvalidInput(f"query {step}.0: expected what was issued before it; the study has lost events")
        if step == self._issued:
            asked = self.ask_one()
            if asked is None:
                return False
            self._stand_at(asked, event.query.x)
        if event.response is not None and step not in self._told:
            self.set_clock(event.elapsed)
            self.receive(event.response)
        return True

    def _stand_at(self, asked: Query, stored: Vector) -> None:
        """Take the point that was stored, to which the answer belongs, where this machine computes another."""
        apart = difference(stored, asked.x, self._scale)
        if not apart:
            return
        if self._differs is not None:
            self._differs(asked, stored, apart)
        self.difference = max(self.difference, apart)
        plan: Any = self._out[asked.step].plan
        self._out[asked.step] = _Issued(asked._replace(x=stored), replace(plan, points=(stored,)))

    def moved_by_rounding(self, index: int, apart: float) -> bool:
        """Whether rounding alone could move the query that was issued last as far as ``apart``, in a replay."""
        *pending, last = self._out.values()
        size, plans = max(LAST_DIGITS, self.difference), [issued.plan for issued in pending]
        shaken = shaken_proposals(self.solver, self.task, list(self._taken), self.state, plans, size)
        return any(difference(x, last.query.x, self._scale) > WITHIN_REACH * apart for x in shaken)
