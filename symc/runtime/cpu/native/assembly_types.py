"""Types, operands and constants of LLVM's assembly (``assembly``)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any


class Type:
    """A type: equal to another that is spelled alike. Called with a number, its constant."""

    def __init__(self, text: str):
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __call__(self, value: Any) -> Constant:
        return Constant(self, value)

    def as_pointer(self) -> PointerType:
        return PointerType(self)


class IntType(Type):
    def __init__(self, width: int):
        super().__init__(f"i{width}")
        self.width = width


class FloatType(Type):
    def __init__(self) -> None:
        super().__init__("float")


class DoubleType(Type):
    def __init__(self) -> None:
        super().__init__("double")


class VoidType(Type):
    def __init__(self) -> None:
        super().__init__("void")


class VectorType(Type):
    def __init__(self, element: Type, count: int):
        super().__init__(f"<{count} x {element}>")
        self.element, self.count = element, count


class PointerType(Type):
    """A pointer. LLVM asks not to what; a load and a call do."""

    def __init__(self, pointee: Type):
        super().__init__("ptr")
        self.pointee = pointee


class FunctionType(Type):
    def __init__(self, result: Type, arguments: Sequence[Type]):
        super().__init__(f"{result} ({', '.join(map(str, arguments))})")
        self.result, self.arguments = result, tuple(arguments)


class Value:
    """An operand: its name or number, and its type."""

    __slots__ = ("text", "type")

    def __init__(self, type_: Any, text: str):
        self.type, self.text = type_, text

    def __str__(self) -> str:
        return self.text


#: Is no value in particular, as a constant.
Undefined = object()


class Constant(Value):
    """A number; for a vector, its numbers. ``None``: zero of any type."""

    __slots__ = ()

    def __init__(self, type_: Type, value: Any):
        super().__init__(type_, constant(type_, value))


def constant(t: Type, value: Any) -> str:
    if value is None:
        return "null" if isinstance(t, PointerType) else "zeroinitializer"
    if value is Undefined:
        return "undef"
    if isinstance(t, VectorType):
        return f"<{', '.join(f'{t.element} {constant(t.element, x)}' for x in value)}>"
    if isinstance(value, Value):
        return value.text
    return f"0x{struct.pack('>d', value).hex()}" if isinstance(t, FloatType | DoubleType) else str(int(value))
