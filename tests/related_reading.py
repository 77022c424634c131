"""A reading edition of related methods: plain loops, one line per line of their papers, for x in a convex set.

They share with the engine only the random numbers: ``normal`` is the vector of an address, ``sphere`` that divided by
its length, and ``coin`` and ``share`` are the uniform numbers of outputs.
"""

import numpy as np

from pzos.base.keys import Keys, Role


def normal(seed, t, q, d):
    return Keys(seed).generator(Role.DIRECTION, t, q).standard_normal(d)


def sphere(seed, t, q, d):
    u = normal(seed, t, q, d)
    return u / np.linalg.norm(u)


def coin(seed, t):
    return Keys(seed).uniform(Role.OUTPUT, t, 1)


def share(seed, t):
    return Keys(seed).uniform(Role.OUTPUT, t, 2)


def pzobo(f_x, f_y, y_star, x, step, mu, T, Q, seed, project):
    """Return x_0, ..., x_T of PZOBO (Sow, Ji and Liang 2022, Algorithm 1), with the Jacobian estimates formed."""
    iterates = [x]
    for t in range(T):
        y = y_star(x)
        g = f_x(x, y)
        for q in range(Q):
            u = normal(seed, t, q, len(x))
            J = np.outer((y_star(x + mu * u) - y) / mu, u)
            g = g + J.T @ f_y(x, y) / Q
        x = project(x - step(t) * g)
        iterates.append(x)
    return np.array(iterates)


def zsol(F, x, step, eta, T, batch, seed, project):
    """Return x_0, ..., x_T of ZSOL with batch(t) slopes (Cui, Shanbhag and Yousefian 2023)."""
    d, iterates = len(x), [x]
    for t in range(T):
        N = batch(t)
        v = [sphere(seed, t, q, d) for q in range(N)]
        g = sum(d / eta * (F(x + eta * v[q]) - F(x)) * v[q] for q in range(N)) / N
        x = project(x - step(t) * g)
        iterates.append(x)
    return np.array(iterates)


def spsa(F, x, a, c, T, seed, project):
    """Return x_0, ..., x_T of SPSA (Spall 1992): each entry is divided by its own perturbation."""
    iterates = [x]
    for t in range(T):
        delta = np.sign(normal(seed, t, 0, len(x)))
        x = project(x - a(t) * (F(x + c(t) * delta) - F(x - c(t) * delta)) / (2 * c(t) * delta))
        iterates.append(x)
    return np.array(iterates)


def two_points(F, x, delta, directions):
    d = len(x)
    return sum(d / (2 * delta) * (F(x + delta * v) - F(x - delta * v)) * v for v in directions) / len(directions)


def gfm_plus(F, x, eta, delta, T, small, large, period, seed, project):
    """Return the iterates x_0, ..., x_T of GFM+ (Chen, Xu and Luo 2023, Algorithm 2) and its output."""
    d, before, output, iterates = len(x), x, x, [x]
    for t in range(T):
        if t % period == 0:
            v = two_points(F, x, delta, [sphere(seed, t, q, d) for q in range(large)])
        else:
            S = [sphere(seed, t, q, d) for q in range(small)]
            v = v + two_points(F, x, delta, S) - two_points(F, before, delta, S)
        if coin(seed, t) < 1 / (t + 1):
            output = x
        before, x = x, project(x - eta * v)
        iterates.append(x)
    return np.array(iterates), output


def kornowski_shamir(F, x, eta, nu, T, length, block, seed, project):
    """Return the iterates x_0, ..., x_T (Kornowski and Shamir 2024, Algorithm 1) and the output, T >= block."""
    d, m, z, output, iterates = len(x), np.zeros(len(x)), [], x, [x]
    for t in range(T):
        after = project(x + m)
        z.append(x + share(seed, t) * (after - x))
        g = two_points(F, z[-1], nu, [sphere(seed, t, 0, d)])
        m = m - eta * g
        m = m * min(1, length / np.linalg.norm(m))
        x = after
        iterates.append(x)
        if (t + 1) % block == 0 and coin(seed, t) < block / (t + 1):
            output = np.mean(z[-block:], axis=0)
    return np.array(iterates), output
