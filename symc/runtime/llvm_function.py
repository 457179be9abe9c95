"""A compiler of kernel texts: functions in a small typed subset of Python, to LLVM's text.

A kernel (``symc.codegen.numba_cpu``) and the helpers it calls are straight lines, `for` over ranges, `while`, `if`,
conditional expressions, and calls. Every name has one type, that of its first assignment; operands say the types of
calls. What is outside of this raises Unsupported, and Numba compiles the kernel.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symc.codegen.numba_text import Unsupported
from symc.runtime.llvm_library import Helper, library
from symc.runtime.llvm_primitives import PRIMITIVES
from symc.runtime.llvm_scalars import (
    LLVM,
    Scalar,
    binary,
    cast,
    common,
    compare,
    constant,
    literal,
    negative,
    select,
)

#: A value while a function is written: a scalar, several of them, a pointer (to elements of a type), or Python numbers.
Value = Any
_SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


class Pointer:
    """An operand in memory."""

    def __init__(self, element: str, ref: str):
        self.element, self.ref = element, ref


class Module:
    """The text of one LLVM module: functions, and what they declare."""

    def __init__(self) -> None:
        self.declared: dict[str, str] = {}
        self.tables: dict[str, str] = {}
        self.functions: list[str] = []
        self.compiled: dict[tuple, tuple[str, Any]] = {}  # (helper, types of operands) -> (symbol, type of result)

    def declare(self, name: str, result: str, operands: Sequence[str]) -> None:
        self.declared[name] = f"declare {result} @{name}({', '.join(operands)})"

    def table(self, numbers: tuple, t: str) -> str:
        """A constant array in memory."""
        text = ", ".join(f"{LLVM[t]} {constant(t, x).ref}" for x in numbers)
        return self.tables.setdefault(f"[{len(numbers)} x {LLVM[t]}] [{text}]", f"@table{len(self.tables)}")

    def helper(self, helper: Helper, types: tuple[str, ...]) -> tuple[str, Any]:
        key = (helper.module, helper.name, types)
        if key not in self.compiled:
            symbol = f"{helper.module}.{helper.name}.{'.'.join(types)}"
            names = [a.arg for a in helper.tree.args.args]
            operands = {n: Scalar(t, f"%{n}") for n, t in zip(names, types, strict=True)}
            f = _Function(self, helper.scope, operands, helper.module)
            f.body(helper.tree.body)
            result = f.result
            if result is None:
                raise Unsupported(f"{helper.name} returns nothing")
            head = ", ".join(f"{LLVM[t]} %{n}" for n, t in zip(names, types, strict=True))
            how = "noinline" if helper.called else "alwaysinline"
            head = f"define internal {_llvm(result)} @{symbol}({head}) {how} nounwind"
            self.functions.append(f"{head} {{\n{f.text()}}}\n")
            self.compiled[key] = symbol, result
        return self.compiled[key]

    def kernel(self, tree: ast.FunctionDef, operands: Mapping[str, Value]) -> None:
        """A kernel, called ``kernel``, and its entry, which takes the address of its arguments as 64-bit words."""
        f = _Function(self, library().constants, operands)
        f.body(tree.body)
        kinds = ["ptr" if isinstance(v, Pointer) else "i64" for v in operands.values()]
        head = ", ".join(f"ptr noalias nocapture {v.ref}" if isinstance(v, Pointer) else f"i64 {v.ref}"
                         for v in operands.values())
        self.functions.append(f"define internal void @kernel({head}) noinline nounwind {{\n{f.text()}}}\n")
        lines = []
        for k, kind in enumerate(kinds):
            lines.append(f"  %p{k} = getelementptr i64, ptr %words, i64 {k}\n  %a{k} = load {kind}, ptr %p{k}\n")
        call = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(kinds))
        lines.append(f"  call void @kernel({call})\n  ret void\n")
        self.functions.append(f"define void @entry(ptr %words) nounwind {{\n{''.join(lines)}}}\n")

    def text(self) -> str:
        tables = [f"{name} = private unnamed_addr constant {data}" for data, name in self.tables.items()]
        return "\n".join([*self.declared.values(), *tables, *self.functions])


def _llvm(t: Any) -> str:
    return LLVM[t] if isinstance(t, str) else "{ " + ", ".join(LLVM[x] for x in t) + " }"


class _Function:
    """Writes the body of one function."""

    def __init__(self, module: Module, scope: Mapping[str, Any], operands: Mapping[str, Value], file: str = ""):
        self.module, self.scope, self.file = module, scope, file
        self.head: list[str] = []  # the memory of variables
        self.lines: list[str] = []
        self.count = 0
        self.names: dict[str, Value] = dict(operands)
        self.variables: dict[str, tuple[str, str]] = {}  # name -> (type, address)
        self.result: Any = None
        self.block = "start"
        self.open = True  # does the block go on?
        self.loops: list[tuple[str, str]] = []  # where `continue` and `break` go
        self.given = {n for n, v in operands.items() if isinstance(v, Scalar)}

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

    # -- statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        once, self.assigned = _assigned(statements)
        for name in self.given & (once | self.assigned):  # an operand that changes
            self.assigned.add(name)
            self.name(name, self.names[name])
        self.statements(statements)

    def statements(self, statements: Sequence[ast.stmt]) -> None:
        for s in statements:
            if not self.open:
                return
            write = getattr(self, f"on_{type(s).__name__}", None)
            if write is None:
                raise Unsupported(type(s).__name__)
            write(s)

    def on_Pass(self, s: ast.Pass) -> None:
        pass

    def on_Expr(self, s: ast.Expr) -> None:
        if not isinstance(s.value, ast.Constant):
            raise Unsupported("an expression as a statement")

    def on_Assign(self, s: ast.Assign) -> None:
        (target,) = s.targets
        value = [self.value(e) for e in s.value.elts] if isinstance(s.value, ast.Tuple) else self.value(s.value)
        self.assign(target, value)

    def on_AugAssign(self, s: ast.AugAssign) -> None:
        now = self.value(ast.copy_location(_as_load(s.target), s.target))
        self.assign(s.target, binary(self.emit, _SIGNS[type(s.op)], now, self.scalar(s.value)))

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Tuple):
            for t, v in zip(target.elts, value, strict=True):
                self.assign(t, v)
        elif isinstance(target, ast.Subscript):
            pointer, address = self.place_of(target)
            x = cast(self.emit, value, pointer.element)
            self.do(f"store {LLVM[pointer.element]} {x.ref}, ptr {address}")
        elif isinstance(target, ast.Name):
            self.name(target.id, value)
        else:
            raise Unsupported("this target")

    def name(self, name: str, value: Value) -> None:
        """Bind a name: to a value, or, if that changes, to memory (which LLVM makes registers of again)."""
        if name not in self.assigned or not isinstance(value, Scalar):
            self.names[name] = value
            return
        if name not in self.variables:
            address = f"%m{len(self.variables)}.{name}"
            self.variables[name] = value.type, address
            self.head.append(f"  {address} = alloca {LLVM[value.type]}\n")
        t, address = self.variables[name]
        if t != value.type and common(Scalar(t, ""), value) != t:
            raise Unsupported(f"{name} is {t} and {value.type}")
        self.do(f"store {LLVM[t]} {cast(self.emit, value, t).ref}, ptr {address}")

    def on_Return(self, s: ast.Return) -> None:
        assert s.value is not None
        found: Any = [self.scalar(e) for e in s.value.elts] if isinstance(s.value, ast.Tuple) else self.value(s.value)
        several = isinstance(found, list | tuple)
        types = tuple(x.type for x in found) if several else found.type
        if self.result is None:
            self.result = types
        if several:
            whole = "undef"
            for k, (x, t) in enumerate(zip(found, self.result, strict=True)):
                part = f"{LLVM[t]} {cast(self.emit, x, t).ref}"
                whole = self.emit(f"insertvalue {_llvm(self.result)} {whole}, {part}, {k}")
            self.do(f"ret {_llvm(self.result)} {whole}")
        else:
            if common(Scalar(self.result, ""), found) != self.result and found.type != self.result:
                raise Unsupported(f"results {self.result} and {found.type}")
            self.do(f"ret {LLVM[self.result]} {cast(self.emit, found, self.result).ref}")
        self.open = False

    def on_If(self, s: ast.If) -> None:
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(self.scalar(s.test), yes, no if s.orelse else after)
        self.place(yes)
        self.statements(s.body)
        self.go(after)
        if s.orelse:
            self.place(no)
            self.statements(s.orelse)
            self.go(after)
        self.place(after)

    def on_While(self, s: ast.While) -> None:
        test, inside, after = self.label(), self.label(), self.label()
        self.place(test)
        self.branch(self.scalar(s.test), inside, after)
        self.place(inside)
        self.inside(s.body, test, after)
        self.go(test)
        self.place(after)

    def inside(self, body: Sequence[ast.stmt], again: str, after: str) -> None:
        self.loops.append((again, after))
        self.statements(body)
        self.loops.pop()

    def on_Break(self, s: ast.Break) -> None:
        self.go(self.loops[-1][1])

    def on_Continue(self, s: ast.Continue) -> None:
        self.go(self.loops[-1][0])

    def on_For(self, s: ast.For) -> None:
        if not isinstance(s.target, ast.Name):
            raise Unsupported("this loop")
        if not (isinstance(s.iter, ast.Call) and getattr(s.iter.func, "id", "") == "range"):
            numbers = self.value(s.iter)
            if not isinstance(numbers, tuple) or _jumps(s.body):
                raise Unsupported("a loop over this")
            for x in numbers:
                self.names[s.target.id] = literal(x)
                self.statements(s.body)
            return
        bounds = [cast(self.emit, self.scalar(a), "i64") for a in s.iter.args]
        start, stop, step = {1: (constant("i64", 0), *bounds, constant("i64", 1)),
                             2: (*bounds, constant("i64", 1))}.get(len(bounds), tuple(bounds))
        if step.number is None:
            raise Unsupported("a step that is no number")
        self.count_loop(s, start, stop, int(step.number))

    def count_loop(self, s: ast.For, start: Scalar, stop: Scalar, step: int) -> None:
        assert isinstance(s.target, ast.Name)
        before, test, inside, again, after = self.block, *(self.label() for _ in range(4))
        self.place(test)
        i, following = f"%i{test}", f"%n{test}"
        self.do(f"{i} = phi i64 [ {start.ref}, %{before} ], [ {following}, %{again} ]")
        more = self.emit(f"icmp {'slt' if step > 0 else 'sgt'} i64 {i}, {stop.ref}")
        self.branch(Scalar("bool", more), inside, after)
        self.place(inside)
        self.names[s.target.id] = Scalar("i64", i)
        self.inside(s.body, again, after)
        self.place(again)
        self.do(f"{following} = add nsw i64 {i}, {step}")
        self.do(f"br label %{test}")
        self.open = False
        self.place(after)

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
        if e.id not in self.scope:
            raise Unsupported(f"the name {e.id}")
        found = self.scope[e.id]
        if isinstance(found, np.ndarray):
            return tuple(found.tolist())
        return found if isinstance(found, tuple) else literal(found)

    def of_Attribute(self, e: ast.Attribute) -> Scalar:
        if isinstance(e.value, ast.Name) and e.value.id == "math" and e.attr in ("inf", "nan", "pi"):
            return literal(getattr(self.scope["math"], e.attr) if "math" in self.scope else float(e.attr))
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
        if type(e.op) not in _SIGNS:
            raise Unsupported(type(e.op).__name__)
        return binary(self.emit, _SIGNS[type(e.op)], self.scalar(e.left), self.scalar(e.right))

    def of_Compare(self, e: ast.Compare) -> Scalar:
        terms = [self.scalar(x) for x in (e.left, *e.comparators)]
        found = [compare(self.emit, _SIGNS[type(op)], a, b)
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
        if any(map(_is_dear, (e.body, e.orelse))):
            return self.choice(condition, e.body, e.orelse)
        if isinstance(e.body, ast.Tuple) and isinstance(e.orelse, ast.Tuple):
            pairs = zip(e.body.elts, e.orelse.elts, strict=True)
            return [select(self.emit, condition, self.scalar(a), self.scalar(b)) for a, b in pairs]
        return select(self.emit, condition, self.scalar(e.body), self.scalar(e.orelse))

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

    def of_Subscript(self, e: ast.Subscript) -> Scalar:
        found = self.value(e.value)
        if isinstance(found, Pointer):
            pointer, address = self.place_of(e)
            return Scalar(pointer.element, self.emit(f"load {LLVM[pointer.element]}, ptr {address}"))
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
        xs = [self.scalar(a) for a in e.args]
        helper = library().find(name, self.file, narrow=bool(xs) and xs[0].type in ("f32", "u32"))
        if helper is not None and name not in PRIMITIVES:
            return self.call(helper, xs)
        if name not in PRIMITIVES:
            raise Unsupported(f"the function {name}")
        return PRIMITIVES[name](self.emit, self.module.declare, xs)

    def call(self, helper: Helper, xs: Sequence[Scalar]) -> Value:
        symbol, result = self.module.helper(helper, tuple(x.type for x in xs))
        found = self.emit(f"call {_llvm(result)} @{symbol}({', '.join(f'{LLVM[x.type]} {x.ref}' for x in xs)})")
        if isinstance(result, str):
            return Scalar(result, found)
        return [Scalar(t, self.emit(f"extractvalue {_llvm(result)} {found}, {k}")) for k, t in enumerate(result)]


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(target.value, target.slice, ast.Load())


def _assigned(statements: Sequence[ast.stmt]) -> tuple[set[str], set[str]]:
    """Names that are assigned once, and those that are assigned more often."""
    once: set[str] = set()
    often: set[str] = set()
    for s in statements:
        for node in ast.walk(s):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                (often if node.id in once else once).add(node.id)
    return once - often, often


def _jumps(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Break | ast.Continue) for s in body for n in ast.walk(s))


def _is_dear(e: ast.expr) -> bool:
    """Whether an expression calls what should not run for nothing."""
    for node in ast.walk(e):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr not in ("sqrt", "copysign", "floor"):
                return True
            helper = library().find(getattr(node.func, "id", ""), "", narrow=False)
            if helper is not None and helper.called:
                return True
    return False
