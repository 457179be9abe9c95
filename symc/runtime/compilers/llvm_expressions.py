"""Expressions of kernel texts as LLVM instructions: the part of a function's compiler that statements build on."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from symc.codegen.cpu.text import Unsupported
from symc.codegen.language.helpers import Helper, Widths
from symc.runtime.compilers.llvm_primitives import primitive
from symc.runtime.compilers.llvm_scalars import (
    LLVM,
    PARTS,
    Scalar,
    binary,
    cast,
    compare,
    literal,
    negative,
    pair,
    part,
    select,
)
from symc.runtime.cpu.scipy_functions import IN_TEXT

#: A value while a function is written: a scalar, several of them, a pointer (to elements of a type), or Python numbers.
Value = Any
SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


class Declarations(Protocol):
    """What expressions need of the module that they are in: tables, helpers, and what is declared."""

    @property
    def afterwards(self) -> object:
        """None in what is linked in after vectorization."""

    def declare(self, name: str, result: str, operands: Sequence[str]) -> None: ...
    def table(self, numbers: tuple, t: str) -> str: ...
    def helper(self, helper: Helper, types: tuple[str, ...]) -> tuple[str, Any]: ...
    def polled(self, words: Pointer) -> str: ...
    def rarely(self, condition: Scalar, helper: Helper, usual: Scalar, xs: Sequence[Scalar]) -> str: ...


class Pointer:
    """An operand in memory."""

    def __init__(self, element: str, ref: str):
        self.element, self.ref = element, ref


def llvm_type(t: Any) -> str:
    return LLVM[t] if isinstance(t, str) else "{ " + ", ".join(LLVM[x] for x in t) + " }"


class Expressions:
    """Writes the instructions of one function."""

    def __init__(self, module: Declarations, meaning: Callable[[str], Any], operands: Mapping[str, Value]):
        """``meaning``: what names mean that the function does not assign; None for one that is unknown."""
        self.module, self.meaning = module, meaning
        self.head: list[str] = []  # the memory of variables
        self.lines: list[str] = []
        self.count = 0
        self.names: dict[str, Value] = dict(operands)
        self.variables: dict[str, tuple[str, str]] = {}  # name -> (type, address)
        self.result: Any = None
        self.block = "start"
        self.open = True  # does the block go on?
        self.loops: list[tuple[str, str]] = []  # where `continue` and `break` go
        self.given = [n for n, v in operands.items() if isinstance(v, Scalar)]

    def text(self) -> str:
        end = "" if not self.open else "  ret void\n" if self.result is None else "  unreachable\n"
        return "start:\n" + "".join(self.head) + "".join(self.lines) + end

    # -- instructions

    def emit(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {instruction}\n")
        return f"%v{self.count}"

    def do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}\n")

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def go(self, label: str) -> None:
        if self.open:
            self.do(f"br label %{label}")
        self.open = False

    def branch(self, condition: Scalar, yes: str, no: str) -> None:
        self.do(f"br i1 {self.truth(condition).ref}, label %{yes}, label %{no}")
        self.open = False

    def place(self, label: str) -> None:
        self.go(label)
        self.lines.append(f"{label}:\n")
        self.block, self.open = label, True

    # -- expressions

    def scalar(self, e: ast.expr) -> Scalar:
        x = self.value(e)
        if not isinstance(x, Scalar):
            raise Unsupported("more than one number")
        return x

    def truth(self, x: Scalar) -> Scalar:
        return cast(self.emit, x, "bool")

    def value(self, e: ast.expr) -> Value:
        write = getattr(self, f"of_{type(e).__name__}", None)
        if write is None:
            raise Unsupported(type(e).__name__)
        return write(e)

    def of_Constant(self, e: ast.Constant) -> Scalar:
        return literal(e.value)

    def of_Name(self, e: ast.Name) -> Value:
        if e.id in self.variables:
            t, address = self.variables[e.id]
            return Scalar(t, self.emit(f"load {LLVM[t]}, ptr {address}"))
        if e.id in self.names:
            return self.names[e.id]
        found = self.meaning(e.id)
        if found is None:
            raise Unsupported(f"the name {e.id}")
        if isinstance(found, np.ndarray):
            return tuple(found.tolist())
        return found if isinstance(found, tuple) else literal(found)

    def of_Attribute(self, e: ast.Attribute) -> Scalar:
        if isinstance(e.value, ast.Name) and e.value.id == "math" and e.attr in ("inf", "nan", "pi"):
            return literal(getattr(math, e.attr))
        if e.attr in ("real", "imag"):
            return part(self.emit, self.scalar(e.value), ("real", "imag").index(e.attr))
        raise Unsupported(f".{e.attr}")

    def of_UnaryOp(self, e: ast.UnaryOp) -> Scalar:
        x = self.scalar(e.operand)
        if isinstance(e.op, ast.Not):
            x = self.truth(x)
            return Scalar("bool", self.emit(f"xor i1 {x.ref}, true"))
        if isinstance(e.op, ast.USub):
            return negative(self.emit, x)
        if isinstance(e.op, ast.Invert) and x.type not in ("f32", "f64"):
            if x.type != "bool":
                x = cast(self.emit, x, "u64" if x.type[0] == "u" else "i64")
            return Scalar(x.type, self.emit(f"xor {LLVM[x.type]} {x.ref}, {'true' if x.type == 'bool' else -1}"))
        raise Unsupported("this operator")

    def of_BinOp(self, e: ast.BinOp) -> Scalar:
        if isinstance(e.op, ast.Pow):
            x, y = self.scalar(e.left), self.scalar(e.right)
            if x.number is None or y.number is None:
                raise Unsupported("** of what is no number")
            return literal(x.number**y.number)
        if type(e.op) not in SIGNS:
            raise Unsupported(type(e.op).__name__)
        return binary(self.emit, SIGNS[type(e.op)], self.scalar(e.left), self.scalar(e.right))

    def of_Compare(self, e: ast.Compare) -> Scalar:
        terms = [self.scalar(x) for x in (e.left, *e.comparators)]
        found = [compare(self.emit, SIGNS[type(op)], a, b)
                 for op, a, b in zip(e.ops, terms, terms[1:], strict=False)]
        return self.all_of(found, "and")

    def of_BoolOp(self, e: ast.BoolOp) -> Scalar:
        """All operands are computed, so that no branch keeps a loop from vectorizing; but memory is read only if the
        operands before say so."""
        if any(isinstance(n, ast.Subscript) for x in e.values[1:] for n in ast.walk(x)):
            found, *others = e.values
            rest = others[0] if len(others) == 1 else ast.BoolOp(e.op, others)
            known = ast.Constant(isinstance(e.op, ast.Or))
            pair = (rest, known) if isinstance(e.op, ast.And) else (known, rest)
            return self.choice(self.truth(self.scalar(found)), *pair)
        return self.all_of([self.truth(self.scalar(x)) for x in e.values], "and" if isinstance(e.op, ast.And) else "or")

    def all_of(self, truths: Sequence[Scalar], how: str) -> Scalar:
        found = truths[0]
        for x in truths[1:]:
            found = Scalar("bool", self.emit(f"{how} i1 {found.ref}, {x.ref}"))
        return found

    def of_IfExp(self, e: ast.IfExp) -> Value:
        condition = self.truth(self.scalar(e.test))
        rare = self.rare(e.body)
        if rare is not None:
            assert isinstance(e.body, ast.Call)
            xs = [self.scalar(a) for a in e.body.args]
            usual = self.scalar(e.orelse)
            return Scalar(usual.type, self.emit(self.module.rarely(condition, rare, usual, xs)))
        if any(map(self.is_dear, (e.body, e.orelse))):
            return self.choice(condition, e.body, e.orelse)
        if isinstance(e.body, ast.Tuple) and isinstance(e.orelse, ast.Tuple):
            pairs = zip(e.body.elts, e.orelse.elts, strict=True)
            return [select(self.emit, condition, self.scalar(a), self.scalar(b)) for a, b in pairs]
        return select(self.emit, condition, self.scalar(e.body), self.scalar(e.orelse))

    def rare(self, e: ast.expr) -> Helper | None:
        """The helper for rare operands that an expression calls, where loops are to be vectorized around it."""
        if self.module.afterwards is None or not isinstance(e, ast.Call):
            return None
        helper = self.helper(getattr(e.func, "id", ""), narrow=False)
        return helper if helper is not None and helper.rarely else None

    def helper(self, name: str, narrow: bool) -> Helper | None:
        """The function of the library that a name means; None for a primitive and what is none."""
        found = None if primitive(name) else self.meaning(name)
        found = found.of(narrow) if isinstance(found, Widths) else found
        return found if isinstance(found, Helper) else None

    def is_dear(self, e: ast.expr) -> bool:
        """Whether an expression calls what should not run for nothing."""
        for node in ast.walk(e):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Attribute) and node.func.attr not in ("sqrt", "copysign", "floor"):
                    return True
                name = getattr(node.func, "id", "")
                helper = self.helper(name, narrow=False)
                if name.startswith(IN_TEXT) or helper is not None and helper.called:
                    return True
        return False

    def choice(self, condition: Scalar, body: ast.expr, orelse: ast.expr) -> Scalar:
        """Either of two, by a branch: for what takes long to compute."""
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(condition, yes, no)
        self.place(yes)
        a = self.scalar(body)
        yes = self.block
        self.go(after)
        self.place(no)
        b = cast(self.emit, self.scalar(orelse), a.type)
        no = self.block
        self.place(after)
        return Scalar(a.type, self.emit(f"phi {LLVM[a.type]} [ {a.ref}, %{yes} ], [ {b.ref}, %{no} ]"))

    def place_of(self, e: ast.Subscript) -> tuple[Pointer, str]:
        pointer = self.value(e.value)
        if not isinstance(pointer, Pointer):
            raise Unsupported("an index of no array")
        index = cast(self.emit, self.scalar(e.slice), "i64")
        return pointer, self.emit(f"getelementptr inbounds {LLVM[pointer.element]}, ptr {pointer.ref}, i64 {index.ref}")

    def in_memory(self, pointer: Pointer, address: str) -> list[tuple[str, str]]:
        """The types and addresses of an element's parts: loops vectorize around floats."""
        if pointer.element not in PARTS:
            return [(pointer.element, address)]
        t = PARTS[pointer.element]
        return [(t, address), (t, self.emit(f"getelementptr inbounds {LLVM[t]}, ptr {address}, i64 1"))]

    def of_Subscript(self, e: ast.Subscript) -> Scalar:
        found = self.value(e.value)
        if isinstance(found, Pointer):
            pointer, address = self.place_of(e)
            found = [Scalar(t, self.emit(f"load {LLVM[t]}, ptr {at}")) for t, at in self.in_memory(pointer, address)]
            return found[0] if len(found) == 1 else pair(self.emit, pointer.element, *found)
        index = self.scalar(e.slice)
        if isinstance(found, list):
            return found[int(index.number or 0)]
        if index.number is not None:
            return literal(found[int(index.number)])
        t = literal(found[0]).type
        table = self.module.table(tuple(np.asarray(found).tolist()), t)
        at = cast(self.emit, index, "i64")
        address = self.emit(f"getelementptr inbounds {LLVM[t]}, ptr {table}, i64 {at.ref}")
        return Scalar(t, self.emit(f"load {LLVM[t]}, ptr {address}"))

    def of_Call(self, e: ast.Call) -> Value:
        name = f"math.{e.func.attr}" if isinstance(e.func, ast.Attribute) else getattr(e.func, "id", "")
        if e.keywords:
            raise Unsupported("keywords")
        if name == "polled":
            return Scalar("bool", self.emit(self.module.polled(self.value(e.args[0]))))
        if isinstance(e.func, ast.Attribute) and e.func.attr == "conjugate":
            z = self.scalar(e.func.value)
            return pair(self.emit, z.type, part(self.emit, z, 0), negative(self.emit, part(self.emit, z, 1)))
        xs = [self.scalar(a) for a in e.args]
        found = primitive(name)
        if found is not None:
            return found(self.emit, self.module.declare, xs)
        helper = self.helper(name, narrow=bool(xs) and xs[0].type in ("f32", "u32"))
        if helper is None:
            raise Unsupported(f"the function {name}")
        return self.call(helper, xs)

    def call(self, helper: Helper, xs: Sequence[Scalar]) -> Value:
        symbol, result = self.module.helper(helper, tuple(x.type for x in xs))
        found = self.emit(f"call {llvm_type(result)} @{symbol}({', '.join(f'{LLVM[x.type]} {x.ref}' for x in xs)})")
        if isinstance(result, str):
            return Scalar(result, found)
        return [Scalar(t, self.emit(f"extractvalue {llvm_type(result)} {found}, {k}")) for k, t in enumerate(result)]
