"""The expressions of a text, read with their types. LLVM's compiler and the printer of C spell what is found."""

from __future__ import annotations

import ast
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc.codegen.language.helpers import Helper, Widths
from symc.codegen.language.native import Outside
from symc.codegen.language.syntax import SIGNS, Unsupported, every
from symc.codegen.language.typed import FLOATS, TYPES, Pointer, Scalar, Spelled, Value
from symc.ir.record import Numbers

#: What a text calls that is no function of the library: of the writer of a function and of scalars.
Primitive = Callable[[Any, Sequence[Any]], Any]


#: The methods that read expressions, by the kinds of these.
_READERS = {kind: f"of_{kind.__name__}" for kind in ast.expr.__subclasses__()}


class Expressions(Spelled):
    """Reads the expressions of one function."""

    def __init__(self, meaning: Callable[[str], Any], operands: Mapping[str, Value]):
        """``meaning``: what names mean that the function does not assign; None for one that is unknown."""
        self.meaning = meaning
        self.names: dict[str, Value] = dict(operands)
        self.given = [n for n, v in operands.items() if isinstance(v, Scalar)]
        self.variables: dict[str, tuple[str, str]] = {}  # names that change: type, and where they are
        self.assigned: set[str] = set()
        self.result: Any = None  # the type of what the function returns, or several

    # -- what a target says

    @abstractmethod
    def primitive(self, name: str) -> Primitive | None:
        """The meaning of a name that is no function of the library."""

    @abstractmethod
    def loaded(self, name: str) -> Scalar:
        """The value of a variable."""

    @abstractmethod
    def element(self, e: ast.Subscript) -> Scalar:
        """An element in memory."""

    @abstractmethod
    def in_table(self, numbers: Sequence[Any], t: str, index: Scalar) -> Scalar:
        """An element of a constant array."""

    @abstractmethod
    def call(self, helper: Helper, xs: Sequence[Scalar]) -> Value:
        """A call of a function of the library: a scalar, or several."""

    def offset(self, array: Pointer, index: Scalar) -> Pointer:
        """The elements of an array from one on."""
        raise Unsupported("a part of an array")

    def either(self, condition: Scalar, a: Pointer, b: Pointer) -> Pointer:
        """Either of two arrays."""
        raise Unsupported("a choice of arrays")

    def function(self, helper: Helper) -> Pointer:
        """The address of a function, which says what its parameters are."""
        raise Unsupported(f"the function {helper.name} as a value")

    def outside(self, function: Outside, xs: Sequence[Value]) -> Value:
        """A call of a function of another library."""
        raise Unsupported(f"a call of {function.name}")

    @abstractmethod
    def choice(self, condition: Scalar, body: ast.expr, orelse: ast.expr) -> Scalar:
        """Either of two, of which one alone is computed. The result has the type of the first."""

    def rarely(self, condition: Scalar, helper: Helper, e: ast.IfExp) -> Value:
        """A function for rare operands, called where the condition holds."""
        return self.select(condition, self.scalar(e.body), self.scalar(e.orelse))

    # -- expressions

    def scalar(self, e: ast.expr) -> Scalar:
        x = self.value(e)
        if not isinstance(x, Scalar):
            raise Unsupported("more than one number")
        return x

    def truth(self, x: Scalar) -> Scalar:
        return self.cast(x, "bool")

    def value(self, e: ast.expr) -> Value:
        read = getattr(self, _READERS.get(type(e), ""), None)
        if read is None:
            raise Unsupported(type(e).__name__)
        return read(e)

    def of_Constant(self, e: ast.Constant) -> Scalar:
        return self.literal(e.value)

    def of_Name(self, e: ast.Name) -> Value:
        if e.id in self.variables:
            return self.loaded(e.id)
        if e.id in self.names:
            return self.names[e.id]
        found = e.id if e.id in TYPES else self.meaning(e.id)
        if found is None:
            raise Unsupported(f"the name {e.id}")
        if isinstance(found, Helper):
            return self.function(found)
        if isinstance(found, str):
            return found
        if isinstance(found, np.ndarray):
            return tuple(found.tolist())
        return found if isinstance(found, tuple) else self.literal(found)

    def of_Attribute(self, e: ast.Attribute) -> Scalar:
        if isinstance(e.value, ast.Name) and e.value.id == "math" and e.attr in ("inf", "nan", "pi"):
            return self.literal(getattr(math, e.attr))
        if e.attr in ("real", "imag"):
            return self.part(self.scalar(e.value), ("real", "imag").index(e.attr))
        known = self.meaning(getattr(e.value, "id", ""))
        if isinstance(known, Numbers):
            return self.literal(getattr(known, e.attr))
        raise Unsupported(f".{e.attr}")

    def of_UnaryOp(self, e: ast.UnaryOp) -> Scalar:
        if isinstance(e.op, ast.USub) and isinstance(e.operand, ast.Constant) and e.operand.value == 2**63:
            return self.literal(-(2**63))  # which is signed, though the number behind the sign is not
        x = self.scalar(e.operand)
        if isinstance(e.op, ast.Not):
            return Scalar("bool", self.unary("~", "bool", self.truth(x).ref))
        if isinstance(e.op, ast.USub):
            return self.negative(x)
        if isinstance(e.op, ast.Invert) and x.type not in FLOATS:
            if x.type != "bool":
                x = self.cast(x, "u64" if x.type[0] == "u" else "i64")
            return Scalar(x.type, self.unary("~", x.type, x.ref))
        raise Unsupported("this operator")

    def of_BinOp(self, e: ast.BinOp) -> Scalar:
        if isinstance(e.op, ast.Pow):
            x, y = self.scalar(e.left), self.scalar(e.right)
            if x.number is None or y.number is None:
                raise Unsupported("** of what is no number")
            return self.literal(x.number**y.number)
        if type(e.op) not in SIGNS:
            raise Unsupported(type(e.op).__name__)
        return self.binary(SIGNS[type(e.op)], self.scalar(e.left), self.scalar(e.right))

    def of_Compare(self, e: ast.Compare) -> Scalar:
        terms = [self.scalar(x) for x in (e.left, *e.comparators)]
        return self.all_of([self.compare(SIGNS[type(op)], a, b)
                            for op, a, b in zip(e.ops, terms, terms[1:], strict=False)], "and")

    def of_BoolOp(self, e: ast.BoolOp) -> Scalar:
        return self.all_of([self.truth(self.scalar(x)) for x in e.values], "and" if isinstance(e.op, ast.And) else "or")

    def all_of(self, truths: Sequence[Scalar], how: str) -> Scalar:
        found = truths[0]
        for x in truths[1:]:
            found = Scalar("bool", self.joined(how, found.ref, x.ref))
        return found

    def of_IfExp(self, e: ast.IfExp) -> Value:
        condition = self.truth(self.scalar(e.test))
        if condition.number is not None:
            return self.value(e.body if condition.number else e.orelse)
        rare = self.helper(getattr(e.body.func, "id", ""), narrow=False) if isinstance(e.body, ast.Call) else None
        if rare is not None and rare.rarely:
            return self.rarely(condition, rare, e)
        if any(map(self.is_dear, (e.body, e.orelse))):
            return self.choice(condition, e.body, e.orelse)
        if isinstance(e.body, ast.Tuple) and isinstance(e.orelse, ast.Tuple):
            pairs = zip(e.body.elts, e.orelse.elts, strict=True)
            return [self.select(condition, self.scalar(a), self.scalar(b)) for a, b in pairs]
        a, b = self.value(e.body), self.value(e.orelse)
        if isinstance(a, Pointer) and isinstance(b, Pointer):
            return self.either(condition, a, b)
        return self.select(condition, a, b)

    def is_dear(self, e: ast.expr) -> bool:
        """True if an expression calls what should not run for nothing."""
        for node in every(e):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Attribute) and node.func.attr not in ("sqrt", "copysign"):
                    return True
                name = getattr(node.func, "id", "")
                helper = self.helper(name, narrow=False)
                if name.startswith(("scipy_", "user_")) or helper is not None and helper.called:
                    return True
        return False

    def of_Subscript(self, e: ast.Subscript) -> Value:
        found = self.value(e.value)
        if isinstance(found, Pointer):
            if isinstance(e.slice, ast.Slice):
                assert e.slice.lower is not None
                return self.offset(found, self.cast(self.scalar(e.slice.lower), "i64"))
            return self.element(e)
        index = self.scalar(e.slice)
        if isinstance(found, list):
            return found[int(index.number or 0)]
        if index.number is not None:
            return self.literal(found[int(index.number)])
        return self.in_table(np.asarray(found).tolist(), self.literal(found[0]).type, self.cast(index, "i64"))

    def of_Call(self, e: ast.Call) -> Value:
        if e.keywords:
            raise Unsupported("keywords")
        name = f"math.{e.func.attr}" if isinstance(e.func, ast.Attribute) else getattr(e.func, "id", "")
        if isinstance(e.func, ast.Attribute) and e.func.attr == "conjugate":
            z = self.scalar(e.func.value)
            return self.pair(z.type, self.part(z, 0), self.negative(self.part(z, 1)))
        xs = [self.value(a) for a in e.args]
        if not all(isinstance(x, Scalar | Pointer | str) for x in xs):
            raise Unsupported("more than one number")
        found = self.primitive(name)
        if found is not None:
            return found(self, xs)
        if isinstance(known := self.meaning(name), Outside):
            return self.outside(known, xs)
        helper = self.helper(name, narrow=bool(xs) and getattr(xs[0], "type", "") in ("f32", "u32"))
        if helper is None:
            raise Unsupported(f"the function {name}")
        return self.call(helper, xs)

    def helper(self, name: str, narrow: bool) -> Helper | None:
        """The function of the library that a name means; None for a primitive and what is none."""
        found = None if self.primitive(name) else self.meaning(name)
        found = found.of(narrow) if isinstance(found, Widths) else found
        return found if isinstance(found, Helper) else None
