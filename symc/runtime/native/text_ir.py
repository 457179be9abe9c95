"""LLVM's text, instruction by instruction: the part of ``llvmlite.ir`` that the native functions here are written with.

``llvmlite.ir`` keeps objects of everything and formats them at the end, 11 ms for the interpreter of plans; here an
instruction is text when it is written, but for what is completed later (``phi``, ``switch``, the alignment of a load).
The names are those of ``llvmlite.ir``, which may take this module's place but for ``splat``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class Type:
    def __init__(self, text: str):
        self.text = text

    def __str__(self) -> str:
        return self.text

    def as_pointer(self) -> Pointer:
        return Pointer(self)


class Pointer(Type):
    """``to``: what a call through it returns is said there."""

    def __init__(self, to: Type):
        super().__init__("ptr")
        self.to = to


class FunctionType(Type):
    def __init__(self, return_type: Type, args: Sequence[Type]):
        super().__init__(f"{return_type} ({', '.join(map(str, args))})")
        self.return_type, self.args = return_type, tuple(args)


def IntType(width: int) -> Type:
    return Type(f"i{width}")


def VoidType() -> Type:
    return Type("void")


def FloatType() -> Type:
    return Type("float")


def DoubleType() -> Type:
    return Type("double")


def VectorType(element: Type, count: int) -> Type:
    return Type(f"<{count} x {element}>")


class Value:
    """``ref``: what it is called."""

    def __init__(self, type_: Type, ref: str):
        self.type, self.ref = type_, ref

    def __str__(self) -> str:
        return f"{self.type} {self.ref}"


def Constant(type_: Type, number: Any) -> Value:
    if number is None:
        return Value(type_, "null")
    if type_.text in ("float", "double"):
        number = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016x}"
    return Value(type_, str(number))


class Load(Value):
    def __init__(self, type_: Type, ref: str, pointer: Value):
        super().__init__(type_, ref)
        self.pointer, self.align = pointer, 0

    def line(self) -> str:
        return f"{self.ref} = load {self.type}, {self.pointer}" + (f", align {self.align}" if self.align else "")


class Phi(Value):
    def __init__(self, type_: Type, ref: str):
        super().__init__(type_, ref)
        self.incoming: list[str] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        self.incoming.append(f"[ {value.ref}, {block.ref} ]")

    def line(self) -> str:
        return f"{self.ref} = phi {self.type} {', '.join(self.incoming)}"


class Switch:
    def __init__(self, value: Value, default: Block):
        self.value, self.default, self.cases = value, default, list[str]()

    def add_case(self, number: Value, block: Block) -> None:
        self.cases.append(f"{number}, label {block.ref}")

    def line(self) -> str:
        return f"switch {self.value}, label {self.default.ref} [ {' '.join(self.cases)} ]"


class Block:
    def __init__(self, function: Function, name: str):
        self.function, self.name, self.ref = function, name, f"%{name}"
        self.lines: list[Any] = []
        self.is_terminated = False

    def text(self) -> str:
        lines = (f"  {line if isinstance(line, str) else line.line()}\n" for line in self.lines)
        return f"{self.name}:\n{''.join(lines)}"


class Module:
    def __init__(self, name: str):
        self.functions: list[Function] = []
        self.globals: dict[str, Function] = {}
        self.notes: dict[str, str] = {}

    def note(self, text: str) -> str:
        """Metadata."""
        return self.notes.setdefault(text, f"!{len(self.notes)}")

    def __str__(self) -> str:
        notes = [f"{name} = {text}\n" for text, name in self.notes.items()]
        return "".join([*[f.text() for f in self.functions], *notes])


class Function(Value):
    """Declared, and defined once it has a block."""

    def __init__(self, module: Module, type_: FunctionType, name: str):
        super().__init__(Pointer(type_), f"@{name}")
        self.module, self.function_type = module, type_
        self.args = tuple(Value(t, f"%a{k}") for k, t in enumerate(type_.args))
        self.blocks: list[Block] = []
        self.linkage = ""
        self.count = 0
        module.functions.append(self)
        module.globals[name] = self

    def number(self) -> int:
        self.count += 1
        return self.count

    def append_basic_block(self, name: str = "") -> Block:
        self.blocks.append(Block(self, f"{name}.{self.number()}"))
        return self.blocks[-1]

    def text(self) -> str:
        head = f"{self.function_type.return_type} {self.ref}({', '.join(map(str, self.args))})"
        if not self.blocks:
            return f"declare {head}\n"
        return f"define {self.linkage} {head} {{\n{''.join(b.text() for b in self.blocks)}}}\n"


class IRBuilder:
    """Writes at the end of a block."""

    def __init__(self, block: Block):
        self.block = block

    @property
    def function(self) -> Function:
        return self.block.function

    def position_at_end(self, block: Block) -> None:
        self.block = block

    def _do(self, line: Any, ends: bool = False) -> Any:
        self.block.lines.append(line)
        self.block.is_terminated |= ends
        return line

    def _name(self, name: str = "") -> str:
        return f"%{name}.{self.function.number()}"

    def _value(self, type_: Type, text: str) -> Value:
        ref = self._name()
        self.block.lines.append(f"{ref} = {text}")
        return Value(type_, ref)

    def _two(self, how: str, a: Value, b: Value) -> Value:
        return self._value(a.type, f"{how} {a}, {b.ref}")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self._value(a.type, f"select {condition}, {a}, {b}")

    def icmp_signed(self, sign: str, a: Value, b: Value) -> Value:
        return self._value(Type("i1"), f"icmp {_COMPARE[sign].replace('?', 's')} {a}, {b.ref}")

    def icmp_unsigned(self, sign: str, a: Value, b: Value) -> Value:
        return self._value(Type("i1"), f"icmp {_COMPARE[sign].replace('?', 'u')} {a}, {b.ref}")

    def fcmp_ordered(self, sign: str, a: Value, b: Value) -> Value:
        return self._value(Type("i1"), f"fcmp o{_COMPARE[sign].strip('?')} {a}, {b.ref}")

    def fcmp_unordered(self, sign: str, a: Value, b: Value) -> Value:
        return self._value(Type("i1"), f"fcmp u{_COMPARE[sign].strip('?')} {a}, {b.ref}")

    # -- memory

    def alloca(self, type_: Type, size: int | None = None) -> Value:
        return self._value(type_.as_pointer(), f"alloca {type_}" + ("" if size is None else f", i32 {size}"))

    def gep(self, base: Value, indices: Sequence[Value], source_etype: Type) -> Value:
        return self._value(base.type, f"getelementptr {source_etype}, {base}, {', '.join(map(str, indices))}")

    def load(self, pointer: Value, typ: Type) -> Load:
        return self._do(Load(typ, self._name(), pointer))

    def store(self, value: Value, pointer: Value, align: int = 0) -> None:
        self._do(f"store {value}, {pointer}" + (f", align {align}" if align else ""))

    def load_atomic(self, pointer: Value, ordering: str, align: int, typ: Type) -> Value:
        return self._value(typ, f"load atomic {typ}, {pointer} {ordering}, align {align}")

    def store_atomic(self, value: Value, pointer: Value, ordering: str, align: int) -> None:
        self._do(f"store atomic {value}, {pointer} {ordering}, align {align}")

    def atomic_rmw(self, how: str, pointer: Value, value: Value, ordering: str) -> Value:
        return self._value(value.type, f"atomicrmw {how} {pointer}, {value} {ordering}")

    def cmpxchg(self, pointer: Value, old: Value, new: Value, ordering: str, failed: str) -> Value:
        return self._value(Type(f"{{ {old.type}, i1 }}"), f"cmpxchg {pointer}, {old}, {new} {ordering} {failed}")

    def extract_value(self, pair: Value, k: int) -> Value:
        parts = pair.type.text.strip("{} ").split(", ")
        return self._value(Type(parts[k]), f"extractvalue {pair}, {k}")

    def splat(self, x: Value, type_: Type) -> Value:
        """A vector of this type with x in every place."""
        one, places = self._value(type_, f"insertelement {type_} poison, {x}, i32 0"), type_.text.split(" x ")[0]
        return self._value(type_, f"shufflevector {one}, {type_} poison, {places} x i32> zeroinitializer")

    # -- control

    def call(self, function: Value, arguments: Sequence[Value]) -> Value:
        assert isinstance(function.type, Pointer) and isinstance(function.type.to, FunctionType)
        result = function.type.to.return_type
        text = f"call {result} {function.ref}({', '.join(map(str, arguments))})"
        return self._do(text) if result.text == "void" else self._value(result, text)

    def phi(self, type_: Type, name: str = "") -> Phi:
        return self._do(Phi(type_, self._name(name)))

    def switch(self, value: Value, default: Block) -> Switch:
        return self._do(Switch(value, default), ends=True)

    def branch(self, block: Block) -> None:
        self._do(f"br label {block.ref}", ends=True)

    def cbranch(self, condition: Value, yes: Block, no: Block) -> None:
        self._do(f"br {condition}, label {yes.ref}, label {no.ref}", ends=True)

    def ret(self, value: Value) -> None:
        self._do(f"ret {value}", ends=True)

    def ret_void(self) -> None:
        self._do("ret void", ends=True)

    @contextmanager
    def if_then(self, condition: Value, likely: bool | None = None) -> Iterator[Block]:
        yes, after = self.function.append_basic_block("if"), self.function.append_basic_block("endif")
        self.cbranch(condition, yes, after)
        if likely is not None:
            weights = "i32 99, i32 1" if likely else "i32 1, i32 99"
            note = self.function.module.note(f'!{{ !"branch_weights", {weights} }}')
            self.block.lines[-1] += f", !prof {note}"
        with self._inside(yes, after):
            yield after
        self.position_at_end(after)

    @contextmanager
    def if_else(self, condition: Value) -> Iterator[tuple[Any, Any]]:
        yes, no, after = (self.function.append_basic_block(n) for n in ("if", "else", "endif"))
        self.cbranch(condition, yes, no)
        yield self._inside(yes, after), self._inside(no, after)
        self.position_at_end(after)

    @contextmanager
    def _inside(self, block: Block, after: Block) -> Iterator[None]:
        self.position_at_end(block)
        yield
        if not self.block.is_terminated:
            self.branch(after)


_COMPARE = {"==": "eq", "!=": "ne", "<": "?lt", "<=": "?le", ">": "?gt", ">=": "?ge"}


def _binary(how: str) -> Any:
    return lambda self, a, b: self._two(how, a, b)


def _cast(how: str) -> Any:
    return lambda self, a, type_: self._value(type_, f"{how} {a} to {type_}")


for _how in ("add", "sub", "mul", "udiv", "sdiv", "shl", "lshr", "and", "or", "xor", "fadd", "fsub", "fmul"):
    setattr(IRBuilder, _how + "_" * (_how in ("and", "or")), _binary(_how))
for _how in ("zext", "sext", "trunc", "bitcast", "ptrtoint", "inttoptr"):
    setattr(IRBuilder, _how, _cast(_how))
