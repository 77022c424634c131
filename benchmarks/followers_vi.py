"""The routing and the security game given as G and a polyhedron, against their followers: part of followers.py."""

import numpy as np

from pzos.games import Polyhedron, RoutingGame, SecurityGame, VariationalInequality


def routing_as_vi(game: RoutingGame) -> VariationalInequality:
    """Edge flows of every class, y >= 0 and conservation: a merely monotone VI."""
    size, everyone = game.classes * game.edges, np.arange(game.classes)
    incidence = np.zeros((game.vertices, game.edges))
    np.add.at(incidence, (game.head, np.arange(game.edges)), 1.0)
    np.add.at(incidence, (game.tail, np.arange(game.edges)), -1.0)
    supply = np.zeros((game.classes, game.vertices))
    np.add.at(supply, (everyone, game.destination), game.demand)
    np.add.at(supply, (everyone, game.origin), -game.demand)
    feasible = Polyhedron(-np.eye(size), np.zeros(size), np.kron(np.eye(game.classes), incidence), supply.ravel())

    def operator(tolls: np.ndarray, y: np.ndarray) -> np.ndarray:
        load = y.reshape(game.classes, game.edges).sum(axis=0)
        return (game.slope * load + game.intercept + tolls / game.sensitivity[:, None]).ravel()

    jacobian = np.tile(np.diag(game.slope), (game.classes, game.classes))
    return VariationalInequality(operator, feasible, size, jacobian=lambda tolls, y: jacobian)


def security_as_vi(game: SecurityGame) -> VariationalInequality:
    """Efforts y >= 0 with sum at most the budget."""
    n = game.targets

    def operator(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        strength = x + game.baseline
        return game.attacker_cost * y - game.attacker_value * strength / (strength + y) ** 2

    rows = np.vstack([-np.eye(n), np.ones((1, n))])
    return VariationalInequality(operator, Polyhedron(rows, np.append(np.zeros(n), game.budget)), n)


def routing_difference(seeds: int) -> float:
    """Largest difference of edge flows on small instances of the paper's ranges, tolls of both signs."""
    worst = 0.0
    for seed in range(seeds):
        game = RoutingGame.random(seed, vertices=6, edges=14, classes=2)
        vi = routing_as_vi(game)
        for tolls in np.random.default_rng(seed).normal(size=(2, game.edges)):
            flow = vi.response(tolls).reshape(game.classes, game.edges).sum(axis=0)
            worst = max(worst, float(np.abs(flow - game.response(tolls)).max()))
    return worst


def security_difference(seeds: int) -> float:
    """Largest difference of efforts; binding and slack budgets."""
    worst = 0.0
    for seed in range(seeds):
        game = SecurityGame.random(seed, targets=20, budget_share=(0.05, 0.5, 3.0)[seed % 3])
        vi = security_as_vi(game)
        for x in (game.start(), np.random.default_rng(seed).uniform(0.0, 3.0, game.targets)):
            worst = max(worst, float(np.abs(vi.response(x) - game.response(x)).max()))
    return worst
