"""IR text to IR. Types in the text are inferred again; disagreement is an error.
An attribute that the op has by default may be left out.

module   ::= function*
function ::= "func" "@"name "(" [["state"] "%"name ":" type ","...] ")" "->" "(" types ")" "{" line* return "}"
line     ::= "%"name ","... "=" OP [operand ","...] ["{" key "=" attr ","... "}"] ":" type ","... ["{" region "}"]...
region   ::= "^" "(" "%"name ":" type ","... ")" ":" line* "yield" operand ","...
return   ::= "return" [operand ","...] ["update" "(" "%"name "=" operand ","... ")"]
operand  ::= "%"name | number ":" type
type     ::= dtype "[" size ","... "]"
attr     ::= "none" | "true" | "false" | number | string | size | dtype | type | "(" attr ","... ")" | dense
dense    ::= "dense" "(" type "," number ","... ")" | "dense" "(" type "," "#"digest ")"
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.errors import ParseError, SymcError
from symc.ir.attr_kinds import wrong_attr
from symc.ir.attrs import Array, Attrs
from symc.ir.function import Function, Input
from symc.ir.literal import print_attr
from symc.ir.op import Op, lookup, splat
from symc.ir.parse_parts import Reader
from symc.ir.types import TensorType, TupleType, Type
from symc.ir.value import Region, Value, make, param

#: What reading and typing what is no program raises, whoever does it.
_JUNK = (ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError,
         ValueError)  # fmt: skip


def parse(text: str, arrays: Mapping[str, np.ndarray] | None = None) -> Function:
    """The one function in ``text``. ``arrays`` maps digests (hex) to constant data the text names but does not hold.

    Raises ParseError with line and column for text that does not follow the grammar or disagrees with the ops.
    """
    functions = parse_module(text, arrays)
    if len(functions) != 1:
        raise ParseError(f"the text has {len(functions)} functions; one was expected")
    return functions[0]


def parse_module(text: str, arrays: Mapping[str, np.ndarray] | None = None) -> list[Function]:
    """Every function in ``text``."""
    p = _Parser(text, arrays or {})
    out = []
    while p.peek() != "":
        try:
            out.append(p.function())
        except SymcError:
            raise
        except _JUNK as e:
            raise p.error(f"{type(e).__name__}: {e}") from e
    return out


class _Parser(Reader):
    """Reads lines, regions and functions."""

    def operand(self, scope: Mapping[str, Value]) -> Value:
        token = self.peek()
        if token.startswith("%"):
            self.at += 1
            if token[1:] not in scope:
                raise self.error(f"{token} is not defined here", self.at - 1)
            return scope[token[1:]]
        start = self.at
        while self.tokens[self.at] not in (":", "", "}"):  # the type comes after the number, and says how to read it
            self.at += 1
        self.expect(":")
        t = self.type()
        end, self.at = self.at, start
        number = self.number(t.dtype)
        if self.tokens[self.at] != ":":
            raise self.error("expected ':' and a type after a number")
        self.at = end
        return splat(Array(number), t)

    def operands(self, scope: Mapping[str, Value], ends: tuple[str, ...]) -> list[Value]:
        out: list[Value] = []
        if self.peek() in ends:
            return out
        out.append(self.operand(scope))
        while self.accept(","):
            out.append(self.operand(scope))
        return out

    def attrs(self) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        if not self.accept("{"):
            return entries
        while not self.accept("}"):
            key = self.next()
            if key in entries or not key.isidentifier():
                raise self.error(f"{key!r} is given twice, or is no name", self.at - 1)
            self.expect("=")
            entries[key] = self.attr()
            if self.peek() != "}":
                self.expect(",")
        return entries

    def line(self, scope: dict[str, Value]) -> None:
        start = self.at
        names = [self.sigil("%")]
        while self.accept(","):
            names.append(self.sigil("%"))
        self.expect("=")
        try:
            op = lookup(self.next())
        except SymcError as e:
            error = self.error(e.what, self.at - 1)
            error.help = e.help
            raise error from None
        operands = self.operands(scope, ("{", ":"))
        attrs = self.attrs()
        self.expect(":")
        types = self.types()
        regions = []
        while self.peek() == "{" and self.tokens[self.at + 1] == "^":
            self.at += 1
            regions.append(self.region())
            self.expect("}")
        self.define(scope, names, self.build(op, operands, attrs, regions, start), types, start)

    def build(self, op: Op, operands: list[Value], said: dict[str, Any], regions: list[Region], start: int) -> Value:
        try:
            attrs = Attrs(op.with_defaults(operands, said))
            wrong = wrong_attr(op, attrs)
            if wrong is not None:
                raise self.error(f"{op.name}: {wrong} cannot be {print_attr(attrs[wrong])[:40]}", start)
            return make(op, operands, attrs, regions)
        except ParseError:
            raise
        except SymcError as e:
            raise self.error(e.what, start) from e
        except _JUNK as e:
            named = re.search(
                r"(unexpected|missing).* argument:? '(\w+)'", str(e)
            )  # what Python says of the call of infer
            if named and named[1] == "unexpected":
                raise self.error(f"{op.name} has no attribute {named[2]!r}", start) from None
            if named and op.infer.__annotations__.get(named[2]) in ("TensorType", "Type"):
                raise self.error(f"{op.name} needs more operands than {len(operands)}", start) from None
            if named:
                raise self.error(f"{op.name} needs the attribute {named[2]!r}", start) from None
            raise self.error(f"{op.name}: operands or attributes do not fit: {e}", start) from e

    def define(self, scope: dict[str, Value], names: list[str], v: Value, types: list[TensorType], start: int) -> None:
        inferred: tuple[Type, ...] = v.types
        if tuple(types) != inferred:
            raise self.error(
                f"{v.op.name} has type {', '.join(map(str, inferred))}, the text says {', '.join(map(str, types))}",
                start,
            )
        if len(names) != len(inferred):
            raise self.error(f"{v.op.name} has {len(inferred)} results, the text names {len(names)}", start)
        for k, name in enumerate(names):
            if name in scope:
                raise self.error(f"%{name} is defined twice", start)
            scope[name] = v[k] if isinstance(v.type, TupleType) else v

    def parameter(self) -> tuple[str, TensorType]:
        name = self.sigil("%")
        self.expect(":")
        return name, self.type()

    def region(self) -> Region:
        self.expect("^")
        self.expect("(")
        self.deeper()
        scope: dict[str, Value] = {}
        types: list[TensorType] = []
        while not self.accept(")"):
            name, t = self.parameter()
            if name in scope:
                raise self.error(f"%{name} is defined twice")
            scope[name] = param(len(types), t)
            types.append(t)
            if self.peek() != ")":
                self.expect(",")
        self.expect(":")
        while self.peek() != "yield":
            self.line(scope)
        self.at += 1
        self.deeper(-1)
        return Region(types, self.operands(scope, ("}",)))

    def function(self) -> Function:
        self.expect("func")
        name = self.sigil("@")
        self.expect("(")
        inputs: list[Input] = []
        scope: dict[str, Value] = {}
        while not self.accept(")"):
            role = "state" if self.accept("state") else "arg"
            start = self.at
            arg, t = self.parameter()
            if arg in scope:
                raise self.error(f"%{arg} is defined twice", start)
            scope[arg] = param(len(inputs), t)
            inputs.append(Input(arg, t, role, t))
            if self.peek() != ")":
                self.expect(",")
        self.expect("->")
        self.expect("(")
        declared = [] if self.peek() == ")" else self.types()
        self.expect(")")
        self.expect("{")
        while self.peek() not in ("return", ""):
            self.line(scope)
        self.expect("return")
        outputs = self.operands(scope, ("}", "update"))
        if [v.type for v in outputs] != declared:
            found = ", ".join(str(v.type) for v in outputs)
            raise self.error(f"@{name} returns {found}, its head says {', '.join(map(str, declared))}")
        updates = self.updates(scope, inputs)
        self.expect("}")
        body = Region([i.type for i in inputs], [*outputs, *[v for _, v in updates]])
        return Function(name, tuple(inputs), body, tuple(k for k, _ in updates))

    def updates(self, scope: Mapping[str, Value], inputs: Sequence[Input]) -> list[tuple[int, Value]]:
        names = [i.name for i in inputs]
        out: list[tuple[int, Value]] = []
        if not self.accept("update"):
            return out
        self.expect("(")
        while not self.accept(")"):
            target = self.sigil("%")
            if target not in names:
                raise self.error(f"%{target} is not an input", self.at - 1)
            self.expect("=")
            k, new = names.index(target), self.operand(scope)
            if inputs[k].role != "state" or new.type is not inputs[k].type or k in [j for j, _ in out]:
                raise self.error(f"%{target} is no state of type {new.type}, or is updated twice")
            out.append((k, new))
            if self.peek() != ")":
                self.expect(",")
        return out
