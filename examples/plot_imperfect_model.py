"""
An imperfect model of the followers
===================================

Often there *is* a model of the followers, and it is wrong. ``ModelPrediction`` uses its Jacobian as a prediction: the
estimate stays unbiased however wrong the model is, and only the noise follows the model's error. Here the model is the
true Jacobian times 1.5, 1.1 and 1 (a perfect one).
"""

import matplotlib.pyplot as plt
import numpy as np

import pzos
from pzos.games import SecurityGame
from pzos.games.derivatives import security_jacobian

game = SecurityGame.random(seed=3, targets=40)
problem = game.problem()


def model(scale):
    """Return (x, u) -> scale J(x)' u, a model of the attacker that is wrong by the factor ``scale``."""
    return pzos.ModelPrediction(lambda x, u: scale * security_jacobian(game, x).transpose_times(u))


predictions = {
    "no model (PZOS)": pzos.LeaderPrediction(),
    "50 % wrong": model(1.5),
    "10 % wrong": model(1.1),
    "perfect": model(1.0),
}
figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, prediction), colour in zip(predictions.items(), ("black", "#D55E00", "#E69F00", "#0072B2"), strict=True):
    solver = pzos.MemoryPZOS(prediction=prediction)  # the step size adapts to the noise
    result = pzos.solve(problem, solver, queries=300, seed=0)
    noise = np.sqrt(result.trace["gradient_norm_squared"])
    print(f"{name:<16} F = {result.best_value:.4f}, median |g| = {np.nanmedian(noise):.3g}")
    axes.plot(result.trace["queries"], result.trace["value"], color=colour, label=name)
axes.set(xlabel="queries", ylabel="defender's cost F(x)", title="a better model means less noise and longer steps")
axes.legend(frameon=False)

# %%
# What the models say of one move of the defence, and what the attacker does: the perfect model is a tangent, so that
# even it is wrong by a little.

# sphinx_gallery_thumbnail_number = 2
jacobian = np.array([security_jacobian(game, problem.x0).transpose_times(row) for row in np.eye(40)])
move = 0.02 * np.sin(np.arange(40.0))
true = game.response(problem.x0 + move) - game.response(problem.x0)
figure, axes = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
for name, scale, colour in (
    ("50 % wrong", 1.5, "#D55E00"),
    ("10 % wrong", 1.1, "#E69F00"),
    ("perfect", 1.0, "#0072B2"),
):
    axes.plot(true, scale * (jacobian @ move), "o", color=colour, markersize=4, label=name)
axes.axline((0, 0), slope=1, color="0.8", zorder=0)
axes.set(xlabel="change of the attack on a target", ylabel="as the model says", title="one move of the defence")
axes.legend(frameon=False)
plt.show()
