"""StableHLO text under construction: types, constants, lines, bodies, sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.export.pure import Sized
from symc.ir.dtypes import DTYPE_NAMES
from symc.ir.function import Function
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Value

Names = Sequence[str]
_INTS = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "min": "minimum", "max": "maximum"}


def mlir_type(t: Any) -> str:
    """The text of a type; a size that is no number is ``?``."""
    if isinstance(t, TupleType):
        return types(t.items)
    name = DTYPE_NAMES[t.dtype]
    name = "i1" if name == "bool" else f"u{name}" if name[0] == "u" else name
    name = name.replace("uu", "ui")
    return f"tensor<{''.join(f'{s}x' if isinstance(s, int) else '?x' for s in t.shape)}{name}>"


def types(given: Any) -> str:
    """The texts of types."""
    return ", ".join(map(mlir_type, given))


def is_static(*shapes: Sequence[Any]) -> bool:
    """True for sizes that are numbers."""
    return all(isinstance(s, int) for shape in shapes for s in shape)


def dense(a: np.ndarray) -> str:
    """The text of constant data: a number where all are equal, else the numbers, or their bytes where they are many."""
    if a.size and (a.ravel()[:1].view(np.uint8) == np.ascontiguousarray(a).reshape(-1, 1).view(np.uint8)).all():
        return f"dense<{_number(a.ravel()[0])}>"
    if a.size > 16 and a.dtype.kind != "b":
        return f'dense<"0x{np.ascontiguousarray(a).tobytes().hex().upper()}">'
    return f"dense<{_listed(a)}>" if a.size else "dense<>"


def _listed(a: np.ndarray) -> str:
    return _number(a[()]) if not a.ndim else "[" + ", ".join(map(_listed, a)) + "]"


def _number(x: Any) -> str:
    if x.dtype.kind == "f":
        digits = "0x" + np.asarray(x).astype(x.dtype.newbyteorder(">")).tobytes().hex().upper()
        return f"{float(x):.17e}" if np.isfinite(x) else digits
    return str(x).lower()


class Module(Sized):
    """A function's text under construction, line by line."""

    target = "StableHLO"

    def __init__(self, f: Function, spelled: Callable[[Module, Value], Any]):
        super().__init__(f, spelled)
        self._count = 0
        self.inputs = [f"%arg{k}" for k in range(len(f.inputs))]
        self._types = [i.type for i in f.inputs]

    def line(self, text: str) -> None:
        """A line of the body under way."""
        self.nodes.append(text)

    def fresh(self) -> str:
        self._count += 1
        return f"%{self._count - 1}"

    def op(self, name: str, operands: Names, of: Sequence[Any], result: Any, attrs: str = "",
           regions: Sequence[Sequence[str]] = ()) -> Any:
        """An op in its general form; ``of`` are the types of operands. The names of its results."""
        several = isinstance(result, TupleType)
        out = self.fresh()
        head = f"{out}:{len(result.items)}" if several else out
        line = f'{head} = "stablehlo.{name}"({", ".join(operands)})'
        line += f" <{{{attrs}}}>" if attrs else ""
        tail = f" : ({types(of)}) -> ({mlir_type(result)})"
        if regions:
            self.line(line + " ({")
            for k, lines in enumerate(regions):
                self.nodes += [*(["}, {"] if k else []), *["  " + x for x in lines]]
            self.line("})" + tail)
        else:
            self.line(line + tail)
        return [f"{out}#{k}" for k in range(len(result.items))] if several else out

    def simple(self, name: str, operands: Names, t: Any) -> str:
        """An op whose operands and result have one type."""
        out = self.fresh()
        self.line(f"{out} = {name if '.' in name else 'stablehlo.' + name} {', '.join(operands)} : {mlir_type(t)}"
                  if not name.startswith("chlo.") else
                  f"{out} = {name} {', '.join(operands)} : {types([t] * len(operands))} -> {mlir_type(t)}")
        return out

    def constant(self, data: Any, dtype: Any = None) -> str:
        a = np.asarray(data, dtype)
        out = self.fresh()
        self.line(f"{out} = stablehlo.constant {dense(a)} : {mlir_type(TensorType(a.dtype, a.shape))}")
        return out

    def operands(self, v: Value) -> list[Any]:
        """The types of the operands."""
        return [o.type for o in v.operands]

    def sized(self, name: str, v: Value, shapes: Sequence[Sequence[Any]], attrs: str = "", dynamic: str = "",
              kept: str = "", is_fixed: bool = True) -> str:
        """An op that has sizes among its attributes, or where some are computed its ``dynamic`` relative, which has
        them as operands, and the attributes that are ``kept``."""
        if is_fixed and is_static(v.shape, *shapes):
            return self.op(name, self.names(v), self.operands(v), v.type, attrs or kept)
        return self.op(dynamic or f"dynamic_{name}", [*self.names(v), *map(self.shape, shapes)],
                       [*self.operands(v), *[TensorType("i64", (len(s),)) for s in shapes]], v.type, kept)

    def reshaped(self, x: str, of: TensorType, to: TensorType) -> str:
        """A value of one type as one of another."""
        if is_static(to.shape):
            return self.op("reshape", [x], [of], to)
        return self.op("dynamic_reshape", [x, self.shape(to.shape)], [of, TensorType("i64", (to.ndim,))], to)

    def less(self, x: str, y: str, t: TensorType, how: str = "LT") -> str:
        """A comparison."""
        out, kind = self.fresh(), {"f": "FLOAT", "i": "SIGNED"}.get(t.dtype.kind, "UNSIGNED")
        self.line(f"{out} = stablehlo.compare {how}, {x}, {y}, {kind} : ({types([t, t])}) -> "
                  f"{mlir_type(t.with_dtype('bool'))}")
        return out

    def body_lines(self, args: Sequence[tuple[str, Any]], make: Callable[[], tuple[Names, Sequence[Any]]]) -> list[str]:
        """The lines of a region: ``make`` adds them, and gives what it returns, with types."""
        before, self.nodes = self.nodes, []
        try:
            found, of = make()
            lines = [*self.nodes, f'"stablehlo.return"({", ".join(found)}) : ({types(of)}) -> ()']
        finally:
            self.nodes = before
        head = ", ".join(f"{n}: {mlir_type(t)}" for n, t in args)
        return [f"^bb0({head}):", *["  " + x for x in lines]] if args else lines

    # --- sizes --------------------------------------------------------------------------------------------------------

    def ints(self, *numbers: int) -> str:
        return self._once(("ints", numbers), lambda: self.constant(np.array(numbers, np.int64)))

    def int_op(self, fn: str, a: str, b: str) -> str:
        one = TensorType("i64", (1,))
        if fn != "mod":
            return self.simple(_INTS[fn], [a, b], one)
        r = self.simple("remainder", [a, b], one)  # the divisor is positive
        return self.simple("remainder", [self.simple("add", [r, b], one), b], one)

    def axis_size(self, k: int, axis: int) -> str:
        i32, i64 = TensorType("i32", ()), TensorType("i64", ())
        n = self.op("get_dimension_size", [self.inputs[k]], [self._types[k]], i32, f"dimension = {axis} : i64")
        return self.reshaped(self.op("convert", [n], [i32], i64), i64, TensorType("i64", (1,)))

    def joined(self, parts: Names) -> str:
        one, every = TensorType("i64", (1,)), TensorType("i64", (len(parts),))
        return self.op("concatenate", parts, [one] * len(parts), every, "dimension = 0 : i64")
