"""Where queries and runs are computed: any ``concurrent.futures.Executor``, or a Dask cluster, whose workers may die.

:func:`as_executor` turns what a user has (an executor, a ``distributed.Client``, the address of a scheduler, a number
of processes) into an executor that does lost work again, and never hangs.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, InvalidStateError
from functools import partial
from typing import Any, NamedTuple

from pzos.answers.crew import size_of
from pzos.answers.workers import Workers, outcome, packed
from pzos.base.checks import shown
from pzos.base.errors import FollowerFailure, InvalidInput, MissingExtra, PzosError
from pzos.base.threads import pin_threads

_RESUBMITS = 20
_WATCH_SECONDS = 1.0
_GATHER_SECONDS = 0.0005
_SHORT_SECONDS = 0.2
#: Dask shows pages about its scheduler and workers also without a dashboard.
_NO_PAGES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}


def as_executor(place: Any, *, timeout: float | None = None) -> Executor:
    """Return an executor for ``place``.

    A whole number means that many :class:`pzos.Workers`; text is the address of a Dask scheduler (``"local:4"`` starts
    a cluster of 4 worker processes here); a ``distributed.Client`` and any executor are taken as they are.
    """
    if isinstance(place, Executor):
        return place
    if isinstance(place, int) and not isinstance(place, bool):
        return Workers(place, timeout=timeout)
    if isinstance(place, str) or type(place).__module__.startswith("distributed."):
        return DaskExecutor(place)
    wanted = "an executor, a Dask client or address, or a number of workers"
    raise InvalidInput(f"as_executor: place = {shown(place)}: expected {wanted}; try 4")


class _Call(NamedTuple):
    """What to compute."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _Sent(NamedTuple):
    """A job on its way, for whom it is done, and how often it was lost."""

    outer: Future[Any]
    job: _Call
    lost: int


class _Bundle:
    """Jobs that Dask takes as one thing, without looking for tasks inside their arguments.

    It pins the threads of the worker it comes to, which may have been started a moment ago in place of a dead one.
    """

    def __init__(self, calls: list[_Call], *, pinned: bool) -> None:
        self.calls, self.pinned = calls, pinned

    def compute(self) -> list[tuple[bool, Any, float]]:
        """Return for each job whether it went well, its value or error, and how many seconds it took."""
        if self.pinned:
            pin_threads()
        done = []
        for call in self.calls:
            start = time.perf_counter()
            good, value = outcome(*call)
            done.append((good, value, time.perf_counter() - start))
        return done


def _refusal(job: _Call, error: Exception) -> Exception:
    """Return why a job could not be sent; Dask packs by its own means, and where they fail ours say what to do."""
    try:
        packed(tuple(job))
    except InvalidInput as advice:
        return advice
    return FollowerFailure(f"dask: the query could not be sent ({type(error).__name__}: {error}); is the scheduler up?")


def _give(outer: Future[Any], value: Any = None, error: BaseException | None = None) -> None:
    """Settle a future, unless it was given up meanwhile."""
    with contextlib.suppress(InvalidStateError):
        if error is None:
            outer.set_result(value)
        else:
            outer.set_exception(error)


class _Resubmitting(Executor):
    """An executor on top of another one that gives lost jobs to it again.

    A job that is lost in company may be innocent: another one may have killed the worker, or the pool. So the last try
    is done alone, and only one that is lost alone fails.
    """

    def __init__(self, resubmits: int) -> None:
        self.resubmits = resubmits
        self.resubmitted = 0
        self._lock = threading.Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have ``fn(*args, **kwargs)`` computed, however many workers die over it (up to a limit)."""
        outer: Future[Any] = Future()
        outer.set_running_or_notify_cancel()  # from here on only this executor settles it
        self._start(outer, _Call(fn, args, kwargs), 0)
        return outer

    def _start(self, outer: Future[Any], job: _Call, lost: int) -> None:
        raise NotImplementedError

    def _is_last(self, lost: int) -> bool:
        return lost >= max(self.resubmits, 1)

    def _lost(self, outer: Future[Any], job: _Call, lost: int, error: BaseException) -> None:
        if self._is_last(lost):
            message = f"the query was lost with its worker {lost + 1} times ({error}); is it what kills them?"
            _give(outer, error=FollowerFailure(message))
            return
        with self._lock:
            self.resubmitted += 1
        self._start(outer, job, lost + 1)


class Renewed(_Resubmitting):
    """Any executor whose workers may die, made by ``factory``; a broken one is replaced and its jobs are done again.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with Renewed(lambda: ThreadPoolExecutor(2)) as executor:
    ...     executor.submit(abs, -3).result()
    3
    """

    def __init__(self, factory: Callable[[], Executor], *, resubmits: int = _RESUBMITS) -> None:
        super().__init__(resubmits)
        self._factory = factory
        self._executor = factory()
        self._one_alone = threading.Lock()

    @property
    def size(self) -> int:
        """Return how many workers there are."""
        return size_of(self._executor)

    def _start(self, outer: Future[Any], job: _Call, lost: int) -> None:
        if self._is_last(lost):
            self._try_alone(outer, job, lost)
            return
        used = self._executor
        try:
            inner = used.submit(job.function, *job.args, **job.kwargs)
        except BrokenExecutor:
            used = self._renew(used)
            inner = used.submit(job.function, *job.args, **job.kwargs)
        inner.add_done_callback(lambda done: self._settle(outer, job, lost, done, used))

    def _try_alone(self, outer: Future[Any], job: _Call, lost: int) -> None:
        """Do the job on an executor of its own, one such job after the other."""
        with self._one_alone:
            executor = self._factory()
            try:
                _give(outer, executor.submit(job.function, *job.args, **job.kwargs).result())
            except BrokenExecutor as error:
                self._lost(outer, job, lost, error)
            except BaseException as error:  # noqa: BLE001  # whatever a job raises belongs to the one who submitted it
                _give(outer, error=error)
            finally:
                executor.shutdown(wait=False)

    def _settle(self, outer: Future[Any], job: _Call, lost: int, inner: Future[Any], used: Executor) -> None:
        error = CancelledError() if inner.cancelled() else inner.exception()
        if error is None:
            outer.set_result(inner.result())
        elif isinstance(error, BrokenExecutor):
            self._renew(used)
            # a callback runs in the broken pool's own thread, which must not wait for the new one
            threading.Thread(target=self._lost, args=(outer, job, lost, error), daemon=True).start()
        else:
            outer.set_exception(error)

    def _renew(self, broken: Executor) -> Executor:
        with self._lock:
            if self._executor is broken:
                broken.shutdown(wait=False)
                self._executor = self._factory()
            return self._executor

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut the present executor down."""
        self._executor.shutdown(wait=wait, cancel_futures=cancel_futures)


class DaskExecutor(_Resubmitting):
    """A Dask cluster as an executor.

    ``client`` is a ``distributed.Client``, the address of a scheduler, or ``"local:4"`` for a cluster of 4 worker
    processes that only this machine can reach, without a dashboard (for one, give a client of your own). Dask gives up
    on a job after a few of its workers died; here it is submitted again. A cluster that loses workers for good is
    scaled up again if it can be; one that has none left for ``patience`` seconds fails its jobs instead of letting them
    wait for ever. Jobs submitted within a moment travel as one message, and short ones (so far below a fifth of a
    second) as one bundle per worker: what Dask does costs milliseconds each time.
    """

    def __init__(self, client: Any, *, resubmits: int = _RESUBMITS, patience: float = 120.0) -> None:
        super().__init__(resubmits)
        self.patience = patience
        self._distributed = _imported()
        self._owned: list[Any] = []
        self.client = self._connected(client) if isinstance(client, str) else client
        lost = (self._distributed.scheduler.KilledWorker, self._distributed.CancelledError, CancelledError)
        self._signs_of_loss: tuple[type[BaseException], ...] = (*lost, OSError)
        self._waiting: set[Future[Any]] = set()
        self._held: set[Any] = set()  # Dask gives up a job nobody holds
        self._spent: list[Any] = []
        self._later: list[_Sent] = []
        self._secluded = False  # the job that is out is the only one
        self._typical = math.inf  # seconds of a job, unknown before the first
        # what one thread does in turn: send jobs that were submitted, fetch bundles that were computed
        self._inbox: queue.SimpleQueue[_Sent | tuple[list[_Sent], Any]] = queue.SimpleQueue()
        self._over = threading.Event()
        self._slots = 0
        self._wanted = self._worker_count()
        self._seen = time.monotonic()  # when there was a worker, or nothing for one to do
        self._pinned = not _in_this_process(self.client)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def size(self) -> int:
        """Return how many jobs the cluster's workers do at a time, as far as was seen lately; at least one."""
        return max(self._slots, 1)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have ``fn(*args, **kwargs)`` computed on the cluster."""
        outer = super().submit(fn, *args, **kwargs)
        self._waiting.add(outer)
        outer.add_done_callback(self._waiting.discard)
        return outer

    def _start(self, outer: Future[Any], job: _Call, lost: int) -> None:
        self._inbox.put(_Sent(outer, job, lost))

    def _serve(self) -> None:
        """Send and fetch, as many at a time as there are, and look after the workers once a second."""
        looked = time.monotonic()
        while not self._over.is_set():
            come: list[Any] = []
            with contextlib.suppress(queue.Empty):
                come.append(self._inbox.get(timeout=_WATCH_SECONDS))
                time.sleep(_GATHER_SECONDS)  # the queries of a batch come one right after the other
                while True:
                    come.append(self._inbox.get_nowait())
            self._collect([item for item in come if not isinstance(item, _Sent) and item[0]])
            self._dispatch([item for item in come if isinstance(item, _Sent)])
            if time.monotonic() - looked >= _WATCH_SECONDS:
                self._look_after_workers()
                looked = time.monotonic()

    def _worker_count(self) -> int:
        try:
            workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
            self._slots = sum(worker["nthreads"] for worker in workers)
            return len(workers)
        except Exception:  # noqa: BLE001  # whatever keeps the scheduler from answering: there are no workers for us
            return 0

    def _look_after_workers(self) -> None:
        count = self._worker_count()
        cluster: Any = getattr(self.client, "cluster", None) or next(iter(self._owned[1:]), None)
        if count < self._wanted and hasattr(cluster, "scale"):
            cluster.scale(self._wanted)
        if count > 0 or not self._waiting:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > self.patience:
            for outer in list(self._waiting):
                message = f"dask: no worker for {self.patience:g} s; start workers and resume the study"
                _give(outer, error=FollowerFailure(message))

    def _connected(self, address: str) -> Any:
        distributed = self._distributed
        if address.startswith("local:"):
            count = address.removeprefix("local:")
            if not count.isdigit() or int(count) < 1:
                raise InvalidInput(f"DaskExecutor: client = {address!r}: expected local:N, N workers; try local:4")
            import dask

            with dask.config.set(_NO_PAGES):
                cluster = distributed.LocalCluster(  # for this machine alone, and without a dashboard
                    n_workers=int(count),
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                )
            self._owned.append(cluster)
            address = cluster.scheduler_address
        try:
            if not address.startswith("inproc:") and not address.rpartition(":")[2].isdigit():
                raise ValueError("it has no port")  # Dask would find that too late, with a client half made
            client = distributed.Client(address, timeout=min(10.0, self.patience), set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise PzosError(
                f"dask: no scheduler answers at {address!r} ({error}); start one with `dask scheduler`, "
                'and give its address, e.g. "tcp://127.0.0.1:8786"'
            ) from error
        self._owned.insert(0, client)
        return client

    def _dispatch(self, together: list[_Sent]) -> None:
        """Send what was submitted; short jobs as one bundle per worker, a last try when nothing else is out."""
        self._later += together
        last = [sent for sent in self._later if self._is_last(sent.lost)][:1]
        if not self._later or (self._held and (last or self._secluded)):
            return
        self._secluded = bool(last)
        now = last or self._later
        self._later = [sent for sent in self._later if all(sent is not other for other in now)]
        fresh = [sent for sent in now if not sent.lost]
        bundles = [[sent] for sent in fresh]
        if self._typical < _SHORT_SECONDS and 0 < self._slots < len(fresh):
            bundles = [fresh[slot :: self._slots] for slot in range(self._slots)]
        self._send(bundles + [[sent] for sent in now if sent.lost])

    def _send(self, bundles: list[list[_Sent]]) -> None:
        try:
            jobs = [_Bundle([sent.job for sent in bundle], pinned=self._pinned) for bundle in bundles]
            inner = self.client.map(_Bundle.compute, jobs, pure=False)
        except Exception as error:  # noqa: BLE001  # packing runs the follower's own code, which may raise anything
            alone = [[sent] for bundle in bundles for sent in bundle]
            if len(alone) > 1:  # find the one that cannot travel
                for one in alone:
                    self._send([one])
            else:
                _give(alone[0][0].outer, error=_refusal(alone[0][0].job, error))
            return
        self._held.update(inner)
        self._spent.clear()  # only now: what Dask sends to release them must not delay the jobs
        for future, bundle in zip(inner, bundles, strict=True):
            future.add_done_callback(partial(self._note, bundle))

    def _note(self, bundle: list[_Sent], inner: Any) -> None:
        self._inbox.put((bundle, inner))  # in Dask's only thread for callbacks, which must not be kept

    def _collect(self, together: list[tuple[list[_Sent], Any]]) -> None:
        """Fetch what has been computed, all in one message if nothing was lost."""
        finished = [inner for _, inner in together if inner.status == "finished"]
        values: list[Any] = []
        if finished:
            with contextlib.suppress(Exception):  # an answer was lost with its worker: fetch each by itself
                values = self.client.gather(finished)
        known = dict(zip(finished, values, strict=False))
        for bundle, inner in together:
            try:
                self._pass_on(bundle, known[inner] if inner in known else inner.result())
            except BaseException as error:  # noqa: BLE001  # whatever Dask says of the bundle: mostly that it was lost
                for sent in bundle:
                    if isinstance(error, self._signs_of_loss) and not sent.outer.done():
                        self._lost(*sent, error)
                    else:
                        _give(sent.outer, error=error)
            self._held.discard(inner)
            self._spent.append(inner)

    def _pass_on(self, bundle: list[_Sent], outcomes: list[tuple[bool, Any, float]]) -> None:
        for sent, (good, value, seconds) in zip(bundle, outcomes, strict=True):
            self._typical = seconds if math.isinf(self._typical) else 0.8 * self._typical + 0.2 * seconds
            _give(sent.outer, value if good else None, None if good else value)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Close what this executor opened itself; a client it was given stays open."""
        self._over.set()
        self._inbox.put(([], None))  # something to wake up for
        self._thread.join()
        self._spent.clear()
        for owned in self._owned:
            owned.close()
        self._owned.clear()


def _in_this_process(client: Any) -> bool:
    """Tell whether the workers are threads of this very process, whose libraries are not ours to pin."""
    return any(address.startswith("inproc:") for address in client.scheduler_info(n_workers=-1)["workers"])


def _imported() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtra("distributed", "dask", "a Dask cluster") from error
    return distributed
