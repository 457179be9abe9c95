"""Groups of values that become one kernel each, and values that are given no memory: what ``symc.opt.fusion.fuse``
decides about, while it decides."""

from __future__ import annotations

from collections import Counter

from symc.ir.dim import Size
from symc.ir.function import Function
from symc.ir.op import View
from symc.ir.ops.shape import concat
from symc.ir.ops.store import packed_concat, space_of
from symc.ir.record import dataclass, field
from symc.ir.traverse import rebuild
from symc.ir.value import Value
from symc.opt.engine.regions import remade
from symc.opt.fusion.column_folds import trailing
from symc.opt.fusion.kernel_ops import (
    chooses,
    is_fold,
    is_free,
    is_kernel_op,
    is_number,
    moved_casts,
    needs_memory,
    part_of,
    places_of_rows,
    reads_anywhere,
)

Shape = tuple[Size, ...]


@dataclass(eq=False)
class Group:
    """Values that will be one kernel. ``shape`` is the full space, ``axes`` what its folds reduce (None: no folds).

    ``epilogues``: the updates and running sums among them, which nothing else in the group reads. ``column_folds``:
    there are folds over other axes, which nothing in the group reads either. ``piece``: which of several it is that
    were cut from one group, and of which later ones read earlier ones.
    """

    level: int
    shape: Shape
    axes: tuple[int, ...] | None = None
    values: dict[Value, None] = field(default_factory=dict)
    epilogues: list[Value] = field(default_factory=list)
    column_folds: bool = False
    costly: bool = False  # all its values have the trait "costly", or none has
    piece: int = 0
    marks: set[str] = field(default_factory=set)  # what stands against each other in one kernel (``Fusion.marks``)
    into: Group | None = None  # where it was merged

    @property
    def rank(self) -> tuple[int, int]:
        """Groups of one rank do not read each other."""
        return self.level, self.piece

    @property
    def checks(self) -> bool:
        """True if the kernel may fail."""
        return "checks" in self.marks

    def find(self) -> Group:
        g = self
        while g.into is not None:
            g = g.into
        return g

    def take(self, g: Group) -> None:
        """``g`` becomes part of this."""
        if g is not self:
            self.take_axes(g.axes)
            self.column_folds |= g.column_folds
            self.values.update(g.values)
            self.epilogues += g.epilogues
            self.marks |= g.marks
            g.into = self

    def take_axes(self, axes: tuple[int, ...] | None) -> None:
        """Note that folds over ``axes`` have come."""
        if axes is None or axes == self.axes:
            return
        if self.axes is not None or self.column_folds and not trailing(self.shape, axes):
            self.column_folds = True
            self.axes = next((a for a in (axes, self.axes) if trailing(self.shape, a)), None)
        else:
            self.axes = axes


def is_costly(v: Value) -> bool:
    """Keeping it costs less than computing it once more, or than what its branches keep from vectorizing: it shares
    kernels with its like alone."""
    return "costly" in v.op.traits


def is_full(v: Value, shape: Shape) -> bool:
    """True if a value of a group over ``shape`` is computed at every index, not once a row."""
    return not is_fold(v) and v.ndim == len(shape)


def space(v: Value) -> Shape:
    """The indices at which a group computes ``v``."""
    return v.operands[0].shape if is_fold(v) else space_of(v)


# --- values without memory --------------------------------------------------------------------------------------------

#: What joins or pads arrays is repeated by at most so many readers: each element asks in which part it lies.
MAX_READERS = 9


class Finished:
    """The values that lie in memory when a kernel runs; ``inlined`` are the others, which every kernel that reads one
    computes from what is finished: they cost nothing but an index."""

    def __init__(self, f: Function):
        self.f = f
        self.inlined = self._find_inlined()
        self._behind: dict[Value, tuple[Value, ...]] = {}

    def _find_inlined(self) -> set[Value]:
        """Values never given memory: movements, iotas, sizes and splats whose every user is a kernel op; places;
        casts of what lies in memory narrower."""
        values = self.f.values()
        places = places_of_rows(values, bool(self.f.update_values)) | moved_casts(values, set(self.f.params))
        wanted: set[Value] = set(self.f.body.results)
        inlined: set[Value] = set()
        numbers: set[Value] = set()  # scalars made of sizes and constants alone
        for v in values:
            if not v.operands and is_free(v) or is_number(v, numbers):
                numbers.add(v)
        readers = Counter(o for v in values for o in v.operands if chooses(o))
        for v in reversed(values):
            if v not in wanted and (v in numbers or v in places or is_free(v)) and readers[v] <= MAX_READERS:
                inlined.add(v)
            else:
                wanted.update(v.operands if isinstance(v.op.lowering, View) else map(part_of, needs_memory(v))
                              if reads_anywhere(v) else needs_memory(v))
        return inlined

    def sources(self, v: Value) -> tuple[Value, ...]:
        """The finished values that ``v`` reads, through inlined ones."""
        found = self._behind.get(v)
        if found is None:
            found = self._behind[v] = tuple(dict.fromkeys(s for o in v.operands for s in self.behind(o)))
        return found

    def behind(self, o: Value) -> tuple[Value, ...]:
        """``o`` itself if it is finished, else what it is made of."""
        return self.sources(o) if o in self.inlined else (o,)


def written_by_part(f: Function) -> Function:
    """Each `concat` of equal parts that is given memory is written part by part: no element chooses its part."""
    if not any(map(_has_equal_parts, f.values())):
        return f
    inlined = Finished(f).inlined

    def form(v: Value, operands: list[Value]) -> Value:
        in_parts = v not in inlined and _has_equal_parts(v)
        return packed_concat(*operands, axis=v.attrs["axis"]) if in_parts else rebuild(v, operands)

    return remade(f, form)


def _has_equal_parts(v: Value) -> bool:
    return v.op is concat and is_kernel_op(v) and all(o.type is v.operands[0].type for o in v.operands)
