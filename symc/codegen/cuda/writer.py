"""Writer that the templates share: the text of scalars, of sizes and of places in arrays, in CUDA C++.

A template decides which thread computes what. The scalars of a region are the same text everywhere: those that the
table of the CPU's kernels has for them, as C++. A name of a loop's index has the type of sizes (``i32`` or ``i64``) and
becomes an ``i64``, which it is in the IR, where it is more than a place.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from symc.codegen.cpu.text import combine, failing, identity, loaded, number, scalar, stored
from symc.codegen.cuda import cxx
from symc.codegen.cuda.indices import NARROW, Bound, bound_in, bound_of, of_indices
from symc.codegen.cuda.source import Argument, CudaSource, Entry
from symc.codegen.kernel.scalarize import Loops
from symc.codegen.kernel.source import Form, updated_in_place
from symc.codegen.language.syntax import Unsupported
from symc.codegen.plan.inplace import overwritten
from symc.ir.dim import Size, product
from symc.ir.dtypes import RECORDS, computed
from symc.ir.ops.compare import COMPARISONS
from symc.ir.record import dataclass, field
from symc.ir.traverse import every_value
from symc.ir.types import TensorType
from symc.ir.value import Value

Env = dict[Value, str]

_NAME, _NAMED = re.compile(r"\b[a-z]+\d+_\b"), re.compile(r"\s*const \w+ ([a-z]+\d+_) = [^;]*;$")

#: Bytes that a thread reads or writes at once, at most.
VECTOR = 16
#: Threads of a block where nothing asks for another number.
BLOCK = 256


@dataclass(frozen=True)
class Part:
    """Place of the elements of a loop's result: in ``result``, of which they are the ``number``-th of ``count`` parts
    that lie side by side, ``inner`` elements of each at a time."""

    result: int
    number: int = 0
    count: int = 1
    inner: Size = 1


@dataclass(frozen=True)
class Kernel:
    """A kernel that a template is asked for. ``aliased``: operands in whose memory a result may lie; ``over``: updated
    results that lie in that of what they update; ``parts``: of each result of the loops, if some are packed."""

    loops: Loops
    over: tuple[int, ...]
    aliased: frozenset[int]
    operands: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    parts: tuple[Part, ...] = ()

    @staticmethod
    def of(form: Form, loops: Loops, parts: tuple[Part, ...] = ()) -> Kernel:
        region, over = form[0], updated_in_place(form)
        updated = [k for k in loops.starts.values() if isinstance(k, int)]
        operands, results = region.params, tuple(r.type for r in region.results)
        aliased = frozenset([*overwritten(region), *updated])
        return Kernel(loops, over, aliased, operands, results, parts)  # type: ignore[arg-type]

    @property
    def is_complex(self) -> bool:
        """True if complex numbers are anywhere in it."""
        return any(t.dtype.kind == "c" for v in every_value(self.loops.region) for t in v.types)



def storage(dtype: np.dtype) -> str:
    """Storage type of an element: the type behind a pointer."""
    return RECORDS[dtype].memory


def scalar_type(dtype: np.dtype) -> str:
    """The type of a scalar that is computed with."""
    return RECORDS[dtype].computed


@dataclass
class Writer:
    """Writes one text. ``index``: the type of places and sizes."""

    kernel: Kernel
    index: str
    lines: list[str] = field(default_factory=list)
    sizes: dict[Size, str] = field(default_factory=dict)
    helpers: dict[str, None] = field(default_factory=dict)
    parts: dict[str, None] = field(default_factory=dict)
    bounds: dict[str, Bound] = field(default_factory=dict)  # how large numbers of the type ``index`` are, by name
    fits: dict[Size, None] = field(default_factory=dict)  # what must be less than 2**31 for indices of 32 bits
    fails: bool = False
    count: int = 0

    def line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    @contextmanager
    def block(self, depth: int, head: str) -> Iterator[int]:
        """Write a statement and braces around what comes next; how deep that is."""
        self.line(depth, f"{head} {{")
        yield depth + 1
        self.line(depth, "}")

    def each(self, depth: int, name: str, count: int, statement: str = "{", first: int = 0) -> None:
        """Write a loop of one statement, or the head of one, that is unrolled."""
        self.line(depth, "#pragma unroll")
        self.line(depth, f"for (int {name} = {first}; {name} < {count}; ++{name}) {statement}".rstrip())

    @contextmanager
    def loop(self, depth: int, name: str, count: int) -> Iterator[None]:
        """Write such a loop around what comes next."""
        self.each(depth, name, count)
        yield
        self.line(depth, "}")

    def thread(self, name: str, limit: Size) -> None:
        """Write the number of a thread; those from the limit on return."""
        self.is_index(name, limit)
        self.line(1, f"const {self.index} {name} = {self.index}(blockIdx.x) * {BLOCK} + threadIdx.x;")
        self.line(1, f"if ({name} >= {self.size(limit)}) return;")

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count - 1}_"

    def new_index(self, limit: Size, prefix: str = "i") -> str:
        """A new name of an index that is less than a limit."""
        return self.is_index(self.fresh(prefix), limit)

    def is_index(self, name: str, limit: Size) -> str:
        self.bounds[name] = Bound(limit, True)
        self.fits[limit] = None
        return name

    # -- sizes and places

    def size(self, s: Size) -> str:
        """A size: a number, or the name of an argument."""
        if isinstance(s, int):
            return str(s) if -(2**31) < s < 2**31 else f"{s}LL"
        return self.sizes.setdefault(s, f"n{len(self.sizes)}")

    def place(self, text: str) -> str:
        """A scalar as (part of) a place."""
        return text if text in self.bounds or text.lstrip("-").isdigit() else f"{self.index}({text})"

    def offset(self, index: Sequence[str], shape: Sequence[Size]) -> str:
        """The row-major position of an index."""
        terms = []
        for k, i in enumerate(index):
            stride = product(shape[k + 1 :])
            if i != "0" and stride != 0:
                terms.append(self.place(i) if stride == 1 else f"{self.place(i)} * {self.size(stride)}")
        return " + ".join(terms) or "0"

    def unravel(self, position: str, shape: Sequence[Size], depth: int) -> tuple[str, ...]:
        """Names of the indices of a position, along each axis."""
        names: list[str] = []
        for k in reversed(range(1, len(shape))):
            n = shape[k]
            name, rest = self.new_index(n), self.new_index(product(shape[:k]), "r")
            self.line(depth, f"const {self.index} {rest} = {self.divided(position, n)};")
            self.line(depth, f"const {self.index} {name} = {position} - {rest} * {self.size(n)};")
            names.insert(0, name)
            position = rest
        return (position, *names) if shape else ()

    def divided(self, position: str, by: Size) -> str:
        """A quotient of numbers that are not negative."""
        unsigned = "u" + self.index[1:]
        return f"{self.index}({unsigned}({position}) / {unsigned}({self.size(by)}))"

    # -- scalars

    def expression(self, v: Value, env: Mapping[Value, str]) -> str:
        """A scalar that has been written, in C++."""
        text = self.operand(v, env)
        return self.cxx(text) if v not in env and v.data is not None else text

    def operand(self, v: Value, env: Mapping[Value, str]) -> str:
        """A scalar that has been written, in the language of the table."""
        if v in env:
            return f"i64({env[v]})" if env[v] in self.bounds else env[v]
        if v.data is not None:
            text = number(v.data)
            return f"i64({text})" if v.dtype == np.int64 else text
        if v.op.name == "size":
            return f"i64({self.size(v.attrs['value'])})"
        raise Unsupported(f"{v.op.name} as a scalar")

    def index_text(self, v: Value, env: Mapping[Value, str]) -> str:
        """A scalar as an index of a load, or beside an index."""
        if v.data is not None and v not in env:
            return str(int(v.data))
        if v.op.name == "size" and v not in env:
            return self.size(v.attrs["value"])
        return env[v] if v in env else self.expression(v, env)

    def cxx(self, text: str) -> str:
        """The text of a scalar in C++."""
        return cxx.expression(text, self.helpers, self.index)

    def address(self, v: Value, env: Mapping[Value, str]) -> str:
        """The place that a load reads."""
        array = v.operands[0]
        assert isinstance(array.type, TensorType)
        return self.offset([self.index_text(i, env) for i in v.operands[1:]], array.type.shape)

    def read(self, text: str, dtype: np.dtype) -> str:
        self.cxx(loaded("x", dtype))  # adds what it calls to the helpers
        return loaded(text, dtype)

    def stored(self, text: str, dtype: np.dtype) -> str:
        self.cxx(stored("x", dtype))
        return stored(text, dtype)

    def emit(self, values: Iterable[Value], env: Env, depth: int) -> None:
        """Write scalars, as far as they are not there yet."""
        for v in values:
            if v not in env and v.op.name != "constant":
                self.emit_scalar(v, env, depth)

    def emit_scalar(self, v: Value, env: Env, depth: int) -> None:
        if v.regions or v.op.name in ("store", "store_packed", "store_running", "insert", "insert_place", "bisect"):
            raise Unsupported(f"{v.op.name} as a scalar")
        if v.op.name == "size":
            env[v] = self.is_index(self.size(v.attrs["value"]), v.attrs["value"])
            return
        bounds = [bound_in(o, env, self.bounds) for o in v.operands]
        found = bound_of(v, bounds)
        if found is not None:
            text = of_indices(v, [self.index_text(o, env) for o in v.operands])
            env[v] = self.fresh("v")
            self.bounds[env[v]] = found
            self.fits[found.size] = None
            self.line(depth, f"const {self.index} {env[v]} = {text};")
            return
        if "checks" in v.op.traits:
            x = env[v] = self.expression(v.operands[0], env)
            self.fails = True
            self.line(depth, f"if ({' || '.join(failing(v, x, self.size))}) fail(failed);")
            return
        if v.op.name == "load":
            text = self.read(f"{env[v.operands[0]]}[{self.address(v, env)}]", v.dtype)
        else:
            of_bounds = v.op in COMPARISONS and None not in bounds
            operands = [self.index_text(o, env) if of_bounds else self.operand(o, env) for o in v.operands]
            text = self.cxx(scalar(v, operands))
        env[v] = self.fresh("t")
        self.line(depth, f"const {scalar_type(v.dtype)} {env[v]} = {text};")

    # -- folds

    def identity(self, kind: str, dtype: np.dtype) -> str:
        return self.cxx(identity(kind, dtype))

    def combined(self, kind: str, now: str, x: str, dtype: np.dtype) -> str:
        """One step of a fold, in the type that scalars of this dtype have."""
        texts = {"now_": now, "new_": x}  # names instead of texts that only C++ understands
        form = self.cxx(combine(kind, "now_", "new_", computed(dtype), exact=True))
        return re.sub("now_|new_", lambda m: texts[m[0]], form)

    # -- the whole

    def head(self, name: str, arguments: Sequence[Argument], threads: int) -> str:
        """The first line of an entry."""
        names = ", ".join(self.declaration(a) for a in arguments)
        return f'extern "C" __global__ void __launch_bounds__({threads}) {name}({names}) {{'

    def declaration(self, a: Argument) -> str:
        if a.kind == "operand":
            once = "" if a.index in self.kernel.aliased else "__restrict__ "
            return f"const {storage(self.kernel.operands[a.index].dtype)} *{once}a{a.index}"
        if a.kind == "result":
            return f"{storage(self.kernel.results[a.index].dtype)} *o{a.index}"
        if a.kind == "scratch":
            return f"u8 *scratch{a.index}"
        if a.kind == "failed":
            return "int *failed"
        return f"const {self.index} {self.sizes[a.size]}"

    def arguments(self, scratch: int) -> tuple[Argument, ...]:
        """The arguments of an entry: arrays, scratch memory, and all sizes so far."""
        k, o = self.kernel, Argument
        out = [o("operand", i) for i in range(len(k.operands))] + [o("result", i) for i in range(len(k.results))]
        out += [o("scratch", i) for i in range(scratch)] + [o("failed")] * self.fails
        return (*out, *[o("size", size=s) for s in self.sizes])

    def too_large(self, number_: Callable[[Size], int]) -> bool:
        """True if indices of 32 bits do not hold what is computed."""
        arrays = [product(t.shape) for t in (*self.kernel.operands, *self.kernel.results)]
        return any(number_(s) >= NARROW for s in (*self.fits, *arrays))

    def launches(self, bodies: Sequence[tuple[str, tuple[Size, Size, Size], int, Sequence[str]]],
                 scratch: Sequence[Size] = (), again: tuple[tuple[int, Size], ...] = ()) -> Text:
        """The source of entries, in the order of their launches: a name, blocks, threads of a block, lines of each.
        ``scratch``: bytes of memory that they share; ``again``: as entries have it."""
        arguments = self.arguments(scratch=len(scratch))
        lines = [x for name, _, threads, body in bodies for x in (self.head(name, arguments, threads), *body, "}")]
        entries = tuple(Entry(name, arguments, grid, threads, again=again) for name, grid, threads, _ in bodies)
        text = "\n".join([*self.parts, *needed(lines)]) + "\n"
        return CudaSource(text, tuple(self.helpers), entries, tuple(t.dtype for t in self.kernel.operands),
                          tuple(t.dtype for t in self.kernel.results), tuple(scratch), self.fails,
                          self.index == "i64"), self


#: The source of a variant, and what wrote it.
Text = tuple[CudaSource, Writer]


class Variants(ABC):
    """The variants of a kernel, each written once. A template says which there are (``choose``) and writes one."""

    @cached_property
    def _texts(self) -> dict[tuple[str, str], Text]:
        return {}

    @abstractmethod
    def choose(self, number: Callable[[Size], int]) -> str:
        """The key of the variant for certain sizes."""

    @abstractmethod
    def write(self, words: Sequence[str], name: str) -> Text:
        """The variant whose key has these words."""

    def text(self, choice: str, name: str) -> Text:
        """The variant with this key."""
        key = choice, name
        if key not in self._texts:
            self._texts[key] = self.write(choice.split("_"), name)
        return self._texts[key]

    def source(self, choice: str, name: str) -> CudaSource:
        """The source of the variant with this key."""
        return self.text(choice, name)[0]

    def chosen(self, word: str, number: Callable[[Size], int]) -> str:
        """The key of a variant: this word, and "wide" where its indices need 64 bits."""
        _, w = self.text(word, "kernel")
        return word if not w.too_large(number) else f"{word}_wide" if word else "wide"


def needed(lines: Sequence[str]) -> list[str]:
    """The lines without names that nothing reads."""
    lines = list(lines)
    while True:
        uses = Counter(word for line in lines for word in _NAME.findall(line))
        kept = [line for line in lines if not (found := _NAMED.match(line)) or uses[found[1]] > 1]
        if len(kept) == len(lines):
            return kept
        lines = kept
