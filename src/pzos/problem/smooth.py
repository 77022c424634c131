"""Smooth stand-ins for abs, max and norms in a known cost, each with a stated error.

The cost f is known, so its kinks are too, but a minimiser that follows gradients stalls at them. Each function here
lies above what it stands for, by at most ``width``, and so does a cost that adds some up with weights of sum 1. The
arrays may be NumPy's, JAX's or PyTorch's: nothing but their operators is used.
"""

from __future__ import annotations

from typing import Any

from pzos.base.checks import positive

_WIDTH = positive("try 1e-3 of what the cost is expected to change by")


def smooth_abs(values: Any, width: float) -> Any:
    """Return sqrt(v^2 + width^2), entry by entry: above abs(v), by at most ``width`` (at 0).

    >>> smooth_abs(3.0, 4.0)
    5.0
    """
    _WIDTH.require("smooth_abs", "width", width)
    return (values * values + width * width) ** 0.5


def smooth_norm(values: Any, width: float) -> Any:
    """Return sqrt(|v|^2 + width^2): above the Euclidean norm of a vector, by at most ``width`` (at 0)."""
    _WIDTH.require("smooth_norm", "width", width)
    return ((values * values).sum() + width * width) ** 0.5


def smooth_max(values: Any, width: float) -> Any:
    """Return a smooth maximum of a vector: above its largest entry, by at most ``width``.

    Entries meet in pairs, max(a, b) = (a + b + abs(a - b))/2 with a smooth abs, round by round; each round may add its
    part of the width.

    >>> import numpy as np
    >>> bool(0.0 <= smooth_max(np.array([1.0, 3.0, 2.0]), 1e-3) - 3.0 <= 1e-3)
    True
    """
    _WIDTH.require("smooth_max", "width", width)
    rounds = max((len(values) - 1).bit_length(), 1)
    while len(values) > 1:
        half = (len(values) + 1) // 2
        # The middle one of an odd number meets itself, which costs it no more than the others.
        one, other = values[:half], values[len(values) - half :]
        values = 0.5 * (one + other + smooth_abs(one - other, 2.0 * width / rounds))
    return values[0]
