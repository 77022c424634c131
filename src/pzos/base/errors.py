"""The exceptions of the package. Each message says what is wrong, where, and what to do about it."""

from __future__ import annotations

from typing import Any


class PzosError(Exception):
    """Base class of every error this package raises on purpose.

    One that ends a run carries the table of all answers so far, ``answers``, with which another run can begin.
    """

    answers: Any = None


class InvalidInput(PzosError, ValueError):
    """What the caller gave cannot be used; the message lists every fault found, and so does ``faults``."""

    faults: tuple[str, ...] = ()


class InvalidAnswer(PzosError, ValueError):
    """An answer told to a study cannot be taken (stale, changed, wrong shape, not finite)."""


class InvalidLeader(PzosError, ValueError):
    """The leader returned something that is not a value with two partial gradients in float64."""


class FollowerFailure(PzosError, RuntimeError):
    """The followers did not answer a query: what is told of it, and the ``remedy`` in Python."""

    def __init__(self, told: str = "", remedy: str = "") -> None:
        super().__init__(told, remedy)  # both, so that it can be made again in another process
        self.told = told
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.told}; {self.remedy}" if self.remedy else self.told


class FollowerTimeout(FollowerFailure):
    """The followers took longer than they were given; the work was stopped."""


class NotConverged(PzosError, RuntimeError):
    """An equilibrium was not reached to the accuracy asked for; the message says how far it got."""


class StudyFileError(PzosError):
    """A study file cannot be used as it is; ``exit_code`` is what the command line returns."""

    exit_code = 2


class DifferentStudy(StudyFileError, ValueError):
    """The file holds another study than the one asked for; the message names every difference."""

    exit_code = 3


class DamagedStudy(StudyFileError):
    """The file is torn, truncated or changed; the message says what can be saved, and how."""

    exit_code = 4


class StudyBusy(StudyFileError):
    """Another process is writing to the study; the message names it."""

    exit_code = 5


class StudyGone(StudyFileError):
    """The file was deleted or moved while it was being written; the message says where its answers are now."""


class MissingExtra(PzosError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self._arguments = (package, extra, purpose)
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f'Install it with: pip install "pzos[{extra}]"'
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments  # the message alone would not rebuild it in another process
