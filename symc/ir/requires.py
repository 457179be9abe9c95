"""Requirements on the sizes of a call so that an op has a value: reductions need elements, slices need to fit.

An op says it in ``facts.requires``, a function of the value that gives pairs (margin, count), see ``Requirement``.
Generated kernels do not check; where the sizes are known, before the kernel runs, these are looked at once.
"""

from __future__ import annotations

from collections.abc import Callable

from symc.errors import IndexingError, ShapeError, SymcError
from symc.ir.dim import Size, known_nonnegative
from symc.ir.ops.shape import OUTSIDE
from symc.ir.record import dataclass
from symc.ir.traverse import postorder
from symc.ir.value import Region, Value

Number = Callable[[Size], int]


@dataclass(frozen=True)
class Requirement:
    """``margin >= 0`` at the sizes of a call, unless ``count`` elements are none."""

    value: Value
    margin: Size
    count: Size = 1

    def holds(self, number: Number) -> bool:
        """True if it holds at these sizes."""
        return number(self.margin) >= 0 or number(self.count) == 0

    def error(self, number: Number) -> SymcError:
        """Error to raise if it does not."""
        v = self.value
        if "checks" in v.op.traits:
            of = f", of an array {v.attrs['of']}" if "of" in v.attrs else ""
            return IndexingError(f"no index is within an axis of size 0{of}")
        if v.op.facts.nonempty:
            return ShapeError(f"{v.op.name} of no elements has no value: {v.operands[0].type} over axes "
                              f"{v.attrs['axes']}")
        t = v.operands[0].type
        if v.op.facts.fits:
            need = next(number(least) for n, least in v.op.facts.fits(v) if number(n) < number(least))
            return ShapeError(f"{v.op.name}: a window that spans {need} elements does not fit {t}, "
                              f"of shape ({', '.join(str(number(n)) for n in t.shape)})")  # type: ignore[union-attr]
        have, want = (", ".join(str(number(n)) for n in shape) for shape in (t.shape, v.shape))
        start = f" from ({', '.join(str(number(s)) for s in v.attrs['start'])}) on" if "start" in v.attrs else ""
        return IndexingError(f"{v.op.name}: ({want}) elements{start} leave an array of shape ({have})", help=OUTSIDE)


def requirements(region: Region) -> list[Requirement]:
    """Requirements of the values of a region beyond what their types say."""
    return [r for v in postorder(region.results) for r in required(v) if not known_nonnegative(r.margin)]


def required(v: Value) -> list[Requirement]:
    """Requirements of one value, whether it is known to hold or not."""
    fact = v.op.facts.requires
    return [Requirement(v, margin, count) for margin, count in fact(v)] if fact else []
