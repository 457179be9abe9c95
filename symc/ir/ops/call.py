"""A named block of the program: `call` computes what its region says, as one op until it is taken apart.

A block may have a derivative of its own: `rule` names an entry of ``rules``, which outlives the text of a program only
in processes that declare the function again. The region of a batched block is the batched region; `batch` says for
every further axis which operands have it, so that the rule of a single entry can be applied to batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symc.errors import GradientError, InternalError
from symc.ir.facts import Facts
from symc.ir.op import Custom, Extern, Op, lookup, register
from symc.ir.ops.kernel import results_type
from symc.ir.record import dataclass
from symc.ir.types import TensorType, Type
from symc.ir.value import Region, Value, param

Values = Sequence[Value | None]


@dataclass(frozen=True)
class Site:
    """Site that a rule is asked about: the operands of a block and the types of its results."""

    operands: tuple[Value, ...]
    types: tuple[TensorType, ...]


@dataclass(frozen=True)
class Rule:
    """``jvp(tangents, site)`` gives one tangent a result, ``vjp(cotangents, site)`` one cotangent an operand."""

    jvp: Callable[[Values, Site], list[Value | None]]
    vjp: Callable[[Values, Site], list[Value | None]]


#: Derivatives that users state, by the names that `rule` has.
rules: dict[str, Rule] = {}


def rule_of(v: Value) -> Rule | None:
    """The derivative of its own of a block, if it has one. Raises GradientError where it is not known here."""
    name = v.attrs["rule"]
    if name and name not in rules:
        raise GradientError(f"the derivative of {v.attrs['name']} is not known in this process",
                            help="take it in the process that made the value, or send the function that makes it")
    return rules[name] if name else None


def _infer(*types: TensorType, name: str, rule: str, opaque: bool, batch: tuple, regions: Sequence[Region]) -> Type:
    (body,) = regions
    if tuple(types) != tuple(body.params):
        raise InternalError(f"call {name}: operands {types} are not the region's params {body.params}")
    return results_type([r.type for r in body.results])


def one_or_several(*arrays: np.ndarray, regions: Sequence[Any], **_: Any) -> Any:
    """Result of the region: an array, or a tuple of several."""
    results = [np.array(r) for r in regions[0](*arrays)]
    return results[0] if len(results) == 1 else tuple(results)


def _samples() -> Iterator[tuple[tuple, dict]]:
    sin, mul = lookup("sin"), lookup("mul")
    row = TensorType("f64", (3,))
    x, y = param(0, row), param(1, row)
    data = np.linspace(0.1, 1, 3), np.linspace(-1, 2, 3)
    for opaque, results in ((False, [mul(sin(x), y)]), (True, [mul(x, y), sin(y)])):
        yield data, dict(name="f", rule="", opaque=opaque, batch=(), regions=(Region((row, row), results),))


def _rule(found: Callable[[Any, Value], Any] | None) -> Callable[[Any, Value], Any]:
    if found is None:
        raise InternalError("call: nobody has stated its derivative")
    return found


def _jvp(tangents: Values, v: Value) -> Any:
    return _rule(v.op.facts.jvp)(tangents, v)


def _vjp(g: Any, v: Value) -> Any:
    return _rule(v.op.facts.vjp)(g, v)


call = register(Op(
    "call",
    _infer,
    one_or_several,
    Custom(_jvp, _vjp),  # symc.grad puts them into the facts: they differentiate graphs
    Extern("call"),
    frozenset({"inline"}),
    samples=_samples,
    doc="The region's results, under a `name`. `rule` names a derivative of its own. The pass `inline` puts the region "
    "in its place, or `open_blocks` if it is `opaque`.", facts=Facts(rounding="none"),
    defaults={"rule": "", "opaque": False, "batch": ()},
))  # fmt: skip
