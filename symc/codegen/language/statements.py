"""The statements of a text, read with their types. How blocks and loops are written is the target's."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from symc.codegen.language.expressions import Expressions
from symc.codegen.language.syntax import SIGNS, Unsupported, as_load, assigned, jumps
from symc.codegen.language.typed import Pointer, Scalar, Value, common


class Statements(Expressions):
    """Reads the statements of one function. ``open``: whether the next one is reached."""

    open = True

    # -- what a target says

    @abstractmethod
    def store(self, target: ast.Subscript, x: Scalar) -> None:
        """Write an element in memory."""

    @abstractmethod
    def variable(self, name: str, t: str) -> str:
        """Declare a name that changes: where it is."""

    @abstractmethod
    def update(self, name: str, x: Scalar) -> None:
        """Write a variable, in its type."""

    def bind(self, name: str, x: Value) -> None:
        """Give a name to what does not change."""
        self.names[name] = x

    @abstractmethod
    def give_back(self, xs: Sequence[Scalar]) -> None:
        """Return what has the types of the result."""

    @abstractmethod
    def range_loop(self, s: ast.For, start: Scalar, stop: Scalar, step: int) -> None:
        """A loop over integers."""

    def repeated(self, body: Sequence[ast.stmt]) -> None:
        """A body of a loop over numbers, for one of them."""
        self.statements(body)

    # -- statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        once, self.assigned = assigned(statements)
        for name in self.given:
            if name in once | self.assigned:  # an operand that changes
                self.assigned.add(name)
                self.name(name, self.names[name])
        self.statements(statements)

    def statements(self, statements: Sequence[ast.stmt]) -> None:
        for s in statements:
            if not self.open:
                return
            read = getattr(self, f"on_{type(s).__name__}", None)
            if read is None:
                raise Unsupported(type(s).__name__)
            read(s)

    def on_Pass(self, s: ast.Pass) -> None:
        pass

    def on_Expr(self, s: ast.Expr) -> None:
        """A comment, or a call for what it does."""
        if isinstance(s.value, ast.Call):
            self.value(s.value)
        elif not isinstance(s.value, ast.Constant):
            raise Unsupported("an expression as a statement")

    def on_Assign(self, s: ast.Assign) -> None:
        (target,) = s.targets
        value = self.several(s.value.elts) if isinstance(s.value, ast.Tuple) else self.value(s.value)
        self.assign(target, value)

    def several(self, elements: Sequence[ast.expr]) -> Value:
        """The values that are assigned to several names at once."""
        return [self.value(e) for e in elements]

    def on_AugAssign(self, s: ast.AugAssign) -> None:
        now = self.value(as_load(s.target))
        self.assign(s.target, self.binary(SIGNS[type(s.op)], now, self.scalar(s.value)))

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Tuple):
            for t, v in zip(target.elts, value, strict=True):
                self.assign(t, v)
        elif isinstance(target, ast.Subscript):
            self.store(target, value)
        elif isinstance(target, ast.Name):
            self.name(target.id, value)
        else:
            raise Unsupported("this target")

    def name(self, name: str, value: Value) -> None:
        """Bind a name: to a value, or, if that changes, to a variable. An array's does not."""
        if isinstance(value, Pointer) and name in self.assigned and name in self.names:
            raise Unsupported(f"{name}, an array that changes")
        if name not in self.assigned or not isinstance(value, Scalar):
            self.bind(name, value)
            return
        if name not in self.variables:
            self.variables[name] = value.type, self.variable(name, value.type)
        t, _ = self.variables[name]
        if t != value.type and common(Scalar(t, ""), value) != t:
            raise Unsupported(f"{name} is {t} and {value.type}")
        self.update(name, self.cast(value, t))

    def on_Return(self, s: ast.Return) -> None:
        if s.value is None:
            self.give_back([])
            self.open = False
            return
        found: Any = [self.scalar(e) for e in s.value.elts] if isinstance(s.value, ast.Tuple) else self.value(s.value)
        if isinstance(found, list):
            self.result = self.result or tuple(x.type for x in found)
            self.give_back([self.cast(x, t) for x, t in zip(found, self.result, strict=True)])
        else:
            self.result = self.result or found.type
            if common(Scalar(self.result, ""), found) != self.result and found.type != self.result:
                raise Unsupported(f"results {self.result} and {found.type}")
            self.give_back([self.cast(found, self.result)])
        self.open = False

    def on_For(self, s: ast.For) -> None:
        if not isinstance(s.target, ast.Name):
            raise Unsupported("this loop")
        if not (isinstance(s.iter, ast.Call) and getattr(s.iter.func, "id", "") == "range"):
            numbers = self.value(s.iter)
            if not isinstance(numbers, tuple) or jumps(s.body):
                raise Unsupported("a loop over this")
            for x in numbers:
                self.names[s.target.id] = self.literal(x)
                self.repeated(s.body)
            return
        bounds = [self.cast(self.scalar(a), "i64") for a in s.iter.args]
        start, stop, step = {1: (self.constant("i64", 0), *bounds, self.constant("i64", 1)),
                             2: (*bounds, self.constant("i64", 1))}.get(len(bounds), tuple(bounds))
        if step.number is None:
            raise Unsupported("a step that is no number")
        self.range_loop(s, start, stop, int(step.number))
