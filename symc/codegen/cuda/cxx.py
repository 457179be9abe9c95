"""The typed subset of Python in which kernels and their library are written, as CUDA C++.

The same texts ``symc.runtime.compilers`` compile for the CPU. C++ does the typing: a name is declared ``auto`` where it
is first assigned, helpers are templates, and where C++ means something else than Python (quotients of integers, shifts,
negation) a function of the prelude stands. An integer without a dtype is an ``i64`` as on the CPU, except beside an
operator in a kernel whose indices are ``i32``: there it takes the type of the other operand.
"""

from __future__ import annotations

import ast
import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symc.codegen.language.syntax import SIGNS, Unsupported, every, plain

#: What is a function of the prelude; every other name that is called is one of the library.
PRIMITIVES = frozenset({
    "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "c64", "c128", "complex", "like", "abs", "min",
    "max", "bits", "times", "fold_add", "fold_mul", "fold_maximum", "fold_minimum", "wrap_add", "wrap_sub", "wrap_mul",
    "maximum", "minimum", "copysign", "fma", "rint", "floor", "ceil", "trunc", "fmod", "from_half", "to_half", "to_int",
    "from_bfloat", "to_bfloat",
    "bits64", "float64_of", "bits32", "float32_of", "index_floordiv", "index_mod"})
#: Functions of Python's `math` that the prelude has, and those that only the library has.
_MATH = {"sqrt": "math_sqrt", "copysign": "copysign", "gamma": "math_gamma"}
#: The same that the library has, too, and calls where its own formula does not reach.
LIBM = frozenset({"sin", "cos", "tan", "pow", "lgamma"})
#: What CUDA's library has of SciPy's special functions, by what texts call them; the others are the CPU's alone.
OF_SCIPY = {"scipy_d00_gamma": "math_gamma"} | {
    f"scipy_d00_{name}": f"libm_{name}" for name in ("j0", "j1", "y0", "y1", "exp10")}
_NUMBERS = {"inf": "SYMC_INF", "nan": "SYMC_NAN", "pi": "3.141592653589793", "INF": "SYMC_INF", "NAN": "SYMC_NAN"}
_CALLED = {"//": "floor_divide", "%": "floor_modulo", "<<": "shift_up", ">>": "shift_down"}
#: Operators on numbers alone, which need no instructions.
_FOLD: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow}


def expression(text: str, helpers: dict[str, None], index: str = "i64") -> str:
    """An expression in C++. What it calls of the library is added to ``helpers``."""
    return Translator(index, helpers).value(ast.parse(text.strip(), mode="eval").body)


def statements(text: str, helpers: dict[str, None], index: str = "i64", known: Sequence[str] = ()) -> list[str]:
    """Statements in C++, one a line; ``known``: names that have been declared."""
    return Translator(index, helpers).body(ast.parse(text).body, known)


class Translator:
    """Writes one function. Subclasses say what names and functions mean in a module of the library."""

    def __init__(self, index: str, helpers: dict[str, None]):
        self.index, self.helpers = index, helpers
        self.loose = "LL" if index == "i64" else ""  # of literals beside an operator
        self.lines: list[str] = []
        self.count = 0
        self.counters: set[str] = set()  # names of loops that are being written

    # -- what subclasses say

    def function(self, name: str) -> str:
        """Name of a function in C++."""
        if name in OF_SCIPY:
            return OF_SCIPY[name]
        if name not in PRIMITIVES:
            self.helpers[name] = None
        return name

    def math_function(self, name: str) -> str:
        """Name of a function of `math` in C++."""
        return _MATH[name] if name in _MATH else self.function(name)

    def constant(self, name: str) -> str | None:
        """The text of a name that is a number, None for a variable."""
        return _NUMBERS.get(name)

    def table(self, e: ast.expr) -> Sequence[str] | None:
        """Elements of a constant array, as texts; None for anything else."""
        return None

    def table_name(self, e: ast.expr) -> str:
        """Name of a constant array that is read at a place which is not known."""
        raise Unsupported("a constant array")

    # -- expressions

    def value(self, e: ast.expr, loose: bool = False) -> str:
        if isinstance(e, ast.Constant):
            return self.literal(e.value, loose)
        write = getattr(self, f"of_{type(e).__name__}", None)
        if write is None:
            raise Unsupported(f"{type(e).__name__} in C++")
        return write(e)

    def literal(self, x: object, loose: bool = False) -> str:
        if isinstance(x, bool):
            return "true" if x else "false"
        if isinstance(x, int):
            if not -(2**63) <= x < 2**64:
                raise Unsupported(f"the number {x}")
            if x == -(2**63):
                return "(-9223372036854775807LL - 1)"
            suffix = "ULL" if x >= 2**63 else self.loose if loose and abs(x) < 2**31 else "LL"
            return f"{x}{suffix}" if x >= 0 else f"({x}{suffix})"
        if isinstance(x, float):
            if x != x or x in (float("inf"), -float("inf")):
                return "SYMC_NAN" if x != x else "SYMC_INF" if x > 0 else "(-SYMC_INF)"
            return repr(x) if x >= 0 and repr(x)[0] != "-" else f"({x!r})"
        raise Unsupported(f"a constant {type(x).__name__}")

    def of_Name(self, e: ast.Name) -> str:
        return self.constant(e.id) or plain(e.id)

    def of_Attribute(self, e: ast.Attribute) -> str:
        if isinstance(e.value, ast.Name) and e.value.id == "math" and e.attr in _NUMBERS:
            return _NUMBERS[e.attr]
        if e.attr in ("real", "imag"):
            return f"{self.value(e.value)}.{e.attr}"
        raise Unsupported(f".{e.attr}")

    def of_UnaryOp(self, e: ast.UnaryOp) -> str:
        folded = _number(e)
        if folded is not None:
            return self.literal(folded, loose=True)
        x = self.value(e.operand)
        if isinstance(e.op, ast.USub):
            return f"minus({x})"
        return f"!{x}" if isinstance(e.op, ast.Not) else f"~{x}"

    def of_BinOp(self, e: ast.BinOp) -> str:
        folded = _number(e)
        if folded is not None:
            return self.literal(folded)
        sign = SIGNS.get(type(e.op))
        if sign is None:
            raise Unsupported(type(e.op).__name__)
        x, y = self.value(e.left, True), self.value(e.right, True)
        return f"{_CALLED[sign]}({x}, {y})" if sign in _CALLED else f"({x} {sign} {y})"

    def of_Compare(self, e: ast.Compare) -> str:
        terms = [self.value(x, True) for x in (e.left, *e.comparators)]
        found = [f"{a} {SIGNS[type(op)]} {b}" for op, a, b in zip(e.ops, terms, terms[1:], strict=False)]
        return f"({' && '.join(found)})"

    def of_BoolOp(self, e: ast.BoolOp) -> str:
        sign = " && " if isinstance(e.op, ast.And) else " || "
        return f"({sign.join(self.value(x) for x in e.values)})"

    def of_IfExp(self, e: ast.IfExp) -> str:
        return f"({self.value(e.test)} ? {self.value(e.body)} : {self.value(e.orelse)})"

    def of_Subscript(self, e: ast.Subscript) -> str:
        at = _number(e.slice)
        if isinstance(e.value, ast.Call):
            return f"{self.value(e.value)}._{at}"
        table = self.table(e.value)
        if table is not None and at is not None:
            return table[int(at)]
        array = self.value(e.value) if table is None else self.table_name(e.value)
        return f"{array}[{self.value(e.slice, True)}]"

    def of_Call(self, e: ast.Call) -> str:
        if e.keywords:
            raise Unsupported("keywords")
        if isinstance(e.func, ast.Attribute):
            if not (isinstance(e.func.value, ast.Name) and e.func.value.id == "math"):
                return f"{self.value(e.func.value)}.{e.func.attr}({', '.join(map(self.value, e.args))})"
            name = self.math_function(e.func.attr)
        else:
            assert isinstance(e.func, ast.Name)
            name = "i64" if e.func.id == "int" else self.function(e.func.id)
        (first, *_) = e.args
        if name == "u16" and isinstance(first, ast.BinOp) and SIGNS.get(type(first.op), "//") not in _CALLED:
            # what is shorter than an int is computed as one, and may overflow there
            return f"u16(u32({self.value(first.left)}) {SIGNS[type(first.op)]} u32({self.value(first.right)}))"
        loose = name in ("min", "max", "index_floordiv", "index_mod")
        return f"{name}({', '.join(self.value(a, loose) for a in e.args)})"

    # -- statements

    def body(self, body: Sequence[ast.stmt], known: Sequence[str] = ()) -> list[str]:
        """The statements of a function."""
        declared = set(known)
        self.block(body, declared, 1)
        return self.lines

    def line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def block(self, body: Sequence[ast.stmt], declared: set[str], depth: int) -> None:
        """Statements in a scope; ``declared``: the names that this scope and those around it know."""
        for k, s in enumerate(body):
            if isinstance(s, ast.If | ast.For | ast.While):
                self.hoist(s, body[k + 1 :], declared, depth)
            getattr(self, f"on_{type(s).__name__}", self.unknown)(s, declared, depth)

    def unknown(self, s: ast.stmt, declared: set[str], depth: int) -> None:
        raise Unsupported(f"{type(s).__name__} in C++")

    def hoist(self, s: ast.stmt, after: Sequence[ast.stmt], declared: set[str], depth: int) -> None:
        """Declare what is first assigned inside of a statement and used after it, or in another part of it."""
        used = {n.id for n in every(*after) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        firsts = _first_values(s)
        counters = {n.target.id for n in every(s) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)}

        def declare(name: str) -> None:
            declared.add(name)
            value = firsts[name]
            for n in every(value):
                if isinstance(n, ast.Name) and n.id in firsts and n.id not in declared:
                    declare(n.id)
            typed = _Uncounted(counters - declared).visit(copy.deepcopy(value))
            self.line(depth, f"SYMC_TYPE({self.value(typed)}) {plain(name)};")

        for name in firsts:
            if name in used and name not in declared:
                declare(name)

    def on_Pass(self, s: ast.Pass, declared: set[str], depth: int) -> None:
        pass

    def on_Expr(self, s: ast.Expr, declared: set[str], depth: int) -> None:
        if not isinstance(s.value, ast.Constant):
            raise Unsupported("an expression as a statement")

    def on_Break(self, s: ast.Break, declared: set[str], depth: int) -> None:
        self.line(depth, "break;")

    def on_Continue(self, s: ast.Continue, declared: set[str], depth: int) -> None:
        self.line(depth, "continue;")

    def on_Assign(self, s: ast.Assign, declared: set[str], depth: int) -> None:
        (target,) = s.targets
        if isinstance(target, ast.Tuple):
            self.several(target.elts, s.value, declared, depth)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == "failed":
            self.line(depth, "fail(failed);")
        elif isinstance(target, ast.Subscript):
            self.line(depth, f"{self.of_Subscript(target)} = {self.value(s.value)};")
        else:
            self.assign(target, self.value(s.value), declared, depth)

    def assign(self, target: ast.expr, text: str, declared: set[str], depth: int) -> None:
        if not isinstance(target, ast.Name):
            raise Unsupported("this target")
        new = target.id not in declared
        declared.add(target.id)
        self.line(depth, f"{'auto ' * new}{plain(target.id)} = {text};")

    def several(self, targets: Sequence[ast.expr], value: ast.expr, declared: set[str], depth: int) -> None:
        """Several names at once: of a call's results, or of expressions, all of which come first."""
        if isinstance(value, ast.Tuple):
            texts = [self.value(x) for x in value.elts]
            names = {t.id for t in targets if isinstance(t, ast.Name)}
            if any(isinstance(n, ast.Name) and n.id in names for n in every(*value.elts)):
                temporary = [self.fresh() for _ in texts]
                for name, text in zip(temporary, texts, strict=True):
                    self.line(depth, f"const auto {name} = {text};")
                texts = temporary
        else:
            whole = self.fresh()
            self.line(depth, f"const auto {whole} = {self.value(value)};")
            texts = [f"{whole}._{k}" for k in range(len(targets))]
        for target, text in zip(targets, texts, strict=True):
            self.assign(target, text, declared, depth)

    def fresh(self) -> str:
        self.count += 1
        return f"all{self.count - 1}_"

    def on_AugAssign(self, s: ast.AugAssign, declared: set[str], depth: int) -> None:
        now = ast.Name(s.target.id, ast.Load()) if isinstance(s.target, ast.Name) else s.target
        self.line(depth, f"{self.value(now)} = {self.of_BinOp(ast.BinOp(now, s.op, s.value))};")  # type: ignore

    def on_Return(self, s: ast.Return, declared: set[str], depth: int) -> None:
        if isinstance(s.value, ast.Tuple):
            self.line(depth, f"return several({', '.join(self.value(x) for x in s.value.elts)});")
        else:
            assert s.value is not None
            self.line(depth, f"return {self.value(s.value)};")

    def on_If(self, s: ast.If, declared: set[str], depth: int) -> None:
        self.line(depth, f"if ({self.value(s.test)}) {{")
        self.block(s.body, set(declared), depth + 1)
        if s.orelse:
            self.line(depth, "} else {")
            self.block(s.orelse, set(declared), depth + 1)
        self.line(depth, "}")

    def on_While(self, s: ast.While, declared: set[str], depth: int) -> None:
        self.line(depth, f"while ({self.value(s.test)}) {{")
        self.block(s.body, set(declared), depth + 1)
        self.line(depth, "}")

    def on_For(self, s: ast.For, declared: set[str], depth: int) -> None:
        if not isinstance(s.target, ast.Name):
            raise Unsupported("this loop")
        inside = {*declared, s.target.id}
        i = plain(s.target.id)
        if isinstance(s.iter, ast.Call) and getattr(s.iter.func, "id", "") == "range":
            self.line(depth, f"for ({self.range(i, s.iter.args)}) {{")
        else:
            table = self.table(s.iter)
            if table is None:
                raise Unsupported("a loop over this")
            at = self.fresh()
            self.line(depth, f"for (int {at} = 0; {at} < {len(table)}; ++{at}) {{")
            self.line(depth + 1, f"const auto {i} = {self.table_name(s.iter)}[{at}];")
        self.block(s.body, inside, depth + 1)
        self.line(depth, "}")

    def range(self, i: str, arguments: Sequence[ast.expr]) -> str:
        """The head of a loop over a range."""
        bounds = [self.value(a, True) for a in arguments]
        first, last, step = {1: ("0", *bounds, "1"), 2: (*bounds, "1")}.get(len(bounds), tuple(bounds))
        number = _number(arguments[2]) if len(arguments) == 3 else 1
        if number is None:
            raise Unsupported("a step that is no number")
        further = f"++{i}" if number == 1 else f"--{i}" if number == -1 else f"{i} += {step}"
        return f"{self.index} {i} = {first}; {i} {'<' if number > 0 else '>'} {last}; {further}"


class _Uncounted(ast.NodeTransformer):
    """Puts a number of the right type for the counters of loops, where only the type of an expression is asked for."""

    def __init__(self, counters: set[str]):
        self.counters = counters

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(1) if node.id in self.counters else node


def _first_values(s: ast.stmt) -> Mapping[str, ast.expr]:
    """The first value that each name is given inside of a statement, in the order of the text."""
    found: dict[str, ast.expr] = {}
    for node in _in_order(s):
        if not isinstance(node, ast.Assign):
            continue
        (target,) = node.targets
        if isinstance(target, ast.Name):
            found.setdefault(target.id, node.value)
        elif isinstance(target, ast.Tuple):
            for k, t in enumerate(target.elts):
                assert isinstance(t, ast.Name)
                part = (node.value.elts[k] if isinstance(node.value, ast.Tuple)
                        else ast.Subscript(node.value, ast.Constant(k), ast.Load()))
                found.setdefault(t.id, part)
    return found


def _in_order(s: ast.AST) -> Sequence[ast.AST]:
    """A statement and all inside of it, in the order of the text."""
    return [s, *(inner for child in ast.iter_child_nodes(s) for inner in _in_order(child))]


def _number(e: ast.expr) -> int | float | None:
    """The value of an expression of numbers alone."""
    if isinstance(e, ast.Constant) and isinstance(e.value, int | float) and not isinstance(e.value, bool):
        return e.value
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        x = _number(e.operand)
        return None if x is None else -x
    if isinstance(e, ast.BinOp) and type(e.op) in _FOLD:
        x, y = _number(e.left), _number(e.right)
        if x is None or y is None:
            return None
        return _FOLD[type(e.op)](x, y)
    return None
