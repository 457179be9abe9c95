"""Elementwise kernels: a thread computes 16 bytes of each result, or twice that.

The space is one run of elements. What is read at the same place as it is written comes in vectors; so does, where rows
are whole vectors, what is read along a row (a bias, the rows that a gather picks), and what is the same in all of a row
is computed once for a vector. The last block does its elements one by one. A kernel that reads anything else from place
to place computes single elements: neighbouring threads read neighbouring places then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.codegen.cuda.nests import depending, is_heavy, params_of
from symc.codegen.cuda.vectors import VECTORS, vector_type
from symc.codegen.cuda.writer import BLOCK, VECTOR, Env, Kernel, Part, Text, Variants, Writer, scalar_type, storage
from symc.ir.dim import Size, ceildiv, product
from symc.ir.ops.kernel import projection
from symc.ir.traverse import postorder, region_params
from symc.ir.value import Value

#: A kernel that moves more bytes than this has so many threads at least, if it has elements for them.
LARGE, THREADS = 2**20, 2**14
#: From so many elements on a thread computes two vectors, or four elements, whose reads are on their way together.
MANY = 2**20


def flat(kernel: Kernel) -> Flat | None:
    """The variants of a kernel that is one loop nest over elements; None for another."""
    nests = [v for v in postorder(kernel.loops.region.results) if v.regions]
    if len(nests) != 1 or nests[0].op.name != "generate" or kernel.loops.starts or not nests[0].attrs["shape"]:
        return None
    found = [projection(r) for r in kernel.loops.region.results]
    inside = postorder(nests[0].regions[0].results)
    if sorted(k for _, k in found) != list(range(len(nests[0].regions[0].results))):
        return None
    if any(v is not nests[0] for v, _ in found) or any(v.regions or v.op.name.startswith(("store", "insert"))
                                                      for v in inside):
        return None
    return Flat(kernel, nests[0], [k for _, k in found])


class Flat(Variants):
    """``nest``: the loop nest; ``order``: which of its results each result of the kernel is."""

    def __init__(self, kernel: Kernel, nest: Value, order: Sequence[int]):
        self.kernel, self.nest, self.order = kernel, nest, order
        (self.region,) = nest.regions
        self.shape: tuple[Size, ...] = nest.attrs["shape"]
        self.index = tuple(region_params(self.region)[: len(self.shape)])
        self.inner = depending(self.region, self.index[-1:])
        self.loads = [v for v in postorder(self.region.results) if v.op.name == "load"]
        self.whole = [v for v in self.loads if v.operands[1:] == self.index and v.operands[0].shape == self.shape]
        self.along = [v for v in self.loads if v not in self.whole and self._is_along(v)]
        widest = max(v.dtype.itemsize for v in (*self.whole, *self.along, *self.region.results))
        apart = any(v not in self.whole and v not in self.along and v in self.inner for v in self.loads)
        self.heavy = is_heavy(self.region)
        self.vector = 1 if self.heavy or apart else VECTOR // widest

    def _is_along(self, v: Value) -> bool:
        """True if a load reads along a row."""
        rows = len(self.shape) > 1 and all(i not in self.inner for i in v.operands[1:-1])
        return rows and v.operands[-1] is self.index[-1] and v.operands[0].shape[-1] == self.shape[-1]

    def choose(self, number: Callable[[Size], int]) -> str:
        n = number(product(self.shape))
        moved = n * sum(v.dtype.itemsize for v in (*self.whole, *self.region.results))
        single = any(number(p.inner) % self.vector for p in self.kernel.parts if p.count > 1) or (
            THREADS <= n < THREADS * self.vector and moved > LARGE)
        rows = not single and len(self.shape) > 1 and self.vector > 1 and number(self.shape[-1]) % self.vector == 0
        many = not self.heavy and n >= MANY
        words = ("single", single), ("rows", rows), ("many", many)
        return self.chosen("_".join(word for word, on in words if on), number)

    def place(self, w: Writer, k: int, position: str) -> str:
        """The address at which result ``k`` of the loops has the element of a position."""
        i = self.order.index(k)
        p = self.kernel.parts[i] if self.kernel.parts else Part(i)
        if p.count == 1:
            return f"o{p.result} + {position}"
        before = f"{w.divided(position, p.inner)} * {p.count - 1}" + f" + {p.number}" * bool(p.number)
        return f"o{p.result} + {position} + ({before}) * {w.size(p.inner)}"

    def write(self, words: Sequence[str], name: str) -> Text:
        return _Text(self, words).source(name)


class _Text:
    """Writes one variant."""

    def __init__(self, of: Flat, words: Sequence[str]):
        self.of = of
        self.w = Writer(of.kernel, "i64" if "wide" in words else "i32")
        self.rows = "rows" in words
        self.vector = of.vector if (self.rows or not of.along) and "single" not in words else 1
        self.times = (2 if self.vector > 1 else 4) if "many" in words else 1

    def source(self, name: str) -> Text:
        w, of = self.w, self.of
        n, threads = product(of.shape), BLOCK * self.vector * self.times
        w.parts[VECTORS] = None
        env = params_of(of.kernel.loops.region)
        w.emit([v for v in postorder(of.kernel.loops.region.results) if not v.regions and v.op.name != "get"], env, 1)
        params = region_params(of.region)
        scope = dict(zip(params[len(of.shape) :], [env.get(o) or w.expression(o, env) for o in of.nest.operands],
                         strict=True))
        self._lambda(scope)
        w.line(1, f"const {w.index} first = {w.index}(blockIdx.x) * {threads};")
        w.line(1, f"if ({w.size(n)} - first >= {threads}) {{")
        self._full(scope)
        w.line(1, "} else {")
        self._rest(scope, n)
        w.line(1, "}")
        return w.launches([(name, (ceildiv(n, threads), 1, 1), BLOCK, w.lines)])

    # -- what is computed of one element, or of a vector in a row

    def _lambda(self, scope: Env) -> None:
        w, of = self.w, self.of
        packs = [(storage(v.dtype), f"x{k}", "const ") for k, v in enumerate(of.whole)]
        packs += [(storage(r.dtype), f"y{k}", "") for k, r in enumerate(of.region.results)]
        if self.rows:
            typed = [f"{const}{vector_type(t, self.vector)} &{x}" for t, x, const in packs]
        else:
            typed = [f"{const}{t} {'' if const else '&'}{x}" for t, x, const in packs]
        w.line(1, f"auto compute = [&](const {w.index} p, {', '.join(typed)}) {{")
        w.is_index("p", product(of.shape))
        scope = dict(scope)
        scope.update(zip(of.index, w.unravel("p", of.shape, 2), strict=True))
        depth, at = 2, ""
        if self.rows:
            self._row(scope)
            w.each(2, "e", self.vector)
            depth, at = 3, ".at[e]"
            column = w.new_index(of.shape[-1])
            w.line(3, f"const {w.index} {column} = {scope[of.index[-1]]} + e;")
            scope[of.index[-1]] = column
        for k, v in enumerate(of.whole):
            self._element(v, f"x{k}{at}", scope, depth)
        for k, v in enumerate(of.along if self.rows else ()):
            self._element(v, f"z{k}{at}", scope, depth)
        w.emit(postorder(of.region.results), scope, depth)
        for k, r in enumerate(of.region.results):
            w.line(depth, f"y{k}{at} = {w.stored(w.expression(r, scope), r.dtype)};")
        if self.rows:
            w.line(2, "}")
        w.line(1, "};")

    def _row(self, scope: Env) -> None:
        """Code of what is the same in a row, and of what is read along it."""
        w, of = self.w, self.of
        w.emit([v for v in postorder(of.region.results) if v not in of.inner], scope, 2)
        for k, v in enumerate(of.along):
            w.line(2, f"{vector_type(storage(v.dtype), self.vector)} z{k};")
            w.line(2, f"load_vector(z{k}, {scope[v.operands[0]]} + {w.address(v, scope)});")

    def _element(self, v: Value, text: str, scope: Env, depth: int) -> None:
        w = self.w
        scope[v] = w.fresh("t")
        w.line(depth, f"const {scalar_type(v.dtype)} {scope[v]} = {w.read(text, v.dtype)};")

    # -- blocks

    def _names(self, scope: Env) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, int]]]:
        """Type, name and array of what comes in vectors; type, name and number of what goes."""
        of = self.of
        come = [(storage(v.dtype), f"x{k}", scope[v.operands[0]]) for k, v in enumerate(of.whole)]
        go = [(storage(r.dtype), f"y{k}", k) for k, r in enumerate(of.region.results)]
        return come, go

    def _full(self, scope: Env) -> None:
        w, (come, go), times, vector = self.w, self._names(scope), self.times, self.vector
        for u in range(times):
            w.line(2, f"const {w.index} p{u} = first + ({u * BLOCK} + {w.index}(threadIdx.x)) * {vector};")
        for t, x, array in come:
            for u in range(times):
                w.line(2, f"{vector_type(t, vector)} {x}_{u}; load_vector({x}_{u}, {array} + p{u});")
        for u in range(times):
            w.line(2, " ".join(f"{vector_type(t, vector)} {y}_{u};" for t, y, _ in go))
            if self.rows:
                w.line(2, f"compute({', '.join([f'p{u}', *[f'{x}_{u}' for _, x, _ in (*come, *go)]])});")
            else:
                given = [f"p{u} + e", *[f"{x}_{u}.at[e]" for _, x, _ in (*come, *go)]]
                w.each(2, "e", vector, f"compute({', '.join(given)});")
        for _, y, k in go:
            for u in range(times):
                w.line(2, f"store_vector({self.of.place(w, k, f'p{u}')}, {y}_{u});")

    def _rest(self, scope: Env, n: Size) -> None:
        w, (come, go) = self.w, self._names(scope)
        step = self.vector if self.rows else 1
        start = f"first + {w.index}(threadIdx.x)" + f" * {step}" * (step > 1)
        w.line(2, "#pragma unroll 1")
        with w.block(2, f"for ({w.index} p = {start}; p < {w.size(n)}; p += {BLOCK * step})"):
            for t, x, array in come:
                w.line(3, f"{vector_type(t, step)} {x}; load_vector({x}, {array} + p);" if self.rows else
                       f"const {t} {x} = {array}[p];")
            w.line(3, " ".join(f"{vector_type(t, step) if self.rows else t} {y};" for t, y, _ in go))
            w.line(3, f"compute({', '.join(['p', *[x for _, x, _ in (*come, *go)]])});")
            for _, y, k in go:
                at = self.of.place(w, k, "p")
                w.line(3, f"store_vector({at}, {y});" if self.rows else f"{_element(at)} = {y};")


def _element(address: str) -> str:
    """The element at an address, as an array has it."""
    array, _, place = address.partition(" + ")
    return f"{array}[{place}]"
