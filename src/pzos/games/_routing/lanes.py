"""Eight doubles side by side for compiled code, explicitly: one vector of the machine, whatever the optimiser thinks.

`Lanes` add, subtract, multiply and compare entry by entry. They live in rows of arrays of shape (any, 8); `lanes_at`
and `put_lanes` move them. Masks are integers with one bit per lane.
"""

import operator
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numba
from llvmlite import ir
from numba.core.cgutils import get_or_insert_function
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

WIDTH = 8
ALL = (1 << WIDTH) - 1
"""Mask with the bits of all lanes."""

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_MASK = ir.IntType(WIDTH)

Lanes: TypeAlias = Any
"""Eight numbers; code written for floats often serves them as well."""


class LanesType(numba.types.Type):  # type: ignore[misc]
    """Numba's name for eight doubles."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    """Eight doubles are one vector of LLVM."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


LANES = LanesType()
_PAIRS = ((LANES, LANES), (LANES, numba.types.float64), (numba.types.float64, LANES))


def _spread(builder: Any, value: Any) -> Any:
    """A number in every lane; lanes stay what they are."""
    if value.type == _VECTOR:
        return value
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), places)


def _teach(operation: Callable[..., Any], instruction: str) -> None:
    """Teach numba an operator on lanes, and on lanes and a number."""

    @infer_global(operation)
    class Operator(ConcreteTemplate):  # type: ignore[misc]
        cases = tuple(signature(LANES, *pair) for pair in _PAIRS)

    def generate(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*(_spread(builder, value) for value in arguments))

    for pair in _PAIRS:
        lower_builtin(operation, *pair)(generate)


_teach(operator.add, "fadd")
_teach(operator.sub, "fsub")
_teach(operator.mul, "fmul")


def _row(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    place = builder.gep(data, [builder.mul(row, ir.Constant(row.type, WIDTH))])
    return builder.bitcast(place, _VECTOR.as_pointer())


def _lanes_at(typing_context: Any, array: Any, row: Any) -> Any:
    """Row of an array of shape (any, 8)."""

    def generate(context: Any, builder: Any, kinds: Any, arguments: Any) -> Any:
        return builder.load(_row(context, builder, kinds.args[0], *arguments), align=8)

    return LANES(array, numba.types.intp), generate


def _put_lanes(typing_context: Any, array: Any, row: Any, value: Any) -> Any:
    """Write lanes (or a number into every lane) to a row of an array of shape (any, 8)."""

    def generate(context: Any, builder: Any, kinds: Any, arguments: Any) -> Any:
        place = _row(context, builder, kinds.args[0], arguments[0], arguments[1])
        builder.store(_spread(builder, arguments[2]), place, align=8)
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.intp, value), generate


def _below(typing_context: Any, left: Any, right: Any) -> Any:
    """Mask of the lanes in which left < right."""

    def generate(context: Any, builder: Any, kinds: Any, arguments: Any) -> Any:
        one, other = (_spread(builder, value) for value in arguments)
        mask = builder.bitcast(builder.fcmp_ordered("<", one, other), _MASK)
        return builder.zext(mask, ir.IntType(64))

    return numba.types.int64(left, right), generate


def _larger(typing_context: Any, left: Any, right: Any) -> Any:
    """The larger entry, lane by lane."""

    def generate(context: Any, builder: Any, kinds: Any, arguments: Any) -> Any:
        one, other = (_spread(builder, value) for value in arguments)
        return builder.select(builder.fcmp_ordered("<", one, other), other, one)

    return LANES(left, right), generate


def _call(builder: Any, name: str, values: list[Any]) -> Any:
    """Call what LLVM has under one name for doubles and for vectors of them."""
    kind = values[0].type
    full_name = f"llvm.{name}.{f'v{WIDTH}f64' if kind == _VECTOR else 'f64'}"
    function = get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * len(values)), full_name)
    return builder.call(function, values)


def _magnitude(typing_context: Any, value: Any) -> Any:
    """Absolute value of a number or of lanes."""

    def generate(context: Any, builder: Any, kinds: Any, arguments: Any) -> Any:
        return _call(builder, "fabs", list(arguments))

    return value(value), generate


def _fused(typing_context: Any, left: Any, right: Any, added: Any) -> Any:
    """left * right + added, rounded once; numbers among lanes are spread."""
    kind = LANES if LANES in (left, right, added) else numba.types.float64

    def generate(context: Any, builder: Any, kinds: Any, arguments: Any) -> Any:
        values = [_spread(builder, value) if kind == LANES else value for value in arguments]
        return _call(builder, "fma", values)

    return kind(left, right, added), generate


lanes_at = cast(Callable[..., Lanes], intrinsic(_lanes_at))
put_lanes = cast(Callable[..., None], intrinsic(_put_lanes))
below = cast(Callable[..., int], intrinsic(_below))
larger = cast(Callable[..., Lanes], intrinsic(_larger))
magnitude = cast(Callable[[Lanes], Lanes], intrinsic(_magnitude))
fused = cast(Callable[[Lanes, Lanes, Lanes], Lanes], intrinsic(_fused))
