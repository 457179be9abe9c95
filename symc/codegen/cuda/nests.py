"""A kernel as rows: outer loops, and in them a sequence of loops along a row, each of folds or of elements.

Softmax is a row of two folds and a loop over elements; a sum of everything is one row; the gradient of a bias is a row
of elements without folds, some of which are put together down the columns. What does not look like this is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from symc.codegen.cuda.writer import Env, Kernel, Writer
from symc.ir.dim import Size, product
from symc.ir.ops.kernel import projection
from symc.ir.record import dataclass
from symc.ir.traverse import dependent, every_value, postorder, region_params
from symc.ir.value import Region, Value


@dataclass(frozen=True)
class Out:
    """Form of a result of the kernel: ``value``, a number of each row, or result ``number`` of the loop ``value``.
    ``put``: how it is combined down the columns, if it is."""

    value: Value
    number: int = -1
    put: str = ""

    @property
    def is_row(self) -> bool:
        """True if there is one number for each row."""
        return self.number < 0


@dataclass(frozen=True)
class Rows:
    """``levels``: the outer loops, from outside in; ``region``: what is done for a row; ``passes``: the folds of a row,
    those in one loop together, and then the loops over elements; ``inner``: what they run over."""

    kernel: Kernel
    levels: tuple[Value, ...]
    region: Region
    outer: tuple[Size, ...]
    inner: tuple[Size, ...]
    passes: tuple[tuple[Value, ...], ...]
    outs: tuple[Out, ...]

    @property
    def length(self) -> Size:
        return product(self.inner)

    @property
    def count(self) -> Size:
        return product(self.outer)

    @property
    def members(self) -> Iterator[Value]:
        for members in self.passes:
            yield from members

    def open(self, w: Writer, row: str, depth: int) -> Env:
        """Write what the outer loops compute for a row; the names that its region sees."""
        env = params_of(self.kernel.loops.region)
        emit_ready(w, self.kernel.loops.region, env, depth)
        indices = list(w.unravel(row, self.outer, depth))
        for v in self.levels:
            here, indices = indices[: len(v.attrs["shape"])], indices[len(v.attrs["shape"]) :]
            env = enter(w, v, here, env)
            emit_ready(w, v.regions[0], env, depth)
        return env


def is_heavy(region: Region) -> bool:
    """True if an element is so much work that its text should not be repeated for each of a vector."""
    values = every_value(region)
    return len(values) > 150 or any(v.op.facts.kernel == "scalar" for v in values)


def depending(region: Region, index: Iterable[Value]) -> set[Value]:
    """The values of a region that depend on some of its params."""
    return dependent(postorder(region.results), index)


def params_of(region: Region) -> Env:
    """The names of a kernel's operands."""
    return {p: f"a{k}" for k, p in enumerate(region_params(region))}


def enter(w: Writer, v: Value, index: Sequence[str], env: Env) -> Env:
    """The names that the region of a loop sees."""
    seen = [env[o] if o in env else w.expression(o, env) for o in v.operands]
    return dict(zip(region_params(v.regions[0]), [*index, *seen], strict=True))


def emit_ready(w: Writer, region: Region, env: Env, depth: int) -> None:
    """Write the scalars of a region whose operands are there."""
    for v in postorder(region.results):
        if not v.regions and v.op.name not in ("get", "constant") and v not in env and all(
                o in env or o.op.name in ("constant", "size") for o in v.operands):
            w.emit_scalar(v, env, depth)


def rows_of(kernel: Kernel) -> Rows | None:
    """A kernel as rows; None for one that is something else."""
    levels: list[Value] = []
    region, outer = kernel.loops.region, ()
    while True:
        nests = [v for v in postorder(region.results) if v.regions]
        inside = [v for n in nests for v in postorder(n.regions[0].results) if v.regions]
        if not inside:
            break
        if len(nests) != 1 or nests[0].op.name != "generate":
            return None
        levels.append(nests[0])
        region, outer = nests[0].regions[0], (*outer, *nests[0].attrs["shape"])
    shapes = {v.attrs["shape"] for v in nests}
    if len(shapes) != 1 or not next(iter(shapes)):
        return None
    passes = _passes(region, nests)
    outs = [_out(r, len(levels)) for r in kernel.loops.region.results]
    if passes is None or any(o is None for o in outs):
        return None
    return Rows(kernel, tuple(levels), region, outer, next(iter(shapes)), passes,
                tuple(o for o in outs if o is not None))


def _passes(region: Region, nests: Sequence[Value]) -> tuple[tuple[Value, ...], ...] | None:
    """Folds by what they depend on, then all loops over elements: nothing may depend on those."""
    level: dict[Value, int] = {}
    for v in postorder(region.results):
        known = [level[o] for o in v.operands]
        level[v] = max(known, default=0) + (v.op.name == "fold")
        if v.op.name not in ("get",) and any(projection(o)[0].op.name == "generate" for o in v.operands):
            return None
    folds = [v for v in nests if v.op.name == "fold"]
    passes = [tuple(v for v in folds if level[v] == n) for n in sorted({level[v] for v in folds})]
    last = tuple(v for v in nests if v.op.name == "generate")
    return (*passes, last) if last else tuple(passes)


def _out(r: Value, levels: int) -> Out | None:
    """Form of a result, followed through the outer loops."""
    for _ in range(levels):
        v, k = projection(r)
        if v.op.name != "generate":
            return None
        r = v.regions[0].results[k]
    v, k = projection(r)
    if v.op.name != "generate":
        return Out(r) if not r.ndim and not r.op.name.startswith(("store", "insert")) else None
    made = v.regions[0].results[k]
    if not made.op.name.startswith(("store", "insert")):
        return Out(v, k)
    index = list(region_params(v.regions[0])[: len(v.attrs["shape"])])
    down = made.op.name == "store" and list(made.operands[1:]) == index and made.attrs["shape"] == v.attrs["shape"]
    return Out(v, k, made.attrs["kind"]) if down else None
