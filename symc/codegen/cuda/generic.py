"""Any kernel of the CPU as one for a GPU: its text as a function, which each thread runs for one unit of its loop.

Complete rather than fast: the templates that are asked before (``templates.py``) are for what matters. Units are steps
of the outermost loop; of sums of everything, blocks, whose sums one thread puts together in a second launch. What has
no units that know nothing of each other (a loop over time, sorting along the first axis, an update whose places are not
known) is computed by a single thread.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from symc.codegen.cpu.chunks import ARGUMENTS, PARTIAL_SUM, Chunks, chunks
from symc.codegen.cpu.loops import render_loop
from symc.codegen.cpu.render import Renderer, Source
from symc.codegen.cuda import cxx
from symc.codegen.cuda.indices import NARROW, Bound, bound_in, bound_of, of_indices
from symc.codegen.cuda.source import WARP, Argument, CudaSource, Entry
from symc.codegen.cuda.writer import storage
from symc.codegen.kernel.index_splitting import cut
from symc.codegen.kernel.scalarize import Loops
from symc.codegen.kernel.source import Form, updated_in_place
from symc.codegen.kernel.user_functions import is_users
from symc.codegen.plan.inplace import overwritten, updated_params
from symc.ir.dim import Size, ceildiv, product
from symc.ir.ops.compare import COMPARISONS
from symc.ir.ops.kernel import projection
from symc.ir.ops.store import insert, insert_place, store, store_running
from symc.ir.traverse import postorder, region_params
from symc.ir.types import TensorType
from symc.ir.value import Region, Value

#: Threads of a block.
THREADS = 128
#: How many elements one thread sums, of a sum of everything.
SUMMED = 4 * PARTIAL_SUM

class CudaRenderer(Renderer):
    """Writes the text of a kernel whose indices are of type ``index``, "i32" or "i64".

    A number computed from indices is one, too, as long as its size is known (``bounds``); everywhere else it becomes
    an i64, as the IR has it. ``fits``: what must be less than 2**31 for that, where indices are i32.
    """

    def __init__(self, loops: Loops, over: Collection[int], index: str):
        super().__init__("kernel", loops, over)
        self.index = index
        self.chunks = chunks(loops, 0, SUMMED)
        self.axis = 0  # of the outermost loops, that which is run in chunks
        if self.chunks is None:
            self.axis, self.chunks = inner_chunks(loops)
        self.bounds: dict[str, Bound] = {}  # by the name of the number
        self.fits: dict[Size, None] = {}
        region = loops.region
        for t in (*region.params, *(r.type for r in region.results)):
            assert isinstance(t, TensorType)
            self.fits[product(t.shape)] = None
        if self.chunks:
            self.size(self.chunks.units)  # the entry must know it

    def extent(self, shape: tuple[Size, ...], k: int, depth: int) -> str:
        return ", ".join(ARGUMENTS) if depth == self.axis + 1 and self.chunks else self.size(shape[k])

    def enter(self, v: Value, index: Sequence[str], env: dict[Value, str]) -> dict[Value, str]:
        shape: Sequence[Size] = v.attrs["shape"]
        self.fits[product(shape)] = None
        for name, n in zip(index, shape, strict=False):
            self.bounds[name] = Bound(n, True)
        return super().enter(v, index, env)

    def emit_scalar(self, v: Value, env: dict[Value, str], depth: int) -> None:
        if v.op.name == "size":
            env[v] = self.size(v.attrs["value"])
            self.bounds[env[v]] = Bound(v.attrs["value"], True)
            return
        operands = [bound_in(o, env, self.bounds) for o in v.operands]
        found = bound_of(v, operands)
        if found is not None:
            texts = [self.expression(o, env) for o in v.operands]
            env[v] = self.fresh("x")
            self.bounds[env[v]] = found
            self.fits[found.size] = None
            self.line(depth, f"{env[v]} = {self.index}({of_indices(v, texts)})")
            return
        if v.op.name == "load" or "checks" in v.op.traits or v.op in COMPARISONS and None not in operands:
            super().emit_scalar(v, env, depth)
            return
        seen = {o: f"i64({env[o]})" for o, b in zip(v.operands, operands, strict=True) if b is not None and o in env}
        scope = {**env, **seen} if seen else env
        super().emit_scalar(v, scope, depth)
        env[v] = scope[v]


class Generic:
    """The variants of any kernel that the CPU has: indices of 32 bits, and "wide" ones. ``loops``: None for one that is
    a loop over time."""

    def __init__(self, form: Form, loops: Loops | None):
        self.form, self.loops = form, loops
        self.sources: dict[tuple[str, str], CudaSource] = {}
        self.fits: tuple[Size, ...] | None = None
        self.unit: int | None = None  # the loop, of those from outside in, whose steps threads share

    def choose(self, number: Callable[[Size], int]) -> str:
        if self.loops is None:
            return "wide"
        if self.fits is None:
            results = [product(r.shape) for r in self.form[0].results]
            self.fits = tuple(dict.fromkeys([*self.text("i32")[1], *results]))
        return "wide" if any(number(s) >= NARROW for s in self.fits) else ""

    def source(self, choice: str, name: str) -> CudaSource:
        key = choice, name
        if key not in self.sources:
            index = "i64" if choice == "wide" else "i32"
            of = self.text(index)[0]
            parts = [_Part(self.form, self.start(k, index), f"{name}_start{k}", (k,), index) for k in self.separate()]
            parts.append(_Part(self.form, of, name, tuple(range(len(of.results))), index))
            text = "".join(p.body() + p.entries() for p in parts)
            scratch = tuple(of.chunks.units * d.itemsize for d in of.partial) if of.chunks is not None else ()
            helpers = dict.fromkeys(h for p in parts for h in p.helpers)
            self.sources[key] = CudaSource(text, tuple(helpers), tuple(e for p in parts for e in p.made), of.operands,
                                           of.results, scratch, of.fails, index == "i64")
        return self.sources[key]

    def text(self, index: str) -> tuple[Source, Collection[Size]]:
        """The kernel in Python, and what must fit into 32 bits. Raises Unsupported."""
        region, over = self.form[0], updated_in_place(self.form)
        if self.loops is None:
            return render_loop("kernel", region, interruptible=False), ()
        renderer = CudaRenderer(replace(self.loops, starts={}), over, index)
        self.unit = renderer.axis if renderer.chunks else None
        return renderer.run(), renderer.fits

    def separate(self) -> list[int]:
        """Results that hold something before, elsewhere than in their own memory: it is written by launches before."""
        over = updated_in_place(self.form)
        starts = {} if self.loops is None else self.loops.starts
        return [k for k, start in starts.items() if isinstance(start, Region) or k not in over]

    def start(self, k: int, index: str) -> Source:
        """Source that writes the start of result ``k``: a kernel of one result."""
        assert self.loops is not None
        region, start = self.loops.region, self.loops.starts[k]
        if isinstance(start, Region):
            return CudaRenderer(Loops(start, False), (), index).run()
        whole = region.params[start]
        assert isinstance(whole, TensorType)
        names = ", ".join(f"a{j}" for j in range(len(region.params)))
        text = f"def kernel(begin, end, n0, {names}, o0):\n  for i in range(begin, end):\n    o0[i] = a{start}[i]\n"
        units = product(whole.shape)
        operands = tuple(p.dtype for p in region.params)  # type: ignore[union-attr]
        return Source(text, (units,), operands, (whole.dtype,), chunks=Chunks(units, 1, 0))


class _Part:
    """One function, and the entries that call it. ``results``: which results of the kernel it writes."""

    def __init__(self, form: Form, of: Source, name: str, results: tuple[int, ...], index: str):
        self.form, self.of, self.name, self.index, self.results = form, of, name, index, results
        self.made: list[Entry] = []
        self.helpers: dict[str, None] = {}

    def entries(self) -> str:
        p = self.of.chunks
        if p is None:
            return self.entry("", (1, 1, 1), WARP, "threadIdx.x == 0", ())
        units, last = self.number(p.units), (0, 1)[: p.block is not None]
        grid = ceildiv(p.units, THREADS), 1, 1
        text = self.entry("", grid, THREADS, f"unit < {units}", ("unit", "unit + 1", *map(str, last[:1])))
        if p.block is not None:
            text += self.entry("_last", (1, 1, 1), WARP, "threadIdx.x == 0", ("0", "0", "1"))
        return text

    def entry(self, end: str, grid: tuple[Size, Size, Size], threads: int, who: str, chunk: Sequence[str]) -> str:
        """An entry: the end of its name, blocks, threads, which of these work, what of the loop."""
        parameters, name = self.parameters(), self.name + end
        typed = ", ".join(t + n for _, t, n in parameters)
        lines = [f'extern "C" __global__ void __launch_bounds__({threads}) {name}({typed}) {{']
        if "unit" in who:
            lines.append(f"  const {self.index} unit = {self.index}(blockIdx.x) * {threads} + threadIdx.x;")
        lines.append(f"  if ({who}) {self.name}_units({', '.join([*chunk, *(n for _, _, n in parameters)])});")
        self.made.append(Entry(name, tuple(a for a, _, _ in parameters), grid, threads))
        return "\n".join([*lines, "}", ""])

    def parameters(self) -> list[tuple[Argument, str, str]]:
        """The arguments that all entries take: what they are, their types and names."""
        of, index = self.of, self.index
        once = self.apart()
        out = [(Argument("size", size=s), f"const {index} ", f"n{k}") for k, s in enumerate(of.sizes)]
        out += [(Argument("operand", k), f"const {storage(d)} *{'__restrict__ ' * (k in once)}", f"a{k}")
                for k, d in enumerate(of.operands)]
        out += [(Argument("result", r), f"{storage(d)} *", f"o{k}")
                for k, (r, d) in enumerate(zip(self.results, of.results, strict=True))]
        out += [(Argument("scratch", k), f"{storage(d)} *", f"q{k}") for k, d in enumerate(of.partial)]
        return out + ([(Argument("failed"), "i32 *", "failed")] if of.fails else [])

    def apart(self) -> set[int]:
        """Operands in whose memory no result lies."""
        region, _ = self.form
        inside = {*overwritten(region), *updated_params(region).values()}
        return set(range(len(self.of.operands))) - inside

    def body(self) -> str:
        """The function that does some units."""
        (tree,) = ast.parse(self.of.text).body
        assert isinstance(tree, ast.FunctionDef)
        names = [a.arg for a in tree.args.args]
        chunk = self.of.chunks.arguments if self.of.chunks else ()
        head = [f"const {self.index} {a}" for a in chunk] + [t + n for _, t, n in self.parameters()]
        lines = cxx.Translator(self.index, self.helpers).body(tree.body, names)
        opening = f"SYMC_FUNCTION void {self.name}_units({', '.join(head)}) {{"
        return "\n".join([opening, *lines, "}", ""])

    def number(self, s: Size) -> str:
        return str(s) if isinstance(s, int) else f"n{self.of.sizes.index(s)}"


def inner_chunks(loops: Loops) -> tuple[int, Chunks | None]:
    """The longest axis whose steps are apart from one another, and chunks along it; None where there is none."""
    extents: list[Size] = []
    axes: dict[Value, int] = {}  # the indices that a region knows, by its params
    region = loops.region
    while True:
        nests = [v for v in postorder(region.results) if v.regions]
        if not nests:
            break
        (nest, *others) = nests
        made = all(projection(r)[0] is nest for r in region.results)
        if others or nest.op.name != "generate" or not made or len(nest.attrs["shape"]) != 1 or cut(nest) is not None:
            return 0, None
        params = region_params(nest.regions[0])
        axes = {params[0]: len(extents), **{p: axes[o] for p, o in zip(params[1:], nest.operands, strict=True)
                                            if o in axes}}
        extents += nest.attrs["shape"]
        region = nest.regions[0]
    if _calls_users(region):
        return 0, None
    found = [a for a in range(1, len(extents)) if all(_is_apart(r, a, axes) for r in region.results)]
    if not found:
        return 0, None
    axis = max(found, key=lambda a: (_steps(extents[a]), a))
    return axis, Chunks(extents[axis], 1, 0)


def _steps(extent: Size) -> float:
    """The number of steps of an axis; one of unknown size counts as many."""
    return extent if isinstance(extent, int) else math.inf


def _is_apart(r: Value, axis: int, axes: Mapping[Value, int]) -> bool:
    """True if a result is written, along an axis, where no other step writes."""
    if r.op in (store_running, insert, insert_place):
        return r.attrs["axis"] != axis
    return r.op is not store or any(axes.get(place) == axis for place in r.operands[1:])


def _calls_users(region: Region) -> bool:
    return any(is_users(v.op.name) for v in postorder(region.results))
