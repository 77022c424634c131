"""A reading edition of the paper's four algorithms: plain loops, one line per line of the paper, H formed.

Alg. PZOS and ZOS are Q = 1, Alg. PZOS-B and ZOS-B are Q > 1. It shares with the engine only the directions.
"""

import numpy as np

from pzos.base.keys import Keys


def pzos(f_x, f_y, y_star, x0, step, mu, T, Q=1, seed=0, sign=+1, project=lambda x: x):
    """Return x_0, ..., x_T of Alg. PZOS-B; ``sign`` is +1 to minimise and -1 to maximise."""
    x, d = np.array(x0, dtype=float), len(x0)
    iterates = [x]
    for t in range(T):
        y = y_star(x)  # evaluate y*(x_t)
        H_bar = np.zeros((len(y), d))
        for q in range(Q):
            v = Keys(seed).direction(t, q, d)  # v_{t,q} uniform on the sphere
            H = d / (2 * mu) * np.outer(y_star(x + mu * v) - y_star(x - mu * v), v)  # Jacobian estimate
            H_bar += H / Q
        g = f_x(x, y) + H_bar.T @ f_y(x, y)  # eq. (5)
        x = project(x - sign * step(t) * g)
        iterates.append(x)
    return np.array(iterates)


def zos(f, y_star, x0, step, mu, T, Q=1, seed=0, sign=+1, project=lambda x: x):
    """Return x_0, ..., x_T of Alg. ZOS-B."""
    x, d = np.array(x0, dtype=float), len(x0)
    iterates = [x]
    for t in range(T):
        g = np.zeros(d)
        for q in range(Q):
            v = Keys(seed).direction(t, q, d)
            up, down = x + mu * v, x - mu * v
            g += d / (2 * mu) * (f(up, y_star(up)) - f(down, y_star(down))) * v / Q  # eq. (2), averaged
        x = project(x - sign * step(t) * g)
        iterates.append(x)
    return np.array(iterates)
