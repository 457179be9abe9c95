"""convolutions: long ones by Fourier transforms, where sizes say that this is cheaper; the shorter vector as filter.

A convolution with one filter for each channel (`conv` and its transposes) takes as many products as there are results
times elements of a window; by Fourier transforms, about the logarithm of the length for each result. Where sizes are
not known both are kept as branches, of which a call chooses one: nothing is compiled again.

A transform rounds by the largest numbers: errors are a few units of eps * norm(x) * norm(w) anywhere, where sums of
products are right to the size of their own terms. What is not finite would spread to all results, so these are looked
at, and if there is anything else than numbers, computed directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.ir.dim import Size, ceildiv, product
from symc.ir.function import Function
from symc.ir.location import NOWHERE
from symc.ir.ops.arithmetic import conjugate, div, mul
from symc.ir.ops.compare import isfinite
from symc.ir.ops.control import cond
from symc.ir.ops.conv import conv, conv_filter, conv_input, is_depthwise
from symc.ir.ops.fourier import fft, irfft, rfft
from symc.ir.ops.leaf import scalar
from symc.ir.ops.reduce import all_, sum_
from symc.ir.ops.shape import broadcast, pad, reshape, slice_
from symc.ir.size_extremes import maximum, minimum
from symc.ir.traverse import postorder, rebuild
from symc.ir.types import complex_dtype
from symc.ir.value import Region, Value, param
from symc.opt.by_sizes import cheapest, worth_having
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.engine.terms import size_like
from symc.opt.loops.edit import Edit

#: Picoseconds that a product of float64 takes (in `conv_filter`, whose sums are long), an element of a window besides
#: (on one axis where windows lie within the array), and a point of a transform (of float32 half of a product and of a
#: point).
PRODUCT, IN_FILTER, ELEMENT, ON_ONE_AXIS, POINT = 80, 200, 30_000, 1_000, 9_000
#: What unknown sizes may be, for comparing ways.
TRIED = (1, 16, 256, 4096, 1 << 16)
#: Transforms have multiples of so many points (their number is then a product of small primes): on one axis, on one
#: that is ``LONG``, on each of several.
FINE, LONG, COARSE, EACH = 1 << 11, 1 << 17, 1 << 15, 1 << 6

Way = tuple[Size, Callable[[Value], Value]]


@standard_pass(
    after=("open_blocks",),
    why="simplify makes one convolution of several values; decompose knows one way alone; what is compared are times "
        "of a core",
    bodies="inner", on=("contraction",), target="cpu",
)
def convolutions(provenance: Provenance, f: Function) -> Function:
    """Long convolutions become products of spectra, where sizes say that this is cheaper."""
    found = {v: ways for v in f.values() if _is_convolution(v) and (ways := _ways(v)) is not None}
    if not found:
        return f
    edit = Edit(f, provenance, "convolutions")
    for v in edit.values:
        if v not in found:
            edit.step(v)
            continue
        same, lines = rebuild(v, [edit.done[o] for o in v.operands]), edit.hints.get(v, NOWHERE)
        new = edit.done[v] = _chosen(same, found[v])
        for x in postorder([new], stop=set(same.operands).__contains__):
            if x.operands:
                edit.note(x, lines)
            for r in x.regions:
                edit.note_region(r, {u: lines for u in postorder(r.results) if u.operands and lines})
        edit.record(v, new, [lines])
    return edit.finish()


def _is_convolution(v: Value) -> bool:
    return "contraction" in v.op.traits and "dilation" in v.attrs


def _chosen(v: Value, ways: Sequence[Way]) -> Value:
    """The way that costs least at the sizes of a call."""
    if len(ways) == 1:
        return ways[0][1](v)
    types = [o.type for o in v.operands]
    inside = rebuild(v, [param(k, t) for k, t in enumerate(types)])
    regions = [Region(types, [form(inside)]) for _, form in ways]
    return cond(cheapest([cost for cost, _ in ways]), *v.operands, regions=regions)


# --- costs ------------------------------------------------------------------------------------------------------------


def _ways(v: Value) -> list[Way] | None:
    """The ways that may be the cheapest, with their costs; None if the value stays as it is."""
    if v.dtype.char not in "fd" or {*v.attrs["stride"], *v.attrs["dilation"]} != {1} or not is_depthwise(v):
        return None
    x, w = v.operands
    unit, lines = v.dtype.itemsize, x.shape[0] * x.shape[1]
    window = v.attrs["window"] if v.op is conv_filter else w.shape[2:]
    inner = (v if v.op is conv else w if v.op is conv_filter else x).shape[2:]
    each = IN_FILTER if v.op is conv_filter else PRODUCT
    direct: Size = product((lines, *inner, *window)) * (each * unit) // 8
    element = ON_ONE_AXIS if len(window) == 1 and v.op is not conv_input else ELEMENT
    ways: list[Way] = [(direct + product(window) * element, _same)]
    if v.op is conv_input and len(window) == 1 and lines == 1:
        ways.append((direct + inner[0] * ELEMENT, _swapped))
    points = product((*(_points(n, len(window)) for n in _extents(v)), 3 * lines))
    kept = worth_having([*ways, (points * (POINT * unit) // 8, _by_transforms)], lambda way: way[0], _tried)
    return None if kept == ways[:1] else kept


def _tried(unknown: Sequence[str]) -> list[dict[str, int]]:
    """Sizes to compare ways at: all alike, and one large beside small ones, and beside quarters of it."""
    return [dict.fromkeys(unknown, n) for n in TRIED] + [
        {**dict.fromkeys(unknown, others), n: TRIED[-1]} for others in (TRIED[0], TRIED[-1] // 4) for n in unknown]


def _same(v: Value) -> Value:
    return v


def _swapped(v: Value) -> Value:
    """One vector convolved with another: either is the filter."""
    return rebuild(v, v.operands[::-1])


# --- by transforms ----------------------------------------------------------------------------------------------------


def _extents(v: Value) -> tuple[Size, ...]:
    """The elements along each axis among which nothing wraps around that is read."""
    return (v if v.op is conv_input else v.operands[0]).shape[2:]


def _points(n: Size, axes: int) -> Size:
    """The points of a transform of n elements."""
    if axes > 1:
        return ceildiv(n, EACH) * EACH
    return maximum(ceildiv(n, FINE) * FINE, ceildiv(n, COARSE) * COARSE * minimum(n // LONG, 1))


def _by_transforms(v: Value) -> Value:
    """A convolution as a product of spectra; where that is not finite, as it stands."""
    extents = _extents(v)
    lengths = [_points(n, len(extents)) for n in extents]
    a, b = (_spectrum(o, lengths) for o in v.operands)
    b = b if v.op is conv_input else conjugate(b)
    if v.op is conv_filter:
        out = sum_(mul(a, b), axes=(0,))
        out = reshape(out, shape=(out.shape[0], 1, *out.shape[1:]))
    else:
        b = reshape(b, shape=(b.shape[0], *b.shape[2:]))
        out = mul(a, broadcast(b, axes=tuple(range(1, a.ndim)), shape=a.shape))
    for k in range(len(lengths) - 1):
        out = fft(out, axis=2 + k, inverse=True)
    out = irfft(out, axis=out.ndim - 1, size=lengths[-1])
    none, one = (0,) * v.ndim, (1,) * v.ndim
    out = slice_(out, start=none, size=v.shape, step=one)
    out = div(out, size_like(product(lengths), v.type))
    fine = all_(isfinite(out), axes=tuple(range(v.ndim)))
    given = [out, *v.operands]
    types = [o.type for o in given]
    leaves = [param(k, t) for k, t in enumerate(types)]
    return cond(fine, *given, regions=[Region(types, [leaves[0]]), Region(types, [rebuild(v, leaves[1:])])])


def _spectrum(x: Value, lengths: Sequence[Size]) -> Value:
    """The transform of samples and channels, with zeros at the ends."""
    none, m = (0,) * x.ndim, len(lengths)
    high = (0, 0, *[n - k for n, k in zip(lengths, x.shape[2:], strict=True)])
    out = rfft(pad(x, scalar(0, x.dtype), low=none, high=high, interior=none), axis=x.ndim - 1)
    for k in range(m - 1):
        out = fft(out, axis=2 + k)
    assert out.dtype == complex_dtype(x.dtype)
    return out
