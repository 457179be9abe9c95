"""LLVM's assembly, written through a builder: the part of ``llvmlite.ir`` that native functions need, by its names.

An instruction is a line of text as soon as it is made, and nothing is kept of it but the name and the type of its
result. With ``llvmlite.ir``, which keeps graphs of objects, the text of the interpreter of plans took five times as
long, in every process that finds no machine code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from symc.runtime.cpu.native.assembly_types import (
    Constant,
    DoubleType,
    FloatType,
    FunctionType,
    IntType,
    PointerType,
    Type,
    Undefined,
    Value,
    VectorType,
    VoidType,
    constant,
)

__all__ = ["Constant", "DoubleType", "FloatType", "Function", "FunctionType", "IRBuilder", "IntType", "Module", "Type",
           "Undefined", "Value", "VectorType", "VoidType"]


class Phi(Value):
    """A value that depends on the block before. ``entries`` grow until the text is made."""

    __slots__ = ("entries",)

    def __init__(self, type_: Type, text: str):
        super().__init__(type_, text)
        self.entries: list[str] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        self.entries.append(f"[{value.text}, %{block.name}]")

    def line(self) -> str:
        return f"{self.text} = phi {self.type} {', '.join(self.entries)}"


class Switch:
    """A jump by a number. ``cases`` grow until the text is made."""

    def __init__(self, value: Value, default: Block):
        self.head, self.cases = f"switch {value.type} {value.text}, label %{default.name}", list[str]()

    def add_case(self, value: Value, block: Block) -> None:
        self.cases.append(f"{value.type} {value.text}, label %{block.name}")

    def line(self) -> str:
        return f"{self.head} [{' '.join(self.cases)}]"


class Block:
    """A basic block: lines, and how it ends."""

    def __init__(self, function: Function, name: str):
        self.function, self.name = function, name
        self.lines: list[str | Phi] = []
        self.end: str | Switch | None = None

    def text(self) -> str:
        lines = [x if isinstance(x, str) else x.line() for x in (*self.lines, self.end or "unreachable")]
        return "\n  ".join([f"{self.name}:", *lines])


class Function(Value):
    """A function, declared until it has a block. ``attributes``: words behind its head."""

    def __init__(self, module: Module, type_: FunctionType, name: str):
        super().__init__(type_.as_pointer(), f"@{name}")
        self.module, self.name, self.linkage, self.attributes = module, name, "", set[str]()
        self.args = [Value(t, f"%a{k}") for k, t in enumerate(type_.arguments)]
        self.blocks: list[Block] = []
        self.count = 0  # of values
        module.globals[name] = self

    def append_basic_block(self, name: str = "") -> Block:
        block = Block(self, f"{name or 'b'}.{len(self.blocks)}")
        self.blocks.append(block)
        return block

    def definition(self) -> str:
        result = self.type.pointee.result
        if not self.blocks:
            return f"declare {result} {self.text}({', '.join(str(a.type) for a in self.args)})"
        linkage = f"{self.linkage} " if self.linkage else ""
        arguments = ", ".join(f"{a.type} {a.text}" for a in self.args)
        head = " ".join([f"define {linkage}{result} {self.text}({arguments})", *sorted(self.attributes), "{"])
        return "\n".join([head, *(b.text() for b in self.blocks), "}"])


class Module:
    """The functions of a module, by name."""

    def __init__(self) -> None:
        self.globals: dict[str, Function] = {}

    def __str__(self) -> str:
        weights = [f'!{k} = !{{!"branch_weights", i32 {a}, i32 {c}}}' for k, (a, c) in enumerate(((1, 99), (99, 1)))]
        return "\n".join([*(f.definition() for f in self.globals.values()), *weights, ""])


_BIT = IntType(1)
_SIGNS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "ord": "ord", "uno": "uno"}


class Instructions:
    """Writes instructions into ``block``. What is made of two operands or cast is made below, in tables."""

    def __init__(self, block: Block):
        self.block = block

    @property
    def function(self) -> Function:
        return self.block.function

    @property
    def module(self) -> Module:
        return self.block.function.module

    def made(self, type_: Any, text: str) -> Value:
        """The result of an instruction."""
        function = self.block.function
        function.count += 1
        value = Value(type_, f"%v{function.count}")
        self.block.lines.append(f"{value.text} = {text}")
        return value

    def compare(self, how: str, a: Value, c: Value) -> Value:
        kind = VectorType(_BIT, a.type.count) if isinstance(a.type, VectorType) else _BIT
        return self.made(kind, f"{how} {a.type} {a.text}, {c.text}")

    def icmp_signed(self, sign: str, a: Value, c: Value) -> Value:
        return self.compare(f"icmp {'s' if sign not in ('==', '!=') else ''}{_SIGNS[sign]}", a, c)

    def icmp_unsigned(self, sign: str, a: Value, c: Value) -> Value:
        return self.compare(f"icmp {'u' if sign not in ('==', '!=') else ''}{_SIGNS[sign]}", a, c)

    def fcmp_ordered(self, sign: str, a: Value, c: Value) -> Value:
        return self.compare(f"fcmp {'o' if sign != 'ord' else ''}{_SIGNS[sign]}", a, c)

    def not_(self, a: Value) -> Value:
        ones = [-1] * a.type.count if isinstance(a.type, VectorType) else -1
        return self.made(a.type, f"xor {a.type} {a.text}, {constant(a.type, ones)}")

    def fneg(self, a: Value) -> Value:
        return self.made(a.type, f"fneg {a.type} {a.text}")

    def select(self, condition: Value, a: Value, c: Value) -> Value:
        return self.made(a.type, f"select {condition.type} {condition.text}, {a.type} {a.text}, {c.type} {c.text}")

    def bitcast(self, a: Value, to: Type) -> Value:
        if isinstance(to, PointerType):  # which is one already
            return Value(to, a.text)
        return self.made(to, f"bitcast {a.type} {a.text} to {to}")

    def phi(self, type_: Type, name: str = "") -> Phi:
        function = self.block.function
        function.count += 1
        phi = Phi(type_, f"%{name or 'p'}{function.count}")
        self.block.lines.append(phi)
        return phi

    # -- memory

    def alloca(self, type_: Type, size: int | Value | None = None) -> Value:
        count = "" if size is None else f", i32 {size}" if isinstance(size, int) else f", {size.type} {size.text}"
        return self.made(type_.as_pointer(), f"alloca {type_}{count}")

    def load(self, place: Value, typ: Type | None = None, align: int | None = None) -> Value:
        t = typ or place.type.pointee
        return self.made(t, f"load {t}, ptr {place.text}{'' if align is None else f', align {align}'}")

    def store(self, value: Value, place: Value, align: int | None = None) -> None:
        ending = "" if align is None else f", align {align}"
        self.block.lines.append(f"store {value.type} {value.text}, ptr {place.text}{ending}")

    def gep(self, base: Value, indices: Sequence[Value], source_etype: Type | None = None) -> Value:
        t = source_etype or base.type.pointee
        places = ", ".join(f"{i.type} {i.text}" for i in indices)
        return self.made(t.as_pointer(), f"getelementptr {t}, ptr {base.text}, {places}")

    # -- vectors

    def extract_element(self, vector: Value, k: Value) -> Value:
        return self.made(vector.type.element, f"extractelement {vector.type} {vector.text}, {k.type} {k.text}")

    def insert_element(self, vector: Value, x: Value, k: Value) -> Value:
        text = f"insertelement {vector.type} {vector.text}, {x.type} {x.text}, {k.type} {k.text}"
        return self.made(vector.type, text)

    def shuffle_vector(self, a: Value, c: Value, places: Value) -> Value:
        kind = VectorType(a.type.element, places.type.count)
        return self.made(kind, f"shufflevector {a.type} {a.text}, {c.type} {c.text}, {places.type} {places.text}")

    # -- calls

    def call(self, f: Value, arguments: Sequence[Value], fastmath: Sequence[str] = ()) -> Value:
        result = f.type.pointee.result
        given = ", ".join(f"{a.type} {a.text}" for a in arguments)
        text = f"call {''.join(f'{x} ' for x in fastmath)}{result} {f.text}({given})"
        if isinstance(result, VoidType):
            self.block.lines.append(text)
            return Value(result, "void")
        return self.made(result, text)


def _of_two(name: str) -> Any:
    def write(self: Instructions, a: Value, c: Value, flags: Sequence[str] = ()) -> Value:
        return self.made(a.type, f"{name} {''.join(f'{x} ' for x in flags)}{a.type} {a.text}, {c.text}")

    return write


def _cast(name: str) -> Any:
    def write(self: Instructions, a: Value, to: Type) -> Value:
        return self.made(to, f"{name} {a.type} {a.text} to {to}")

    return write


for _name in "add sub mul sdiv udiv urem and or xor shl fadd fsub fmul fdiv".split():
    setattr(Instructions, f"{_name}_" if _name in ("and", "or") else _name, _of_two(_name))
for _name in "trunc zext sext fptrunc sitofp fptosi inttoptr ptrtoint".split():
    setattr(Instructions, _name, _cast(_name))


class IRBuilder(Instructions):
    """A builder of functions: instructions, and where blocks begin and end."""

    def position_at_end(self, block: Block) -> None:
        self.block = block

    @contextmanager
    def goto_block(self, block: Block) -> Iterator[None]:
        """Write at the end of the block, before what ends it."""
        here, self.block = self.block, block
        yield
        self.block = here

    def goto_entry_block(self) -> AbstractContextManager[None]:
        return self.goto_block(self.function.blocks[0])

    def ret(self, value: Value) -> None:
        self.block.end = f"ret {value.type} {value.text}"

    def ret_void(self) -> None:
        self.block.end = "ret void"

    def branch(self, to: Block) -> None:
        self.block.end = f"br label %{to.name}"

    def cbranch(self, condition: Value, yes: Block, no: Block, likely: bool | None = None) -> None:
        weights = "" if likely is None else f", !prof !{int(likely)}"
        self.block.end = f"br i1 {condition.text}, label %{yes.name}, label %{no.name}{weights}"

    def switch(self, value: Value, default: Block) -> Switch:
        self.block.end = found = Switch(value, default)
        return found

    @contextmanager
    def _inside(self, block: Block, after: Block) -> Iterator[None]:
        self.block = block
        yield
        if self.block.end is None:
            self.branch(after)

    @contextmanager
    def if_then(self, condition: Value, likely: bool | None = None) -> Iterator[None]:
        yes, after = (self.function.append_basic_block(n) for n in ("then", "after"))
        self.cbranch(condition, yes, after, likely)
        with self._inside(yes, after):
            yield
        self.block = after

    @contextmanager
    def if_else(self, condition: Value, likely: bool | None = None) -> Iterator[Any]:
        yes, no, after = (self.function.append_basic_block(n) for n in ("then", "else", "after"))
        self.cbranch(condition, yes, no, likely)
        yield self._inside(yes, after), self._inside(no, after)
        self.block = after
