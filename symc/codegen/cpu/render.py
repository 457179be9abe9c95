"""Kernels as small readable Python functions over pointers and sizes.

A kernel's arguments are sizes, then operands, then results. One whose outermost loop may be run in chunks begins with
where a chunk begins and ends (``chunks.py``). Equal sources are one kernel, whatever sizes are called in the graph.
This module makes text; ``symc.runtime.cpu.kernels`` compiles it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from symc.codegen.cpu.blocks import INSIDE, close_block, limits_in_block, open_block
from symc.codegen.cpu.checks import clamped, emit_check
from symc.codegen.cpu.chunks import ARGUMENTS, PARTIAL_SUM, Chunks
from symc.codegen.cpu.columns import emit_columns, is_columns
from symc.codegen.cpu.first_place import emit_first_place, is_first_place
from symc.codegen.cpu.folds import Accumulator, fold_parts, is_long, kept_rows, rows_of, short_sum, written_last
from symc.codegen.cpu.scatters import emit_scatters, scatters
from symc.codegen.cpu.search import emit_bisect, emit_searches, searches
from symc.codegen.cpu.stores import PUTS
from symc.codegen.cpu.text import loaded, number, scalar, stored
from symc.codegen.cpu.tiles import open_few, open_tiles, turned
from symc.codegen.cpu.turned import few_along
from symc.codegen.cpu.writer import Row, Target, Writer
from symc.codegen.kernel.index_splitting import Parts, Range, cut, limits, part
from symc.codegen.kernel.scalarize import Loops
from symc.codegen.language.syntax import Unsupported
from symc.ir.dim import Size, product
from symc.ir.ops.kernel import bisect, projection
from symc.ir.record import dataclass, field
from symc.ir.traverse import every_value, postorder, region_params
from symc.ir.types import TensorType
from symc.ir.value import Region, Value

PAIR, SHORT_ROW = 4, 64  # steps of a loop that is unrolled, and of one that would be with it
MUCH = 20  # values


@dataclass(frozen=True)
class Source:
    """A kernel's text. ``sizes``: what the size arguments are, in order; ``types``: dtypes of operands and results.

    ``fails``: the last argument is the address of a byte, which the kernel sets to 1 where its reference raises.
    ``chunks``: the first arguments say which chunk of the outermost loop to run. ``partial``: dtypes of arrays of as
    many elements as there are units, after the results, for what is summed in each. ``polls``: the last argument of all
    is the address of the interpreter's words; when Python has failed, the kernel has stopped, and its results are void.
    """

    text: str
    sizes: tuple[Size, ...]
    operands: tuple[np.dtype, ...]
    results: tuple[np.dtype, ...]
    fails: bool = False
    chunks: Chunks | None = None
    partial: tuple[np.dtype, ...] = ()
    polls: bool = False

    @property
    def numbers(self) -> int:
        """The number of arguments that are numbers: they come first."""
        return len(self.chunks.arguments if self.chunks else ()) + len(self.sizes)

    @property
    def arrays(self) -> tuple[np.dtype, ...]:
        """The dtypes of the arguments after them."""
        return (*self.operands, *self.results, *self.partial, *[np.dtype(np.uint8)] * self.fails,
                *[np.dtype(np.int64)] * self.polls)

    def whole(self, number: Callable[[Size], int]) -> list[int]:
        """The numbers of a call that runs all of the outermost loop."""
        chunk = [0, number(self.chunks.units), 1][: len(self.chunks.arguments)] if self.chunks else []
        return chunk + [number(s) for s in self.sizes]


def render(name: str, loops: Loops, over: Collection[int] = (), shared: Mapping[int, int] = {}) -> Source:
    """The source of a kernel called ``name``. ``over``: updated results that lie in the memory of what they update;
    ``shared``: operands in whose memory a result lies, and that result.

    Raises Unsupported for ops or dtypes the backend cannot express.
    """
    return Renderer(name, loops, over, shared).run()


@dataclass
class _Loop:
    """A loop nest being written: several folds and generates over one extent."""

    shape: tuple[Size, ...]
    members: list[Value] = field(default_factory=list)


class Renderer(Writer):
    """Writes the text of one kernel."""

    def run(self) -> Source:
        region = self.loops.region
        operands = [f"a{k}" for k in range(len(region.params))]
        self.names = {p: f"o{self.shared[k]}" if k in self.shared else a
                      for k, (p, a) in enumerate(zip(region_params(region), operands, strict=True))}
        types = [r.type for r in region.results]
        for k, start in self.loops.starts.items():
            self.emit_start(k, start)
        self.emit_block(region, dict(self.names), [(k, (), ()) for k in range(len(types))], 1)
        arguments = [*self.chunks.arguments] if self.chunks else []
        arguments += [*self.sizes.values(), *operands, *[f"o{k}" for k in range(len(types))]]
        arguments += [f"q{k}" for k in range(len(self.partial))]
        if self.after is not None:
            self.lines[self.after :] = [f"    {line}" for line in self.lines[self.after :]]
        given = tuple(p.dtype for p in region.params)  # type: ignore[union-attr]
        head = []
        if self.fails:
            arguments.append("failed")
            head.append("    bad = False")
            self.line(1, "if bad:")
            self.line(2, "failed[0] = u8(1)")
        if self.polls:
            arguments.append("words")
            head.append("    stop = False")
        head.insert(0, f"def {self.name}({', '.join(arguments)}):")
        head += [f"    {name} = {first}" for name, first in (self.running | self.arrays).items()]
        text = "\n".join(head + self.lines) + "\n"
        return Source(text, tuple(self.sizes), given, tuple(t.dtype for t in types), self.fails, self.chunks,
                      tuple(self.partial), self.polls)

    def emit_start(self, k: int, start: int | Region) -> None:
        """Write what an updated result holds before; nothing where it lies in the memory of that."""
        if isinstance(start, Region):
            self.emit_block(start, {p: f"a{j}" for j, p in enumerate(region_params(start))}, [(k, (), ())], 1)
        elif k not in self.over:
            i = self.fresh("i")
            whole = region_params(self.loops.region)[start].type
            assert isinstance(whole, TensorType)
            self.line(1, f"for {i} in range({self.size(product(whole.shape))}):")
            self.line(2, f"o{k}[{i}] = a{start}[{i}]")

    def emit_block(self, region: Region, env: dict[Value, str], targets: list[Target | None], depth: int) -> list[str]:
        """Write the values of a region. Results go to their targets; those without one are returned as expressions."""
        loop_targets: dict[Value, list[tuple[int, Target]]] = {}
        for r, target in zip(region.results, targets, strict=True):
            source, k = projection(r)
            if target is not None and source.op.name == "generate":
                loop_targets.setdefault(source, []).append((k, target))
        pending: _Loop | None = None
        blocked: set[Value] = set()  # what is pending, and what depends on it
        late: list[Value] = []  # numbers that do: they come after the loop, which others may join before

        def close() -> None:
            self.flush(pending, env, loop_targets, depth)
            for number_ in late:
                self.emit_scalar(number_, env, depth)
            late.clear()

        for v in written_last(postorder(region.results)):
            if v in env or v.op.name == "constant" or v.op in PUTS:
                continue
            waits = any(o in blocked for o in v.operands)
            if v.op.name in ("fold", "generate"):
                if pending is None or waits or pending.shape != v.attrs["shape"] or self.loops.columns:
                    close()
                    blocked, pending = set(), _Loop(v.attrs["shape"])
                pending.members.append(v)
                blocked.add(v)
            elif v.op.name == "get":
                if waits:
                    blocked.add(v)
            elif waits:
                late.append(v)
                blocked.add(v)
            else:
                self.emit_scalar(v, env, depth)
        close()
        return self.emit_results(region, env, targets, depth)

    def emit_results(self, region: Region, env: dict[Value, str], targets: list[Target | None],
                     depth: int) -> list[str]:
        out = []
        for r, target in zip(region.results, targets, strict=True):
            if projection(r)[0].op.name == "generate":
                continue
            if target is not None and r.op in PUTS:
                PUTS[r.op](self, r, target[0], env, depth)
                continue
            expression = self.expression(r, env)
            if target is None:
                out.append(expression)
            else:
                self.store(target, expression, r.dtype, depth)
        return out

    def store(self, target: Target, expression: str, dtype: np.dtype, depth: int) -> None:
        k, index, shape = target
        self.line(depth, f"o{k}[{self.offset(index, shape)}] = {stored(expression, dtype)}")

    def expression(self, v: Value, env: dict[Value, str]) -> str:
        if v in env:
            return env[v]
        if v.data is not None:
            return number(v.data)
        raise Unsupported(f"{v.op.name} as a scalar")

    # -- loops

    def flush(self, loop: _Loop | None, env: dict[Value, str], targets: dict[Value, list], depth: int) -> None:
        """Write a pending loop nest and bind the results of its folds."""
        if loop is None:
            return
        first = loop.members[0]
        if len(loop.members) == 1 and first.op.name == "generate" and self.emit_form(first, env, targets, depth):
            return
        places = [v for v in loop.members if is_first_place(v)]
        for v in places:
            kept = kept_rows(v, targets)
            place = emit_first_place(self, v, kept, env, depth)
            self.bind_folds(v, [place, *rows_of(self, kept)], env)
        if others := [v for v in loop.members if v not in places]:
            self.emit_members(_Loop(loop.shape, others), env, targets, depth)

    def emit_form(self, v: Value, env: dict[Value, str], targets: dict[Value, list], depth: int) -> bool:
        """Write a generate in a form of its own; False if it has none."""
        own = targets.get(v, [])
        if self.loops.columns and is_columns(v):
            emit_columns(self, v, env, own, depth)
        elif (ranges := cut(v)) is not None:
            self.emit_parts(v, ranges, env, own, depth)
        elif searches(v):
            emit_searches(self, v, env, own, depth)
        elif scatters(self, v, env, depth):
            emit_scatters(self, v, env, own, depth)
        else:
            return False
        return True

    def emit_members(self, loop: _Loop, env: dict[Value, str], targets: dict[Value, list], depth: int) -> None:
        """Write folds and generates over one extent."""
        folds = [v for v in loop.members if v.op.name == "fold"]
        accumulators = {v: [Accumulator(self, k, t, short_sum(k, x)) for (k, t), x in
                            zip(fold_parts(v), v.regions[0].results)] for v in folds}
        every = [a for v in folds for a in accumulators[v]]
        kept = {v: kept_rows(v, targets) for v in folds}
        blocks = depth == 1 and self.chunks is not None and self.chunks.block is not None
        if blocks:
            open_block(self)
            depth = INSIDE
        for a in every:
            a.start(depth)
        chunked = bool(every) and any(a.partial for a in every) and is_long(loop.shape)
        alone = folds if len(loop.shape) == len(loop.members) == 1 and not kept.get(loop.members[0]) else []
        ranges = cut(alone[0]) if alone else None
        for axis in [r for r, _ in ranges] if ranges else [None]:
            self.emit_loop_of(loop, accumulators, kept, env, targets, (depth, chunked, axis))
        if blocks:
            close_block(self, every)
            depth = 1
        for v in folds:
            self.bind_folds(v, [*[a.result(depth) for a in accumulators[v]], *rows_of(self, kept[v])], env)

    def emit_loop_of(self, loop: _Loop, accumulators: dict[Value, list[Accumulator]], kept: dict[Value, list],
                     env: dict[Value, str], targets: dict[Value, list], at: tuple[int, bool, Range | None]) -> None:
        """Write the loop of folds and generates, or of a fold the part in a range, where conditions on its index stay
        as they are."""
        depth, chunked, axis = at
        every = [a for found in accumulators.values() for a in found]
        alone = depth == 1 and len(loop.members) == 1 and not every
        tile, few = (turned(loop.members[0]), few_along(loop.members[0])) if alone else (None, None)
        if tile is not None:
            index, inner = open_tiles(self, loop.shape, tile, depth)
        elif few is not None:
            index, inner = open_few(self, loop.shape, few, depth)
        else:
            index, inner = self.open_loops(loop.shape, depth, every if chunked else [], axis)
        for v in loop.members:
            scope = self.enter(v, index, env)
            if v in accumulators:
                rows = [(k, (*before, *index), shape) for k, before, shape in kept[v]]
                region = part(v.regions[0], [axis]) if axis else v.regions[0]
                found = self.emit_block(region, scope, [*[None] * len(accumulators[v]), *rows], inner)
                for a, x in zip(accumulators[v], found, strict=True):
                    a.update(x, inner, chunked, self.offset(index, loop.shape))
            else:
                own: list[Target | None] = [None] * len(v.regions[0].results)
                for k, (number_, before, shape) in targets.get(v, []):
                    own[k] = (number_, (*before, *index), (*shape, *loop.shape))
                self.emit_block(v.regions[0], scope, own, inner)
        if chunked:
            for a in every:
                a.finish_chunk(depth + len(loop.shape))

    def emit_parts(self, v: Value, parts: Parts, env: dict[Value, str],
                   targets: list[tuple[int, Target]], depth: int, done: tuple[Range, ...] = (),
                   index: tuple[str, ...] = ()) -> None:
        """Write a loop nest whose loops are cut into ranges. ``done``, ``index``: of the loops around."""
        if parts:
            for axis, inside in parts:
                i = self.fresh("i")
                start, stop = limits(axis, v.attrs["shape"][len(done)])
                whole = isinstance(start, int) and start == 0
                if depth == 1 and self.chunks:
                    first = "begin, " if whole else f"max({self.size(start)}, begin), "
                    self.line(depth, f"for {i} in range({first}min({self.size(stop)}, end)):")
                else:
                    self.line(depth, f"for {i} in range({'' if whole else f'{self.size(start)}, '}{self.size(stop)}):")
                self.emit_parts(v, inside, env, targets, depth + 1, (*done, axis), (*index, i))
            return
        region = part(v.regions[0], done)
        own: list[Target | None] = [None] * len(region.results)
        for k, (number_, before, shape) in targets:
            own[k] = (number_, (*before, *index), (*shape, *v.attrs["shape"]))
        self.emit_block(region, self.enter(v, index, env), own, depth)

    def open_loops(self, shape: tuple[Size, ...], depth: int, chunked: list[Accumulator],
                   part: Range | None = None) -> tuple[tuple[str, ...], int]:
        """Write loop heads; returns index names and the depth inside. The last loop of a long sum is cut in chunks."""
        index = []
        for k, s in enumerate(shape):
            i = self.fresh("i")
            index.append(i)
            outermost = self.block and not k and depth == INSIDE
            first, last = limits_in_block(self, s) if outermost else ("0", self.size(s))
            n = self.size(s)
            if part is not None:
                start, stop = (self.size(x) for x in limits(part, s))
                first, last = (f"max({first}, {start})", f"min({last}, {stop})") if outermost else (start, stop)
                n = last
            if chunked and k == len(shape) - 1:
                c = self.fresh("c")
                self.line(depth, f"for {c} in range({first}, {last}, {PARTIAL_SUM}):")
                for a in chunked:
                    a.start_chunk(depth + 1)
                self.line(depth + 1, f"for {i} in range({c}, min({c} + {PARTIAL_SUM}, {n})):")
                depth += 2
            else:
                limits_ = f"{first}, {last}" if outermost or part else self.extent(shape, k, depth)
                self.line(depth, f"for {i} in range({limits_}):")
                depth += 1
        return tuple(index), depth

    def extent(self, shape: tuple[Size, ...], k: int, depth: int) -> str:
        """Extent of a loop over axis ``k``: a chunk of it if it is the outermost.

        A short row is an argument also where the number is known, if it is one of pairs or the like, or of much work
        and not of whole vectors: a compiler that knew it would unroll it before it looks for vectors, and find none.
        (Pooling of 2 x 2 on 26 x 26 takes 0.6 of the time so, its gradient a fifth.)
        """
        if depth == 1 and self.chunks:
            return ", ".join(ARGUMENTS)
        s, inner = shape[k], shape[k + 1 :]
        if isinstance(s, int) and PAIR < s < SHORT_ROW:
            pairs = len(inner) == 1 and isinstance(inner[0], int) and inner[0] <= PAIR
            if pairs or not inner and len(shape) > 2 and s % 8 and self.is_much():
                return self.sizes.setdefault(s, f"n{len(self.sizes)}")
        return self.size(s)

    def is_much(self) -> bool:
        """True if a step of the innermost loops does more than a few operations."""
        return len(every_value(self.loops.region)) > MUCH

    def enter(self, v: Value, index: Sequence[str], env: dict[Value, str]) -> dict[Value, str]:
        """Values of the params of a loop's region: its index, then what it captured."""
        params = region_params(v.regions[0])
        seen = [*index, *[self.expression(o, env) for o in v.operands]]
        return dict(zip(params, seen, strict=True))

    @staticmethod
    def bind_folds(v: Value, names: list[str], env: dict[Value, str]) -> None:
        if len(names) == 1:
            env[v] = names[0]
        else:
            for k, name in enumerate(names):
                env[v[k]] = name

    # -- scalars

    def emit_scalar(self, v: Value, env: dict[Value, str], depth: int) -> None:
        if v.op.name == "size":
            env[v] = self.size(v.attrs["value"])
            return
        if "checks" in v.op.traits:
            emit_check(self, v, env, depth)
            return
        if (checked := clamped(self, v)) is not None:
            env[v] = env[checked]
            self.within[v] = self.within[checked]
            return
        if v.op is bisect:
            emit_bisect(self, v, [env], depth)
            return
        if v.op.name == "load":
            array, index = v.operands[0], [self.expression(i, env) for i in v.operands[1:]]
            name, place = env[array], self.offset(index, array.shape)
            text = loaded(f"{name}[{f'{name.start} + {place}' if isinstance(name, Row) else place}]", v.dtype)
        else:
            text = scalar(v, [self.expression(o, env) for o in v.operands])
        env[v] = self.fresh("t")
        self.line(depth, f"{env[v]} = {text}")


__all__ = ["Renderer", "Source", "render"]
