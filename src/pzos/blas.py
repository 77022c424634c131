"""One BLAS thread while a solver thinks.

The last bits of a matrix product depend on the number of BLAS threads, so a run would depend on the machine; and on the
small matrices of a solver more threads cost time. Followers keep all their threads: only the solver's own work is held.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _controller() -> ThreadpoolController:
    """Look once for the BLAS libraries in use: numpy's and scipy's are two."""
    import scipy.linalg  # noqa: F401  # so that its library is loaded and found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method so that BLAS runs on one thread inside it, and as before after it."""

    @wraps(method)
    def held(*args: P.args, **kwargs: P.kwargs) -> R:
        with _controller().limit(limits=1, user_api="blas"):
            return method(*args, **kwargs)

    return held
