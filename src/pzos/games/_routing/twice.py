"""Twice the working precision: a number is kept as high + low with |low| far below |high|.

`two_sum` and `two_product` are exact (Knuth; a fused multiply-add). Both serve single numbers and lanes of them.
"""

from pzos.games._routing.compile import inlined
from pzos.games._routing.lanes import fused


@inlined
def two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b as rounded sum and exact error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@inlined
def two_product(a: float, b: float) -> tuple[float, float]:
    """a * b as rounded product and exact error."""
    product = a * b
    return product, fused(a, b, 0.0 - product)
