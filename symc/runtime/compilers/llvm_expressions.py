"""Blocks, memory, calls and choices of a function in LLVM: the part of its compiler that statements build on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symc.codegen.language.expressions import Primitive
from symc.codegen.language.helpers import Helper
from symc.codegen.language.native import Outside
from symc.codegen.language.syntax import Unsupported, every
from symc.codegen.language.typed import PARTS, Pointer, Scalar, Value
from symc.runtime.compilers.llvm_literals import vectorized
from symc.runtime.compilers.llvm_primitives import primitive
from symc.runtime.compilers.llvm_scalars import LLVM, Declarations, Instructions

#: What takes and gives addresses and integers of C, by the letters of ``Outside``.
_OUTSIDE = {"v": "void", "p": "ptr", "i": "i32", "l": "i64"}


def llvm_type(t: Any) -> str:
    if isinstance(t, str):
        return "ptr" if t.endswith("*") else LLVM[t]
    return "void" if t is None else "{ " + ", ".join(LLVM[x] for x in t) + " }"


class Blocks(Instructions):
    """Writes the blocks of one function."""

    def __init__(self, module: Declarations, meaning: Callable[[str], Any], operands: Mapping[str, Value]):
        super().__init__(module, meaning, operands)
        self.block = "start"
        self.loops: list[tuple[str, str]] = []  # where `continue` and `break` go

    def text(self) -> str:
        end = "" if not self.open else "  ret void\n" if self.result is None else "  unreachable\n"
        return "start:\n" + "".join(self.head) + "".join(self.lines) + end

    def do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}\n")

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def go(self, label: str) -> None:
        if self.open:
            self.do(f"br label %{label}")
        self.open = False

    def branch(self, condition: Scalar, yes: str, no: str, note: str = "") -> None:
        self.do(f"br i1 {self.truth(condition).ref}, label %{yes}, label %{no}{note}")
        self.open = False

    def place(self, label: str) -> None:
        self.go(label)
        self.lines.append(f"{label}:\n")
        self.block, self.open = label, True

    # -- variables and memory

    def variable(self, name: str, t: str) -> str:
        """Memory, which LLVM makes registers of again."""
        address = f"%m{len(self.variables)}.{name}"
        self.head.append(f"  {address} = alloca {LLVM[t]}\n")
        return address

    def loaded(self, name: str) -> Scalar:
        t, address = self.variables[name]
        return Scalar(t, self.emit(f"load {LLVM[t]}, ptr {address}"))

    def update(self, name: str, x: Scalar) -> None:
        self.do(f"store {LLVM[x.type]} {x.ref}, ptr {self.variables[name][1]}")

    def place_of(self, e: ast.Subscript) -> tuple[Pointer, str]:
        pointer = self.value(e.value)
        if not isinstance(pointer, Pointer):
            raise Unsupported("an index of no array")
        index = self.cast(self.scalar(e.slice), "i64")
        return pointer, self.emit(f"getelementptr inbounds {LLVM[pointer.element]}, ptr {pointer.ref}, i64 {index.ref}")

    def in_memory(self, pointer: Pointer, address: str) -> list[tuple[str, str]]:
        """The types and addresses of an element's parts: loops vectorize around floats."""
        if pointer.element not in PARTS:
            return [(pointer.element, address)]
        t = PARTS[pointer.element]
        return [(t, address), (t, self.emit(f"getelementptr inbounds {LLVM[t]}, ptr {address}, i64 1"))]

    def element(self, e: ast.Subscript) -> Scalar:
        pointer, address = self.place_of(e)
        found = [Scalar(t, self.emit(f"load {LLVM[t]}, ptr {at}")) for t, at in self.in_memory(pointer, address)]
        return found[0] if len(found) == 1 else self.pair(pointer.element, *found)

    def store(self, target: ast.Subscript, x: Scalar) -> None:
        pointer, address = self.place_of(target)
        x = self.cast(x, pointer.element)
        for k, (kind, at) in enumerate(self.in_memory(pointer, address)):
            self.do(f"store {LLVM[kind]} {(x if kind == x.type else self.part(x, k)).ref}, ptr {at}{pointer.note}")

    def offset(self, array: Pointer, index: Scalar) -> Pointer:
        at = self.emit(f"getelementptr inbounds {LLVM[array.element]}, ptr {array.ref}, i64 {index.ref}")
        return Pointer(array.element, at)

    def either(self, condition: Scalar, a: Pointer, b: Pointer) -> Pointer:
        return Pointer(a.element, self.emit(f"select i1 {condition.ref}, ptr {a.ref}, ptr {b.ref}"))

    def function(self, helper: Helper) -> Pointer:
        kinds = [ast.unparse(a.annotation.slice) for a in helper.tree.args.args]  # type: ignore[union-attr]
        return Pointer("u8", f"@{self.module.helper(helper, tuple(f'{t}*' for t in kinds))[0]}")

    def in_table(self, numbers: Sequence[Any], t: str, index: Scalar) -> Scalar:
        table = self.module.table([self.constant(t, x).ref for x in numbers], t)
        address = self.emit(f"getelementptr inbounds {LLVM[t]}, ptr {table}, i64 {index.ref}")
        return Scalar(t, self.emit(f"load {LLVM[t]}, ptr {address}"))

    # -- calls and choices

    def primitive(self, name: str) -> Primitive | None:
        return primitive(name)

    def call(self, helper: Helper, xs: Sequence[Scalar]) -> Value:
        if (known := vectorized(self, helper, xs)) is not None:
            return known
        symbol, result = self.module.helper(helper, tuple(x.type for x in xs))
        text = f"call {llvm_type(result)} @{symbol}({', '.join(f'{llvm_type(x.type)} {x.ref}' for x in xs)})"
        if result is None:
            return self.do(text)
        found = self.emit(text)
        if isinstance(result, str):
            return Scalar(result, found)
        return [Scalar(t, self.emit(f"extractvalue {llvm_type(result)} {found}, {k}")) for k, t in enumerate(result)]

    def outside(self, function: Outside, xs: Sequence[Value]) -> Value:
        given = [x if isinstance(x, Pointer) or t != "p" else Pointer("u8", self.emit(f"inttoptr i64 {x.ref} to ptr"))
                 for t, x in zip("p" * (not function.name) + function.takes, xs, strict=True)]
        target = f"@{function.name}" if function.name else given.pop(0).ref
        result, types = _OUTSIDE[function.gives], [_OUTSIDE[t] for t in function.takes]
        if function.name:
            self.module.declare(function.name, result, types)
        refs = [x.ref if isinstance(x, Pointer) else self.cast(x, t).ref for x, t in zip(given, types, strict=True)]
        text = f"call {result} {target}({', '.join(map(' '.join, zip(types, refs, strict=True)))})"
        return Scalar(result, self.emit(text)) if result[0] == "i" else self.do(text)

    def of_BoolOp(self, e: ast.BoolOp) -> Scalar:
        """All operands are computed, so that no branch keeps a loop from vectorizing; but memory is read only if the
        operands before say so."""
        if any(isinstance(n, ast.Subscript) for n in every(*e.values[1:])):
            found, *others = e.values
            rest = others[0] if len(others) == 1 else ast.BoolOp(e.op, others)
            known = ast.Constant(isinstance(e.op, ast.Or))
            pair = (rest, known) if isinstance(e.op, ast.And) else (known, rest)
            return self.choice(self.truth(self.scalar(found)), *pair)
        return super().of_BoolOp(e)

    def rarely(self, condition: Scalar, helper: Helper, e: ast.IfExp) -> Value:
        """A call that loops are vectorized around."""
        if self.module.afterwards is None:
            return self.choice(condition, e.body, e.orelse)
        assert isinstance(e.body, ast.Call)
        xs = [self.scalar(a) for a in e.body.args]
        usual = self.scalar(e.orelse)
        return Scalar(usual.type, self.emit(self.module.rarely(condition, helper, usual, xs)))

    def choice(self, condition: Scalar, body: ast.expr, orelse: ast.expr) -> Scalar:
        """Either of two, by a branch: for what takes long to compute."""
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(condition, yes, no)
        self.place(yes)
        a = self.scalar(body)
        yes = self.block
        self.go(after)
        self.place(no)
        b = self.cast(self.scalar(orelse), a.type)
        no = self.block
        self.place(after)
        return Scalar(a.type, self.emit(f"phi {LLVM[a.type]} [ {a.ref}, %{yes} ], [ {b.ref}, %{no} ]"))
