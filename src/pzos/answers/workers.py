"""Worker processes that may die or hang: their work is done again elsewhere, and nothing ever waits for ever.

:class:`Workers` is a ``concurrent.futures.Executor``. Each worker is a process with a family of its own
(:mod:`pzos.answers.processes`), so that a query over its time is ended together with every process it started, and a
driver that is killed leaves no worker behind. The process is watched, not only the pipe to it, which a child that it
has forked may hold open. BLAS and OpenMP run on one thread in a worker: many workers with many threads each are slower,
and their number must not change the last bits of an answer.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import multiprocessing
import os
import queue
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from multiprocessing import connection, reduction
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from pzos.answers.processes import MARK, adopt_orphans, dead_children, dismiss, end_family, enrol, new_mark, start_guard
from pzos.base.checks import Faults, number, one_of, shown, whole
from pzos.base.errors import FollowerFailure, FollowerTimeout, InvalidInput, PzosError
from pzos.base.threads import ONE_THREAD, pin_threads

#: What the time a job may take must be.
TIME_LIMIT = number(lambda seconds: seconds > 0, "seconds, more than 0", "or None for no limit", finite=False).or_none()

_WATCH_SECONDS = 0.1
#: How many workers in a row may die before they take a job up: nothing is wrong with the job.
_NEVER_BEGUN = 20
#: A worker that adopts orphans must not wait for them (they may be its follower's own): every so many jobs it is
#: replaced if it has that many dead children.
_JOBS_BETWEEN_LOOKS, _MOST_DEAD = 100, 50

_environment = threading.Lock()
_open_workers: weakref.WeakSet[Workers] = weakref.WeakSet()


@atexit.register  # runs before multiprocessing waits for its children, which wait for us
def _close_all() -> None:
    for workers in list(_open_workers):
        workers.stop()


class StoppableFuture(Future[Any]):
    """A future whose job can be stopped also while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self._stopped = False
        self.worker: _Worker | None = None

    def is_stopped(self) -> bool:
        """Tell whether nobody waits for the job any more."""
        return self._stopped

    def stop(self) -> None:
        """Cancel the job; if it runs, kill its worker and all that has started."""
        self._stopped = True
        if not self.cancel() and not self.done() and self.worker is not None:
            self.worker.kill()


class _Job(NamedTuple):
    future: StoppableFuture
    payload: bytes


class Workers(Executor):
    """``count`` worker processes.

    ``timeout`` ends a job, and every process it started, after that many seconds (FollowerTimeout); on systems where a
    worker cannot adopt its orphans (all but Linux), one that has left parents, session and environment behind escapes.
    A job whose worker dies at it is given to a fresh one up to ``resubmits`` times; if it kills them all, it fails
    (FollowerFailure). Workers end with the process that made them, also when that is killed.
    """

    def __init__(
        self, count: int, *, timeout: float | None = None, resubmits: int = 5, start_method: str = "spawn"
    ) -> None:
        faults = Faults("Workers")
        whole(1, "try 4").note(faults, "count", count)
        TIME_LIMIT.note(faults, "timeout", timeout)
        whole(0, "try 5").note(faults, "resubmits", resubmits)
        methods = tuple(multiprocessing.get_all_start_methods())
        one_of(methods, "try spawn", f"one of {', '.join(methods)}").note(faults, "start_method", start_method)
        faults.raise_if_any()
        self.count, self.timeout, self.resubmits = count, timeout, resubmits
        self.deaths = 0
        self.alive: set[_Worker] = set()
        self._running: set[StoppableFuture] = set()
        self._context = multiprocessing.get_context(start_method)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()
        _open_workers.add(self)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> StoppableFuture:
        """Have ``fn(*args, **kwargs)`` computed by a worker."""
        if self._closed:
            raise RuntimeError("these workers are closed: make new ones with pzos.Workers(...)")
        future = StoppableFuture()
        self._jobs.put(_Job(future, packed((fn, args, kwargs))))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers once their jobs are done."""
        if self._closed:
            return
        self._closed = True
        if cancel_futures:
            with contextlib.suppress(queue.Empty):
                while (job := self._jobs.get_nowait()) is not None:
                    job.future.cancel()
        for _ in self._threads:
            self._jobs.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def stop(self) -> None:
        """End the workers now, whatever they are at; a program that ends does this for workers it left open."""
        self.shutdown(wait=False, cancel_futures=True)
        for job in list(self._running):
            job.stop()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        """Own one worker process, and replace it when it dies or is ended."""
        worker: _Worker | None = None
        while (job := self._jobs.get()) is not None:
            if not job.future.set_running_or_notify_cancel():
                continue
            self._running.add(job.future)
            worker = self._settle(job, worker)
            self._running.discard(job.future)
        self._end(worker)

    def _end(self, worker: _Worker | None) -> None:
        if worker is not None:
            self.alive.discard(worker)
            worker.end()

    def _started(self) -> _Worker:
        try:
            worker = _Worker(self._context)
        except (RuntimeError, AssertionError) as error:  # multiprocessing refuses: no main guard, a daemonic process
            raise _NotStarted(f"a worker process cannot be started here: {error}") from error
        self.alive.add(worker)
        return worker

    def _settle(self, job: _Job, worker: _Worker | None) -> _Worker | None:
        """Get the job done, whatever it takes, and return the worker that is left."""
        deaths = never_begun = 0
        while deaths <= self.resubmits and never_begun <= _NEVER_BEGUN:
            if job.future.is_stopped():
                job.future.set_exception(CancelledError())
                return worker
            try:
                if worker is None:
                    worker = self._started()
                job.future.worker = worker
                if job.future.is_stopped():  # while its worker was being started
                    continue
                ok, value = worker.ask(job.payload, self.timeout)
            except (InvalidInput, _NotStarted) as error:
                job.future.set_exception(error)
                return None
            except _NeverBegun:  # it died idle, or while it was started: no fault of this job
                self._end(worker)
                worker = None
                never_begun += 1
            except (EOFError, OSError):
                self._end(worker)
                worker = None
                deaths += 1
                self.deaths += not job.future.is_stopped()
            except FollowerTimeout as error:
                self._end(worker)
                job.future.set_exception(error)
                return None
            else:
                if ok:
                    job.future.set_result(value)
                else:
                    job.future.set_exception(value)
                return worker
        job.future.set_exception(
            FollowerFailure(
                f"the worker process died {deaths} times on this query; call your follower by hand at that x to see why"
                if deaths > self.resubmits
                else f"{never_begun} worker processes died before they took this query up; is there memory enough?"
            )
        )
        return None


class _NotStarted(PzosError, RuntimeError):
    """Worker processes cannot be started from this process."""


class _NeverBegun(Exception):
    """A worker died before it took the job up."""


class _Worker:
    """One worker process and the pipe to it."""

    def __init__(self, context: Any) -> None:
        self.mark = new_mark()
        self.pipe, theirs = context.Pipe()
        with one_thread_environment():
            start_guard()  # not while a worker is forked, which would hold the pipes it is started with
            self.process: BaseProcess = context.Process(target=work, args=(theirs, self.mark), daemon=False)
            self.process.start()
        self.process_id = int(self.process.pid or 0)
        enrol(self.process_id, self.mark)
        theirs.close()
        try:
            self._received(None)
        except (EOFError, OSError) as error:
            raise self._stillbirth() from error

    def _stillbirth(self) -> Exception:
        """Return why there is no worker: it was killed (another may live), or failed by itself."""
        self.process.join()
        code = self.process.exitcode
        self.end()
        if code is not None and code < 0:
            return _NeverBegun()
        return InvalidInput(
            f"a worker process ended before it was ready (exit code {code}): put what your script "
            'runs under  if __name__ == "__main__":  so that a worker can import it'
        )

    def ask(self, payload: bytes, timeout: float | None) -> tuple[bool, Any]:
        """Return what the job gave; EOFError or OSError: the process died at it; FollowerTimeout: it took too long."""
        until = None if timeout is None else time.monotonic() + timeout
        begun = None
        try:
            self.pipe.send_bytes(payload)
            begun = self._received(until)
            ok, value = self._received(until)
        except FollowerTimeout:
            raise FollowerTimeout(f"no answer within {timeout:g} s: the work was stopped; give it more time?") from None
        except (EOFError, OSError) as error:
            if begun is None:
                raise _NeverBegun from error
            raise
        return bool(ok), value

    def _received(self, until: float | None) -> Any:
        """Wait for a message of the process as long as it lives."""
        while not self.pipe.poll(_WATCH_SECONDS if until is None else min(_WATCH_SECONDS, until - time.monotonic())):
            if not self.process.is_alive() and not self.pipe.poll():
                raise EOFError
            if until is not None and time.monotonic() >= until:
                raise FollowerTimeout
        return self.pipe.recv()

    def kill(self) -> None:
        """Kill the process and every process it started."""
        end_family(self.process_id, self.mark)

    def end(self) -> None:
        """Kill, and clear away what is left of it here."""
        self.kill()
        dismiss(self.process_id)
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()


def work(pipe: connection.Connection, mark: str) -> None:
    """Do jobs until the pipe closes; the life of a worker process."""
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver, which ends its workers
    os.environ[MARK] = mark
    adopt_orphans()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=pipe.close)  # a child must neither hold it open nor speak into it
    pin_threads()
    with contextlib.suppress(EOFError, ConnectionError):  # the driver is gone
        pipe.send("ready")
        for number in itertools.count(1):
            payload = pipe.recv_bytes()
            pipe.send("taken up")
            try:
                job = reduction.ForkingPickler.loads(payload)
            except Exception as error:  # noqa: BLE001  # unpickling runs the follower's own code
                pipe.send((False, InvalidInput(f"a worker cannot find the follower ({error}); {_IMPORTABLE}")))
            else:
                pipe.send(outcome(*job))
            if number % _JOBS_BETWEEN_LOOKS == 0 and dead_children() > _MOST_DEAD:
                return


def outcome(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, Any]:
    """Do a job; return (True, its value) or (False, its error), either in a form that reaches another process."""
    try:
        value = function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  # whatever a job raises belongs to the one who submitted it
        return False, error if _travels(error) else FollowerFailure(f"{type(error).__name__}: {error}")
    if not _travels(value):
        return False, FollowerFailure(f"the answer {shown(value)} cannot be sent back: return a 1-D array")
    return True, value


def _travels(value: Any) -> bool:
    try:
        reduction.ForkingPickler.loads(reduction.ForkingPickler.dumps(value))
    except Exception:  # noqa: BLE001  # pickling runs the value's own code, which may raise anything
        return False
    return True


_IMPORTABLE = (
    "define it at the top level of a module that workers can import (no lambda, no function inside a function), "
    "open files and connections inside it, or use a ThreadPoolExecutor, which needs no copy"
)


def packed(job: Any) -> bytes:
    """Return a job in the form it travels to another process; InvalidInput says what to do if it cannot."""
    try:
        return bytes(reduction.ForkingPickler.dumps(job))
    except Exception as error:  # pickling runs the follower's own code, which may raise anything
        raise cannot_be_sent(error) from error


def cannot_be_sent(error: BaseException) -> InvalidInput:
    """Return the error that says what to do about a follower that cannot be pickled."""
    return InvalidInput(f"the follower cannot be sent to another process ({error}); {_IMPORTABLE}")


@contextlib.contextmanager
def one_thread_environment() -> Iterator[None]:
    """Let a process started meanwhile find one thread per numerical library in its environment."""
    with _environment:
        before = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update(ONE_THREAD)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
