"""Numbers the paper published, to be laid over ours (Fig. "empirical second moments" and its error-bar twin)."""

from __future__ import annotations

from typing import NamedTuple


class PublishedMoment(NamedTuple):
    """Mean squared norms at one dimension, with two standard deviations."""

    n: int
    pzos_mean: float
    pzos_2sd: float
    zos_mean: float
    zos_2sd: float


#: The points of the paper's table that are available to us (it plots 61 dimensions).
SECOND_MOMENTS = (
    PublishedMoment(2, 0.037149373302615, 0.0355545303998001, 0.0720382310531737, 0.0717059749795495),
    PublishedMoment(10, 0.960668636274019, 1.18497482718324, 1.67599750772179, 1.37793125221054),
    PublishedMoment(50, 24.5967426682977, 22.3222373674261, 46.720234324135, 15.9354180658447),
    PublishedMoment(100, 90.501762174164, 21.1837867562733, 242.567180452068, 67.0501138886031),
    PublishedMoment(105, 85.2679675210889, 42.3264540637423, 335.781434842264, 64.9626583014864),
    PublishedMoment(150, 195.576912360159, 29.8464500278802, 701.601906542918, 96.8789928471359),
    PublishedMoment(200, 320.264864636773, 155.035541250983, 1394.94281739629, 209.45874306644),
    PublishedMoment(250, 546.404002722256, 95.4660635407283, 2654.36573694404, 486.95342300764),
    PublishedMoment(300, 795.603027530778, 304.810727611887, 3734.08068616977, 543.776774385006),
)
