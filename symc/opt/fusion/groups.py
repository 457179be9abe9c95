"""Groups of values that become one kernel each: what ``symc.opt.fusion.fuse`` decides about, while it decides."""

from __future__ import annotations

from symc.ir.dim import Size
from symc.ir.ops.store import space_of
from symc.ir.record import dataclass, field
from symc.ir.value import Value
from symc.opt.fusion.column_folds import trailing
from symc.opt.fusion.kernel_ops import is_fold

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
