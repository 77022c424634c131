"""What families are put together from: known costs with exact gradients, smooth responses, and changes of scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import pzos
from testbed.unseen.instance import Cost, Disturb, Draft, Vector

Map = Callable[[Vector], Vector]


def tracking(target: Vector, centre: Vector, ridge: float, weight: Vector | float = 1.0) -> Cost:
    """Return f = |sqrt(weight) (y - target)|^2 + ridge |x - centre|^2."""
    heavy, held = np.sqrt(weight), np.sqrt(ridge)

    def residuals(x: Vector, y: Vector) -> Vector:
        return np.concatenate([heavy * (y - target), held * (x - centre)])

    return Cost(
        lambda x, y: float((weight * (y - target) ** 2).sum() + ridge * ((x - centre) ** 2).sum()),
        lambda x, y: (2.0 * ridge * (x - centre), 2.0 * weight * (y - target)),
        residuals,
    )


def peak(target: Vector, centre: Vector, ridge: float, sharpness: float = 4.0) -> Cost:
    """Return f = log sum exp(sharpness (y - target))/sharpness + ridge |x - centre|^2: the soft maximum of y."""

    def weights(y: Vector) -> tuple[float, Vector]:
        z = sharpness * (y - target)
        top = z.max()
        e = np.exp(z - top)
        return float((top + np.log(e.sum())) / sharpness), e / e.sum()

    return Cost(
        lambda x, y: weights(y)[0] + ridge * float(((x - centre) ** 2).sum()),
        lambda x, y: (2.0 * ridge * (x - centre), weights(y)[1]),
    )


def worth(price: Vector, centre: Vector, ridge: float, bend: float = 0.0) -> Cost:
    """Return f = -price.y + bend |y|^2/2 + ridge |x - centre|^2: answers have a known worth."""
    return Cost(
        lambda x, y: float(-price @ y + 0.5 * bend * (y @ y) + ridge * ((x - centre) ** 2).sum()),
        lambda x, y: (2.0 * ridge * (x - centre), -price + bend * y),
    )


def revenue(unit_cost: Vector | float, ridge: float = 0.0) -> Cost:
    """Return f = -(x - unit_cost).y + ridge |x|^2: x are prices, y what is sold."""
    return Cost(
        lambda x, y: float(-(x - unit_cost) @ y + ridge * (x @ x)),
        lambda x, y: (-y + 2.0 * ridge * x, -(x - unit_cost)),
    )


def logistic(z: Vector) -> Vector:
    """Return 1/(1 + exp(-z)), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * z))


def softplus(z: Vector) -> Vector:
    """Return log(1 + exp(z)), without overflow."""
    return np.logaddexp(0.0, z)


def softmax(z: Vector) -> Vector:
    """Return the shares exp(z_i)/sum exp(z)."""
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def normal(rng: np.random.Generator, *shape: int) -> Vector:
    """Return a matrix whose rows have length about 1."""
    return rng.standard_normal(shape) / np.sqrt(shape[-1])


def tanh_map(rng: np.random.Generator, d: int, m: int, hidden: int, gain: float = 1.5) -> Map:
    """Return y = V tanh(gain W x + b) + x mixed in a little: unstructured, smooth, every decision matters."""
    W, b, V, A = (
        gain * normal(rng, hidden, d),
        0.5 * rng.standard_normal(hidden),
        normal(rng, m, hidden),
        normal(rng, m, d),
    )
    return lambda x: 2.0 * np.tanh(x @ W.T + b) @ V.T + 0.3 * x @ A.T


def tracked(
    rng: np.random.Generator,
    respond: Map,
    d: int,
    *,
    ridge: float = 0.02,
    reach: float = 1.0,
    miss: float = 0.3,
    box: float = np.inf,
) -> Draft:
    """Return a draft that tracks a target nearly reached somewhere, from a start away from there."""
    y = respond(reach * rng.standard_normal(d))
    target = y + miss * rng.standard_normal(y.size) * float(np.std(y))
    x0 = np.clip(reach * rng.standard_normal(d), -0.8 * box, 0.8 * box)
    domain = pzos.Box(-box, box) if np.isfinite(box) else None
    return Draft(tracking(target, np.zeros(d), ridge), respond, x0, domain)


def rescaled(draft: Draft, of_x: Vector | float = 1.0, of_y: Vector | float = 1.0, of_f: float = 1.0) -> Draft:
    """Return the same problem in other units of x, y and f."""
    cost, respond = draft.cost, draft.respond

    def gradients(x: Vector, y: Vector) -> tuple[Vector, Vector]:
        gx, gy = cost.gradients(x / of_x, y / of_y)
        return of_f * gx / of_x, of_f * gy / of_y

    residuals = None
    if cost.residuals is not None:
        inner = cost.residuals

        def residuals(x: Vector, y: Vector) -> Vector:
            return np.sqrt(of_f) * inner(x / of_x, y / of_y)

    domain = draft.domain
    if isinstance(domain, pzos.Box):
        domain = pzos.Box(domain.lower * of_x, domain.upper * of_x)
    elif domain is not None:
        raise ValueError(f"rescaled: expected no domain or a box, not {domain!r}")
    return replace(
        draft,
        cost=Cost(lambda x, y: of_f * cost.value(x / of_x, y / of_y), gradients, residuals),
        respond=lambda x: respond(x / of_x) * of_y,
        x0=draft.x0 * of_x,
        domain=domain,
        unit=draft.unit * of_x,
    )


def disturbed(draft: Draft, disturb: Disturb) -> Draft:
    """Return the same problem with answers that are not the true ones."""
    return replace(draft, disturb=disturb)


def scales(rng: np.random.Generator, size: int, decades: float) -> Vector:
    """Return factors from 10^-decades to 10^decades, the extremes among them."""
    exponents = rng.uniform(-decades, decades, size)
    exponents[:2] = -decades, decades
    return 10.0 ** rng.permutation(exponents)
