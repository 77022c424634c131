"""The one mutable object: a run of a solver, told answers in any order by anyone.

A study never sees the follower. It hands out open queries (``ask``), takes answers (``tell``), and when a batch is
full gathers it by index and lets the solver move. Everything else (``solve``, parallel and durable runs, the
command line, experiments) drives this same object.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Literal, Self, cast

import numpy as np

from pzos.answers.table import Answers
from pzos.base.checks import Faults, one_of
from pzos.base.errors import InvalidAnswer, InvalidInput, InvalidLeader
from pzos.base.keys import Keys
from pzos.base.types import CACHED_SECONDS, Purpose, Query, Response, Vector, all_finite
from pzos.methods.estimators import Plan
from pzos.methods.solver import SOLVER, AnySolver, Certifying, Informed, Outcome, Proposing, State, Stop, Task, begin
from pzos.problem.problem import Known
from pzos.study.admission import check_address, check_answer, check_known, check_same, check_taken
from pzos.study.boundary import Boundary
from pzos.study.collected import Collected, taken_up
from pzos.study.events import Differs, Event, Events, Keeper, Row, closes, difference, event_of, rows_of, usual_answers
from pzos.study.limits import Limits
from pzos.study.result import Ledger, Record, Result, Trace
from pzos.study.rounding import LAST_DIGITS, STEPS_AGAIN, Step, could_move, standing_at
from pzos.study.standing import returned, selection_for

Order = Literal["asked", "told"]
_UNKNOWN = float("nan")
_EMPTY: Vector = np.empty(0)
_KNOWN_BY_SOLVER = (Purpose.ITERATE, Purpose.TRIAL)
_MONITOR = one_of((True, False))
#: Whether answers are taken batch by batch, as they were asked for, or each whenever it is told.
ORDER = one_of(("asked", "told"), "leave it out to wait for every answer of a batch")


class Study(Boundary):
    """Ask and tell, by hand or by a loop; the same bits either way.

    >>> import numpy as np, pzos
    >>> leader = pzos.leader_from_functions(lambda x, y: float(y.sum()), lambda x, y: 0 * x, lambda x, y: 0 * y + 1)
    >>> problem = pzos.Problem(leader, abs, x0=np.ones(2))
    >>> study = pzos.Study(problem.known(), pzos.PZOS(step=0.05, radius=0.1), seed=0, steps=3)
    >>> while not study.done:
    ...     for query in study.ask():
    ...         record = study.tell(query, abs(query.x))
    >>> study.result().queries
    9

    ``monitor`` asks one further query per step where the solver itself does not learn F at its iterate, and one
    at the end; those are counted apart, and against ``queries`` too, which is all that is paid for. Without any limit a
    study ends after 1000 steps. ``answers`` are known before
    the first query, to a solver that can use them. With ``order="told"`` a query is to be had at any time
    (:meth:`ask_one`), from a solver that can propose; any other waits for its batches.
    """

    def __new__(cls, known: Any, solver: Any, *, order: Any = "asked", **_: Any) -> Self:
        """Make the kind of study that takes answers in this order."""
        if order == "told" and isinstance(solver, Proposing):
            from pzos.study.in_any_order import InAnyOrder

            return cast("Self", super().__new__(InAnyOrder))
        return super().__new__(cls)

    def __init__(
        self,
        known: Known,
        solver: AnySolver,
        *,
        seed: int = 0,
        steps: int | None = None,
        queries: int | None = None,
        seconds: float | None = None,
        target: float | None = None,
        failure_rate: float | None = None,
        monitor: bool = True,
        order: Order = "asked",
        answers: Answers | None = None,
    ) -> None:
        faults = Faults("Study")
        SOLVER.note(faults, "solver", solver)
        check_known(faults, known, solver, answers)
        limits = faults.made(Limits, steps, queries, seconds, target, failure_rate)
        keys = faults.made(Keys, seed)
        _MONITOR.note(faults, "monitor", monitor)
        ORDER.note(faults, "order", order)
        faults.raise_if_any()
        self.known = known
        self.limits = limits
        self.monitor = monitor
        self.order: Order = order if isinstance(solver, Proposing) else "asked"
        self.answers, self.configured = answers, solver
        self.solver, self.task = taken_up(solver, Task(known, keys), answers)
        self._keeper: Keeper | None = None
        self._differs: Differs | None = None
        self._replaying = False
        self._replay_limits = replace(limits, seconds=inf)
        self._begin()

    def _begin(self) -> None:
        """Stand at x0, before any query."""
        known = self.known
        self.trace = Trace()
        self.state: State = begin(self.solver, self.task)
        self.queries = 0
        self.monitoring = 0
        self.failures = 0
        self.difference = 0.0
        self._scale = float(np.abs(known.x0).max())  # of all points so far
        self._last = deque[Step](maxlen=STEPS_AGAIN)  # in a replay, which may want to take them again
        self._kept: dict[int, list[Row]] = {}  # what a replay still has for steps to come
        self._aside: dict[int, list[Event]] = {}  # answers to other points, for a solver that can use them
        self._stop: Stop | None = None
        self._finished = False
        self._plan: Plan | None = None
        self._open: list[Query] = []
        self._open_step = -1
        self._answers: list[Response | None] = []
        self._missing = 0
        self._handed_out = set()
        self._step = 0
        self._ledger = Ledger()
        self._response_shape: tuple[int, ...] = ()
        self._final_value = _UNKNOWN
        self._collected = Collected()
        self._selected = selection_for(self.task, self.state)
        self.set_clock(0.0)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        known: Known,
        solver: AnySolver,
        *,
        read_only: bool = False,
        any_version: bool = False,
        **settings: Any,
    ) -> Self:
        """Open the durable study at ``path``, or make it: replay what was told before, keep what is told from now on.

        ``settings`` are those of :class:`Study`; limits may change between sessions, nothing else may. ``read_only``
        looks on while another process writes; ``any_version`` takes a file of another version of pzos if it replays.
        """
        from pzos.durable.replay import attach

        attach(study := cls(known, solver, **settings), path, read_only=read_only, any_version=any_version)
        return study

    # ---- asking -------------------------------------------------------------------------------------------

    def ask(self) -> list[Query]:
        """Return the open queries, none if the study is over. Asking again gives the same, less those answered."""
        if self._kept and not self._missing and not self._replaying:
            self._resume()
        if not self._missing and not self._finished:
            self._open_batch(self._next_plan())
        answers = self._answers
        if self._missing == len(answers):
            return list(self._open)
        return [query for query in self._open if answers[query.index] is None]

    def batch(self) -> list[Query]:
        """Return all queries of the open batch, those already answered included."""
        self.ask()
        return list(self._open)

    def _next_plan(self) -> Plan | None:
        """Return what the solver asks next; None, with the reason noted, where the study ends."""
        self._stop = self._stop or self._limit_reached()
        if self._stop is None:
            plan, budget = self.solver.ask(self.task, self.state), self.limits.queries
            if budget is None:
                return plan
            left, price = budget - self.queries - self.monitoring, self._price_of(plan)
            if price <= left:
                return plan
            rest = plan.first(left - (price - len(plan.points)))
            if rest is not None:
                return rest
            self._stop = Stop.QUERIES
        return None

    def _price_of(self, plan: Plan) -> int:
        """Return how many queries a step takes, with the one at the end where the solver leaves F there unknown."""
        last = self.monitor and self._step > 0 and self._missing_final_value()
        return len(self._batch_of(plan)[0]) + last

    def _limit_reached(self) -> Stop | None:
        limits = self.limits
        if limits.target is not None and self._selected.reaches(limits.target):
            return Stop.TARGET
        reached = limits.reached(*self._counted(), self.elapsed, self.failures, self.monitoring)
        return reached or self.solver.stop(self.task, self.state)

    def _counted(self) -> tuple[int, int]:
        """Return how many steps and queries count against the limits."""
        return self._step, self.queries

    def _open_batch(self, plan: Plan | None) -> None:
        """Hand out what is planned, or end the study."""
        if plan is None:
            self._close_study()
            return
        points, purposes = self._batch_of(plan)
        for point in points:
            point.setflags(write=False)  # read-only: the points are handed out, and nobody may move the iterate
        self._plan, step = plan, self._step
        self._set_open([Query(step, index, point, purposes[index]) for index, point in enumerate(points)])

    def _batch_of(self, plan: Plan) -> tuple[tuple[Vector, ...], tuple[Purpose, ...]]:
        """Return the points to ask about and why: what is planned, and the iterate where it is to be watched."""
        if not plan.purposes:
            raise InvalidInput(
                f"{type(self.solver).__name__}.ask: planned no query at step {self._step}: expected one or more; "
                "let its stop() give a reason to end instead"
            )
        if self.monitor and plan.purposes[0] not in _KNOWN_BY_SOLVER and self._missing_final_value():
            return (*plan.points, self.state.x), (*plan.purposes, Purpose.MONITOR)
        return plan.points, plan.purposes

    def _close_study(self) -> None:
        """End the study; with monitoring, first ask for F at the last iterate if no answer told it."""
        self._plan, budget = None, self.limits.queries
        affordable = budget is None or self.queries + self.monitoring < budget
        if self.monitor and affordable and self._stop is not Stop.INTERRUPTED and self._missing_final_value():
            self.state.x.setflags(write=False)
            self._set_open([Query(self._step, 0, self.state.x, Purpose.MONITOR)])
        else:
            self._finished = True

    def _missing_final_value(self) -> bool:
        return self.state.value != self.state.value

    def _set_open(self, queries: list[Query]) -> None:
        self._collected.take(self._open, self._answers)
        self._open = queries
        self._open_step = self._step if queries else -1
        self._answers = [None] * len(queries)
        self._missing = len(queries)
        if self._keeper is not None and queries:
            self._keeper.asked(queries)

    # ---- telling ------------------------------------------------------------------------------------------

    def _own(self, address: Query | Response) -> Query | None:
        """Return the open query that has this address."""
        known = address.step == self._open_step and 0 <= address.index < len(self._open)
        return self._open[address.index] if known else None

    def receive(self, response: Response) -> Record | None:
        """Take a response as an oracle gives it (its array is kept, not copied, and made read-only).

        The last one of a batch lets the solver move. Whatever can fail comes first, so that an error leaves the study
        as it was.
        """
        shape = self._response_shape
        query = self._admitted(response)
        if query is None:
            return None
        record = None
        if self._missing > 1:
            self._missing -= 1
        else:
            try:
                answers = [None if told is None or told.failure else told.y for told in self._answers]
                record = self._close(self._plan, answers)
            except BaseException:
                if self._open:  # the leader or the solver failed before anything was changed
                    self._answers[query.index], self._response_shape = None, shape
                raise
        if response.failure or response.seconds == CACHED_SECONDS:
            self.failures += bool(response.failure)
            self._ledger.note(query, response)
        return record

    def _admitted(self, response: Response) -> Query | None:
        """Check a response, keep it, and return the query it answers; None if it was told before."""
        index = response.index
        if response.step != self._open_step or not 0 <= index < len(self._open):
            now = f"step {self._open_step} is open" if self._open else "no query is open"
            raise InvalidAnswer(
                f"query {response.step}.{index}: expected an open query ({now}); "
                "tell only answers to queries from the latest ask()"
            )
        told = self._answers[index]
        if told is not None:
            check_same(told, response)
            return None
        y, query = response.y, self._open[index]
        if not response.failure:
            if y.shape != self._response_shape or not all_finite(y):
                check_answer(response, self._response_shape)
            y.setflags(write=False)  # read-only, as the leader is handed this very array
        if self._keeper is not None and not self._replaying:
            if not response.failure:  # a file must not wait until the solver finds fault with it
                check_taken(self.known, self.state.x, query, y)
            self._keeper.append(query, response, self.elapsed)
        if not response.failure:
            self._response_shape = y.shape
        self._answers[index] = response
        return query

    def check(self, response: Response) -> None:
        """Refuse an answer that could not be taken; changes nothing, so that whoever asked may ask once more."""
        if not response.failure:
            check_answer(response, self._response_shape)
            own = self._own(response)
            if own is not None:
                check_taken(self.known, self.state.x, own, response.y)

    def keep_together(self, responses: list[Response]) -> None:
        """Keep answers that came as one, all or none of them; each is still to be received."""
        if self._keeper is not None:
            for response in responses:
                self.check(response)
            self._keeper.append_all([(self._open[told.index], told) for told in responses], self.elapsed)

    def withdraw(self, query: Query | Response, why: str = "") -> None:
        """Take the answer to ``query`` back; its query is open again.

        In a durable study any answer can be taken back. The run starts anew from the answers it does not concern; those
        that were asked for on its ground are known: to a solver that learns from answers anywhere, and to every solver
        that asks at one of their points again. A study in memory remembers the answers of the open batch only.
        """
        check_address(query, self._own)
        if self._keeper is not None:
            left = self._keeper.withdraw(query.step, query.index, why)
            self._begin()
            self.replay(left, self._differs)
            self.keep(self._keeper)
            return
        in_batch = query.step == self._open_step and 0 <= query.index < len(self._open)
        told = self._answers[query.index] if in_batch else None
        if told is None:
            raise InvalidInput(
                f"withdraw: query {query.step}.{query.index}: expected an answered query of the open batch; "
                "a study remembers all its answers if it is durable: pzos.Study.open(path, ...)"
            )
        self._answers[query.index] = None
        self._missing += 1
        if told.failure or told.seconds == CACHED_SECONDS:
            self.failures -= bool(told.failure)
            self._ledger.note(self._open[query.index], told, -1)
        if self._step == 0 and all(other is None or other.failure for other in self._answers):
            self._response_shape = ()

    def _close(self, plan: Plan | None, answers: list[Vector | None]) -> Record | None:
        """Let the solver move: all queries of the batch are answered."""
        try:
            return self._close_final(answers[0]) if plan is None else self._move(plan, answers)
        except InvalidLeader as error:
            raise InvalidLeader(f"step {self._step}: {error}") from error

    def _move(self, plan: Plan, answers: list[Vector | None]) -> Record:
        """Take the solver's next state and keep the record of the step; the last answer may be one to monitor."""
        planned = len(plan.points)
        state, outcome = self.solver.tell(self.task, self.state, plan, answers[:planned])
        value, watched = outcome.value, answers[planned:]
        if watched and watched[0] is not None:
            value = self.known.leader.value(self.state.x, watched[0])
        asked = [query.x for query in self._open] or [*plan.points, self.state.x][: len(answers)]
        self._selected.tell(asked, answers)
        if self._replaying:
            self._last.append(Step(self.state, plan, answers))
        self._set_open([])
        self._ledger.close(plan.purposes)
        self.queries += planned
        self.monitoring += len(watched)
        self.state = state
        if self._aside and isinstance(self.solver, Informed):
            known = [(event.query.x, event.response) for event in self._aside.pop(self._step, ())]
            pairs = [(x, told.y) for x, told in known if told is not None and not told.failure]
            self.state = self.solver.informed(self.task, state, pairs) if pairs else state
        record = self._record(outcome, value)
        self._selected.draw(record)
        self._step += 1
        return record

    def _close_final(self, answer: Vector | None) -> Record | None:
        value = _UNKNOWN if answer is None else self.known.leader.value(self.state.x, answer)
        self._selected.tell([self.state.x], [answer])
        self._set_open([])
        self.monitoring += 1
        self._finished = True
        if answer is None:
            return None
        self._final_value = value
        return self._record(Outcome(self.state.x, value, _UNKNOWN, _UNKNOWN), value)

    def _record(self, outcome: Outcome, value: float) -> Record:
        """Put what is known of a step on record."""
        record = Record(
            self._step,
            outcome.x,
            self.queries,
            self.monitoring,
            value,
            outcome.gradient_norm_squared,
            outcome.step_size,
            self.elapsed,
            self._selected.extras(outcome),
        )
        self.trace.append(record)
        self._selected.consider(record)
        return record

    def begin_with(self, answers: Answers) -> None:
        """Stand before any query with these answers, of which a file kept its own copy."""
        self.answers = answers
        self.solver, self.task = taken_up(self.configured, self.task, answers)
        self._begin()

    # ---- keeping and replaying ----------------------------------------------------------------------------

    def keep(self, keeper: Keeper) -> None:
        """Write every answer from now on to ``keeper`` before it is taken."""
        self._keeper = keeper
        keeper.asked([query for query in self._open if self._answers[query.index] is None])

    def replay(self, events: Iterable[Event], differs: Differs | None = None, *, whole: Limits | None = None) -> float:
        """Rebuild a fresh study from what was kept of it, in any order; returns the largest :attr:`difference`.

        Answers belong to the points they were asked at: where this study computes other bits, the stored point is
        taken. ``differs(asked, stored, difference)`` hears of each such point before, and may raise to refuse it.

        A recovered study may have gaps. Its replay halts at the first one, and goes on by itself when the queries
        there have been answered again: no answer that was kept is ever asked for a second time. The wall-time limit
        is left out (how long it took is no property of the trajectory) until only the closing answer is left; with
        ``whole`` those limits hold instead, which cut off nothing that was kept.
        """
        if whole is not None:
            self._replay_limits = whole
        learns = isinstance(self.solver, Informed)
        for row in rows_of(events):
            if row[-1] is not None and learns:
                self._aside.setdefault(row[-1], []).extend(Events([row]))
            else:
                self._kept.setdefault(row[0], []).append(row)
        self._differs = differs
        self.set_clock(0.0)
        self._resume()
        return self.difference

    def _resume(self) -> None:
        """Tell what was kept of the steps from here on, as far as it goes without a gap."""
        elapsed, limits, self._replaying, self.limits = self.elapsed, self.limits, True, self._replay_limits
        try:
            while (kept := self._kept.pop(self._step, None)) and not self._finished:
                if closes(kept) and not self._goes_on():
                    self.limits = limits
                    self.set_clock(elapsed)
                plan = self._next_plan()
                for row in kept:
                    elapsed = max(elapsed, row[7])
                if plan is not None and self._taken_at_once(plan, kept):
                    continue
                self._open_batch(plan)
                for event in self._recognised(Events(kept)):
                    if event.response is not None:
                        self.set_clock(event.elapsed)
                        self.receive(event.response)
                if self._missing:
                    break
        finally:
            self._replaying, self.limits = False, limits
            self.set_clock(elapsed)
        if self._finished:
            self._kept.clear()

    def _goes_on(self) -> bool:
        """Whether the run itself, and not only what was set aside, has more for steps to come."""
        return any(row[-1] is None for kept in self._kept.values() for row in kept)

    def _taken_at_once(self, plan: Plan, kept: list[Row]) -> bool:
        """Take a step whose answers were kept in order, bit for bit and like those before: the usual case."""
        answers = usual_answers(kept, *self._batch_of(plan), self._response_shape)
        if answers is None:
            return False
        self.set_clock(kept[-1][7])
        self._close(plan, answers)
        self._collected.take_again(kept)
        return True

    def _recognised(self, kept: Sequence[Event]) -> list[Event]:
        """Return what was kept of the open queries, each at its place in the batch, which takes the stored points."""
        found = []
        for index, query in enumerate(self._open):
            event = event_of(query, kept)
            if event is None:
                continue
            stored = event.query.x
            apart = difference(stored, query.x, self._scale)
            if apart:
                if self._differs is not None:
                    self._differs(query, stored, apart)
                self.difference = max(self.difference, apart)
                self._open[index] = query._replace(x=stored)
                if query.x is self.state.x:  # state and plan stand at the stored iterate: no difference adds up
                    self._plan, self.state = standing_at(stored, self._plan, self.state)
            response = event.response and event.response._replace(index=index)
            found.append(event._replace(response=response))
        if self._plan is not None and self.difference:
            points = tuple(query.x for query in self._open[: len(self._plan.points)])
            self._plan = replace(self._plan, points=points)
            self._scale = max(self._scale, *(float(np.abs(point).max()) for point in points))
        return found

    def moved_by_rounding(self, index: int, apart: float) -> bool:
        """Whether rounding alone could move the open query ``index`` as far as ``apart``, in a replay."""
        own = self._plan.points if self._plan is not None else (self.state.x,)
        size, steps = max(LAST_DIGITS, self.difference), list(self._last)
        return could_move(self.solver, self.task, steps, size, own, index, apart, self._scale)

    # ---- result -------------------------------------------------------------------------------------------

    def interrupt(self, stop: Stop = Stop.INTERRUPTED) -> None:
        """End the study here, as on Ctrl-C; answers of the open batch are counted, but not used."""
        if self._finished:
            return
        answered, self.queries, self.monitoring = self._answered()
        self._ledger.close(tuple(query.purpose for query in answered if query.purpose is not Purpose.MONITOR))
        self._stop = stop
        self._finished = True
        self._set_open([])

    def _answered(self) -> tuple[list[Query], int, int]:
        """Return what is answered of the open batch, and with it the counts so far: the algorithm's, monitoring."""
        answered = [query for query, told in zip(self._open, self._answers, strict=True) if told is not None]
        watching = sum(query.purpose is Purpose.MONITOR for query in answered)
        return answered, self.queries + len(answered) - watching, self.monitoring + watching

    def result(self, explanation: str = "") -> Result:
        """Return what is known so far, in arrays of its own; a running study gives a partial result."""
        value = self._final_value if self._missing_final_value() else self.state.value
        x, value, standing = returned(self._selected, self.solver, self.task, self.state, value)
        answered, queries, monitoring = self._answered()
        return Result(
            x=x.copy(),
            value=value,
            best_x=self._selected.best_x.copy(),
            best_value=self._selected.best_value,
            random_x=self._selected.random_x.copy(),
            random_step=self._selected.random_step,
            trace=self.trace.copy(),
            stop=self.stop,
            steps=self._step,
            queries=queries,
            monitoring=monitoring,
            failures=self.failures,
            seconds=self.elapsed,
            seed=self.task.keys.seed,
            sense=self.known.sense,
            problem=self.known.name,
            solver=repr(self.solver),
            explanation=explanation,
            x0=self.known.x0,
            known=self.known,
            told=self._collected.with_open(self._open, self._answers),
            given=self.answers,
            ledger=self._ledger.counts(monitoring, answered),
            certificate=self.solver.certificate(self.state) if isinstance(self.solver, Certifying) else None,
            standing=standing,
        )
