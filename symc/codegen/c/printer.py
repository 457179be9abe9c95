"""Kernels as C11: functions of arrays and sizes, with what they call of the library, in one text that needs libm alone.

    Unit(meaning).kernel(source, "name")      void name(const double *restrict a0, double *restrict o0, int64_t n0)

Arrays come first, in the order of the source (operands, results, partial sums, the byte that says of a check that it
failed), then its numbers. Values are those of LLVM's code but for the order of long sums, and which products are fused
with a sum: what must be rounded is, also where the compiler contracts. A kernel does not look for signals.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symc.codegen.c.prelude import FUNCTIONS, HEAD, TYPES
from symc.codegen.c.scalars import PRIMITIVES, Declarations, Texts, bare
from symc.codegen.cpu.render import Source
from symc.codegen.language.helpers import Helper
from symc.codegen.language.syntax import Unsupported, function, plain
from symc.codegen.language.typed import FLOATS, Pointer, Scalar, Value
from symc.ir.dtypes import RECORDS


class Unit:
    """The text of some kernels. ``meaning``: what names mean in their texts (``symc.runtime.library``)."""

    def __init__(self, meaning: Callable[[str], Any]):
        self.meaning = meaning
        self.prelude: dict[str, None] = {}
        self.tables: dict[tuple[str, str], str] = {}
        self.compiled: dict[tuple[str, tuple[str, ...]], tuple[str, Any]] = {}
        self.functions: list[str] = []

    def text(self) -> str:
        """All of it."""
        tables = [f"static const {t} {name}[] = {{{numbers}}};\n" for (t, numbers), name in self.tables.items()]
        return "\n".join([HEAD, *[FUNCTIONS[n][0] for n in self.prelude], *tables, *self.functions])

    # -- what functions ask for

    def need(self, name: str) -> str:
        """A function of the prelude."""
        for n in FUNCTIONS[name][1]:
            self.need(n)
        self.prelude[name] = None
        return name

    def table(self, numbers: Sequence[str], t: str) -> str:
        """A constant array."""
        return self.tables.setdefault((TYPES[t], ", ".join(numbers)), f"table{len(self.tables)}")

    def helper(self, helper: Helper, types: tuple[str, ...]) -> tuple[str, Any]:
        """A function of the library for operands of certain types: what it is called, and the type of its result."""
        key = helper.name, types
        if key not in self.compiled:
            kinds = types[:1] if len(set(types)) == 1 else types
            symbol = "_".join([helper.name.strip("_"), *kinds])
            operands = {n: Scalar(t, plain(n)) for n, t in zip(helper.operands, types, strict=True)}
            f = _Function(self, helper.scope.get, operands)
            f.wraps = True
            f.body(helper.tree.body)
            head = ", ".join(f"{TYPES[x.type]} {x.ref}" for x in operands.values())
            kind, record = TYPES.get(f.result, ""), ""
            if not kind:
                kind = f"struct {symbol}"
                parts = " ".join(f"{TYPES[t]} _{k};" for k, t in enumerate(f.result))
                record = f"{kind} {{ {parts} }};\n"
            how = "static" if helper.called else "static inline"
            text = f.text().replace("(struct RESULT)", f"({kind})")
            self.functions.append(f"{record}{how} {kind} {symbol}({head}) {{\n{text}}}\n")
            self.compiled[key] = symbol, f.result
        return self.compiled[key]

    def kernel(self, source: Source, name: str) -> str:
        """Add a kernel that is called so; its declaration. Raises Unsupported."""
        tree = function(source.text)
        names = [a.arg for a in tree.args.args]
        numbers, arrays = names[: source.numbers], names[source.numbers :]
        operands: dict[str, Value] = {n: Scalar("i64", n) for n in numbers}
        operands |= {n: Pointer(RECORDS[d].memory, n) for n, d in zip(arrays, source.arrays, strict=True)}
        f = _Function(self, self.meaning, operands)
        f.body(tree.body)
        declared = []
        for k, (n, d) in enumerate(zip(arrays, source.arrays, strict=True)):
            if not (source.polls and k == len(arrays) - 1):
                const = "const " if k < len(source.operands) else ""
                declared.append(f"{const}{TYPES[RECORDS[d].memory]} *restrict {n}")
        head = f"void {name}({', '.join([*declared, *(f'int64_t {n}' for n in numbers)])})"
        self.functions.append(f"{head} {{\n{f.text()}}}\n")
        return f"{head};"


class _Function(Texts):
    """Writes the body of one function."""

    def __init__(self, unit: Declarations, meaning: Callable[[str], Any], operands: Mapping[str, Value]):
        super().__init__(meaning, operands)
        self.unit = unit
        self.head: list[str] = []  # declarations of variables
        self.lines: list[str] = []
        self.new: set[str] = set()  # variables that the next line declares
        self.depth, self.count = 1, 0

    def text(self) -> str:
        return "".join(f"{line}\n" for line in (*self.head, *self.lines))

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}_{self.count}"

    def kept(self, x: Scalar, prefix: str) -> Scalar:
        """A scalar that what comes next does not change."""
        if x.number is not None:
            return x
        name = self.fresh(prefix)
        self.line(f"const {TYPES[x.type]} {name} = {bare(x.ref)};")
        return Scalar(x.type, name)

    # -- names and memory

    def variable(self, name: str, t: str) -> str:
        if name not in self.given and self.depth > 1:
            self.head.append(f"  {TYPES[t]} {plain(name)};")
        elif name not in self.given:  # what is assigned first where all of the function knows it
            self.new.add(plain(name))
        return plain(name)

    def loaded(self, name: str) -> Scalar:
        return Scalar(*self.variables[name])

    def update(self, name: str, x: Scalar) -> None:
        _, place = self.variables[name]
        if x.ref != place:
            self.line(f"{f'{TYPES[x.type]} ' * (place in self.new)}{place} = {bare(x.ref)};")
            self.new.discard(place)

    def bind(self, name: str, x: Value) -> None:
        if isinstance(x, Scalar) and x.number is None:
            self.line(f"const {TYPES[x.type]} {plain(name)} = {bare(x.ref)};")
            x = Scalar(x.type, plain(name))
        self.names[name] = x

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Tuple) and any(getattr(t, "id", "") in self.assigned for t in target.elts):
            value = [self.kept(x, "next") for x in value]  # all are made before one is changed
        super().assign(target, value)

    def element(self, e: ast.Subscript) -> Scalar:
        pointer = self.value(e.value)
        if not isinstance(pointer, Pointer):
            raise Unsupported("an index of no array")
        return Scalar(pointer.element, f"{pointer.ref}[{bare(self.cast(self.scalar(e.slice), 'i64').ref)}]")

    def store(self, target: ast.Subscript, x: Scalar) -> None:
        place = self.element(target)
        self.line(f"{place.ref} = {bare(self.cast(x, place.type).ref)};")

    def memory(self, t: str, n: Scalar) -> Pointer:
        if n.number is None:
            raise Unsupported("memory for a number that is not known")
        name = self.fresh("memory")
        self.head.append(f"  {TYPES[t]} {name}[{n.ref}];")
        return Pointer(t, name)

    def in_table(self, numbers: Sequence[Any], t: str, index: Scalar) -> Scalar:
        return Scalar(t, f"{self.unit.table([self.constant(t, x).ref for x in numbers], t)}[{index.ref}]")

    # -- calls and choices

    def call(self, helper: Helper, xs: Sequence[Scalar]) -> Value:
        symbol, result = self.unit.helper(helper, tuple(x.type for x in xs))
        text = f"{symbol}({', '.join(bare(x.ref) for x in xs)})"
        if isinstance(result, str):
            return Scalar(result, text)
        name = self.fresh("of")
        self.line(f"const struct {symbol} {name} = {text};")
        return [Scalar(t, f"{name}._{k}") for k, t in enumerate(result)]

    def choice(self, condition: Scalar, body: ast.expr, orelse: ast.expr) -> Scalar:
        a = self.scalar(body)
        return Scalar(a.type, self.selected(condition.ref, a.type, a.ref, self.cast(self.scalar(orelse), a.type).ref))

    # -- statements

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Statements in braces, the first of which stands."""
        self.depth += 1
        self.statements(body)
        self.depth, self.open = self.depth - 1, True

    def repeated(self, body: Sequence[ast.stmt]) -> None:
        self.line("{")
        self.block(body)
        self.line("}")

    def give_back(self, xs: Sequence[Scalar]) -> None:
        if isinstance(self.result, str):
            self.line(f"return {bare(xs[0].ref)};")
            return
        self.line(f"return (struct RESULT){{{', '.join(bare(x.ref) for x in xs)}}};")

    def on_If(self, s: ast.If) -> None:
        self.line(f"if ({bare(self.truth(self.scalar(s.test)).ref)}) {{")
        self.block(s.body)
        if s.orelse:
            self.line("} else {")
            self.block(s.orelse)
        self.line("}")

    def on_While(self, s: ast.While) -> None:
        self.line("while (true) {")
        self.depth += 1
        test = self.truth(self.scalar(s.test))
        if test.number is None:
            self.line(f"if (!{test.ref}) break;")
        self.depth -= 1
        self.block(s.body)
        self.line("}")

    def on_Break(self, s: ast.Break) -> None:
        self.line("break;")
        self.open = False

    def on_Continue(self, s: ast.Continue) -> None:
        self.line("continue;")
        self.open = False

    def range_loop(self, s: ast.For, start: Scalar, stop: Scalar, step: int) -> None:
        assert isinstance(s.target, ast.Name)
        i = plain(s.target.id)
        if s.target.id in self.variables:
            raise Unsupported(f"a loop over {s.target.id}, which is assigned elsewhere")
        if not re.fullmatch(r"\w+", stop.ref) or stop.ref in {place for _, place in self.variables.values()}:
            stop = self.kept(stop, "end")
        folds = self.folds(s.body) if step == 1 else {}
        if folds:
            start = self.in_lanes(s, i, start, stop, folds)
        further = f"{i}++" if step == 1 else f"{i}--" if step == -1 else f"{i} += {step}"
        self.line(f"for (int64_t {i} = {bare(start.ref)}; {i} {'<' if step > 0 else '>'} {stop.ref}; {further}) {{")
        self.names[s.target.id] = Scalar("i64", i)
        self.block(s.body)
        self.line("}")

    # -- folds in lanes, which compilers make vectors of: they keep the order of a sum

    def folds(self, body: Sequence[ast.stmt]) -> dict[str, str]:
        """The variables of floats that a loop folds into, and how, if nothing else in it changes."""
        found: dict[str, str] = {}
        for s in body:
            if not isinstance(s, ast.Assign):
                return {}
            for name in (t.id for t in s.targets if isinstance(t, ast.Name) and t.id in self.assigned):
                match s.value:
                    case ast.Call(ast.Name(how), [ast.Name(first), _]) if how in _STARTS and first == name:
                        found[name] = how
                    case _:
                        return {}
            if any(isinstance(t, ast.Tuple) for t in s.targets):
                return {}
        read = [n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        alone = all(read.count(n) == 1 and self.variables[n][0] in FLOATS for n in found)
        return found if alone else {}

    def in_lanes(self, s: ast.For, i: str, start: Scalar, stop: Scalar, folds: Mapping[str, str]) -> Scalar:
        """All steps but the last few, each fold in several numbers; where the last ones begin."""
        at, j, before = self.fresh("at"), self.fresh("j"), dict(self.variables)
        self.line(f"int64_t {at} = {bare(start.ref)};")
        self.line(f"if ({at} + {LANES} <= {stop.ref}) {{")
        self.depth += 1
        for name, how in folds.items():
            t, place = self.variables[name]
            lanes = self.fresh(f"{plain(name)}_lanes")
            self.line(f"{TYPES[t]} {lanes}[{LANES}];")
            self.line(f"for (int {j} = 0; {j} < {LANES}; {j}++) {lanes}[{j}] = {_STARTS[how] or place};")
            self.variables[name] = t, f"{lanes}[{j}]"
        self.line(f"for (; {at} + {LANES} <= {stop.ref}; {at} += {LANES}) {{")
        self.depth += 1
        self.line(f"for (int {j} = 0; {j} < {LANES}; {j}++) {{")
        self.line(f"  const int64_t {i} = {at} + {j};")
        assert isinstance(s.target, ast.Name)
        self.names[s.target.id] = Scalar("i64", i)
        self.block(s.body)
        self.line("}")
        self.depth -= 1
        self.line("}")
        for name, how in folds.items():
            (t, lane), self.variables[name] = self.variables[name], before[name]
            first, *others = [Scalar(t, lane.replace(j, f"{j} + {k}" if k else j)) for k in range(0, LANES, PARTS)]
            for other in others:
                first = self.folded(how, first, other)
            self.line(f"for (int {j} = 0; {j} < {PARTS}; {j}++) {lane} = {bare(first.ref)};")
            total = self.folded(how, self.loaded(name), Scalar(t, lane))
            self.line(f"for (int {j} = 0; {j} < {PARTS}; {j}++) {self.variables[name][1]} = {bare(total.ref)};")
        self.depth -= 1
        self.line("}")
        return Scalar("i64", at)


    def folded(self, how: str, x: Scalar, y: Scalar) -> Scalar:
        found = PRIMITIVES[how](self, [x, y])
        assert isinstance(found, Scalar)
        return found


#: How many numbers a fold is in: more than compilers write out one by one; to how many they are added by vectors.
LANES, PARTS = 32, 8
#: What the lanes of a fold start with, "": what it is before.
_STARTS = {"fold_add": "0", "fold_mul": "1", "fold_maximum": "", "fold_minimum": ""}

__all__ = ["Unit"]
