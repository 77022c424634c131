"""An oracle for projections: the nearest point of a polyhedron as a problem of nonnegative least squares.

Least distance programming (Lawson and Hanson, 1974, ch. 23): min |z| subject to G z >= h has the solution
z_j = -r_j / r_{n+1}, where r is the residual of the nonnegative least squares problem for E = (G, h)' and
f = (0, ..., 0, 1).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from pzos.base.types import Matrix, Vector
from pzos.problem.polyhedra import Polyhedron
from pzos.problem.sets import Box, Budget, Domain, Nonnegative, Product, Simplex, Whole


def constraints(domain: Domain, d: int) -> tuple[Matrix, Vector]:
    """Return A and b with {x : A x <= b} the set; equations as two inequalities, open sides left out."""
    eye, ones = np.eye(d), np.ones((1, d))
    if isinstance(domain, Whole):
        return np.zeros((0, d)), np.zeros(0)
    if isinstance(domain, Nonnegative):
        return -eye, np.zeros(d)
    if isinstance(domain, Box):
        A, b = np.vstack([-eye, eye]), np.r_[-domain.lower * np.ones(d), domain.upper * np.ones(d)]
        return A[np.isfinite(b)], b[np.isfinite(b)]
    if isinstance(domain, Budget):
        return np.vstack([-eye, ones]), np.r_[np.zeros(d), domain.total]
    if isinstance(domain, Simplex):
        return np.vstack([-eye, ones, -ones]), np.r_[np.zeros(d), domain.total, -domain.total]
    if isinstance(domain, Polyhedron):
        return np.vstack([domain.A, domain.C, -domain.C]), np.r_[domain.b, domain.d, -domain.d]
    if isinstance(domain, Product):
        parts = [(constraints(part, block.stop - block.start), block) for part, block in domain.blocks()]
        A = np.zeros((sum(b.size for (_, b), _ in parts), d))
        start = 0
        for (rows, b), block in parts:
            A[start : start + b.size, block] = rows
            start += b.size
        return A, np.concatenate([b for (_, b), _ in parts])
    raise TypeError(f"{type(domain).__name__} is no polyhedron")


def nearest(A: Matrix, b: Vector, u: Vector) -> Vector:
    """Return the point of {x : A x <= b} nearest to u."""
    if not b.size:
        return u
    G, h = -A, A @ u - b
    E = np.vstack([G.T, h])
    f = np.r_[np.zeros(u.size), 1.0]
    w, _ = nnls(E, f, maxiter=100 * (b.size + 1))
    residual = E @ w - f
    if abs(residual[-1]) < 1e-12:
        raise ValueError("the set is empty")
    return u - residual[:-1] / residual[-1]
