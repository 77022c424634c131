"""One BLAS thread while a solver thinks, and in the processes that answer queries.

The last bits of a matrix product depend on the number of BLAS threads, so a run would depend on the machine; and on the
small matrices of a solver more threads cost time. Followers keep all their threads: only the solver's own work is held.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

#: What keeps the numerical libraries of a process to one thread, if it is set before they are loaded.
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)


@cache
def _controller() -> ThreadpoolController:
    """Look once for the BLAS libraries in use: numpy's and scipy's are two."""
    import scipy.linalg  # noqa: F401  # so that its library is loaded and found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def blas_kernels() -> str:
    """Return the BLAS libraries that are loaded and the kind of processor each has chosen its code for."""
    from threadpoolctl import threadpool_info

    loaded = [info for info in threadpool_info() if info["user_api"] == "blas"]
    return ", ".join(sorted({f"{info['internal_api']} {info.get('architecture', '')}".strip() for info in loaded}))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread, and leave it as it was before; ``@one_blas_thread()`` holds it inside a function."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def pin_threads() -> None:
    """Keep the numerical libraries of this process to one thread from now on; a worker process does this once.

    Many workers with many threads each are slower, and their number must not change the last bits of an answer.
    """
    from threadpoolctl import threadpool_limits

    os.environ.update(ONE_THREAD)  # for libraries loaded later, and for programs started from here
    threadpool_limits(limits=1)  # for those that are here already
    if "numba" in sys.modules:
        sys.modules["numba"].set_num_threads(1)
