"""Loops, branches and windows in ONNX."""

from __future__ import annotations

from typing import Any

from symc.export.onnx_graph import I64, Graph
from symc.ir.op import splat
from symc.ir.ops.control import BOOL, COUNT
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Region, Value


def conv(g: Graph, v: Value) -> str | None:
    a = v.attrs
    if v.dtype.kind != "f":
        return None
    return g.add("Conv", *g.names(v), strides=a["stride"], dilations=a["dilation"], group=a["groups"])


def conv_input(g: Graph, v: Value) -> str | None:
    """Elements beyond the last window are zeros."""
    a, (y, w) = v.attrs, v.operands
    if v.dtype.kind != "f":
        return None
    out = g.add("ConvTranspose", *g.names(v), strides=a["stride"], dilations=a["dilation"], group=a["groups"])
    rest = [n - ((m - 1) * s + (k - 1) * d + 1)
            for n, m, k, s, d in zip(a["size"], y.shape[2:], w.shape[2:], a["stride"], a["dilation"], strict=True)]
    if all(r == 0 for r in rest):
        return out
    return g.add("Pad", out, g.shape([0] * (v.ndim + 2) + rest), g.constant(0, v.dtype))


def conv_filter(g: Graph, v: Value) -> str | None:
    """The convolution of x with the cotangent as filters, samples taken for channels."""
    a = v.attrs
    if a["groups"] != 1 or v.dtype.kind != "f":
        return None
    swap = [1, 0, *range(2, v.ndim)]
    x, y = (g.add("Transpose", n, perm=swap) for n in g.names(v))
    out = g.add("Conv", x, y, strides=a["dilation"], dilations=a["stride"])
    m = len(a["window"])
    out = g.add("Slice", out, g.ints(*[0] * m), g.shape(a["window"]), g.ints(*range(2, m + 2)))
    return g.add("Transpose", out, perm=swap)


def max_pool(g: Graph, v: Value) -> str | None:
    a, m = v.attrs, len(v.attrs["window"])
    if v.ndim != m + 2 or v.dtype.kind != "f" or not all(isinstance(k, int) for k in a["window"]):
        return None
    return g.add("MaxPool", *g.names(v), kernel_shape=a["window"], strides=a["stride"], dilations=a["dilation"])


# --- loops and branches -----------------------------------------------------------------------------------------------


def scan(g: Graph, v: Value) -> Any:
    (region,), a = v.regions, v.attrs
    m, k = a["carry"], a["xs"]
    names = g.names(v)
    if a["length"] == 0:
        several = isinstance(v.type, TupleType)
        empty = [g.value(splat(0, t)) for t in (v.type.items if several else [v.type])[m:]]
        return [*names[:m], *empty] if several else [*names[:m], *empty][0]
    rows, own = names[m : m + k], k
    if not k:  # there is one row at least
        rows, own = [g.add("Range", g.constant(0, I64), g.scalar(g.dim(a["length"])), g.constant(1, I64))], 1
    types: list[Any] = [*region.params[: m + k], *([COUNT] if not k else [])]
    inner = [g.fresh("carry" if i < m else "row") for i in range(m + own)]
    called = [*inner[: m + k], *names[m + k :]]
    body = g.subgraph("scan", region, called, list(zip(inner, types, strict=True)))
    ys, way = len(region.results) - m, int(a["reverse"])
    ways: dict[str, Any] = {"scan_output_directions": [way] * ys} if ys else {}
    return g.add("Scan", *names[:m], *rows, results=m + ys, body=body, num_scan_inputs=own,
                 scan_input_directions=[way] * own, **ways)


def while_(g: Graph, v: Value) -> Any:
    """The condition of the next step is computed at the end of each."""
    test, region = v.regions
    m, limit = v.attrs["carry"], v.attrs["max_steps"]
    names = g.names(v)
    types: list[Any] = [*region.params[:m], COUNT]
    start = g.within(test, names)[0]
    inner = [g.fresh("carry") for _ in types]
    step: list[tuple[str, Any]] = [(g.fresh("step"), COUNT), (g.fresh("going"), BOOL)]

    def results(found: list[tuple[str, TensorType]]) -> list[tuple[str, TensorType]]:
        going = g.within(test, [*[n for n, _ in found], *names[m:]])[0]
        return [(going, BOOL), *found, (g.add("Add", inner[-1], g.constant(1, I64)), COUNT)]

    body = g.subgraph("while", region, [*inner[:-1], *names[m:]], [*step, *zip(inner, types, strict=True)],
                      extra=results)
    most = "" if limit is None else g.scalar(g.dim(limit))
    return g.add("Loop", most, start, *names[:m], g.constant(0, I64), results=m + 1, body=body)


def cond(g: Graph, v: Value) -> Any:
    which, *names = g.names(v)
    regions = list(v.regions)
    if v.operands[0].type is BOOL:
        yes, no = (g.subgraph("branch", r, names) for r in regions)
        return _if(g, which, yes, no, len(regions[0].results))
    return _choice(g, which, regions, names, 0)


def _if(g: Graph, which: str, yes: Any, no: Any, results: int) -> Any:
    return g.add("If", which, results=results, then_branch=yes, else_branch=no)


def _choice(g: Graph, which: str, regions: list, names: list[str], k: int) -> Any:
    """The branch with a number: the first, or one of the others."""
    last = k + 2 >= len(regions)
    n = len(regions[0].results)
    if len(regions) == 1:
        found = g.within(regions[0], names)
        return found[0] if n == 1 else found
    test = g.add("LessOrEqual", which, g.constant(k, I64))
    yes = g.subgraph("branch", regions[k], names)
    if last:
        return _if(g, test, yes, g.subgraph("branch", regions[k + 1], names), n)

    def others(_: Any) -> Any:
        made = _choice(g, which, regions, names, k + 1)
        return list(zip([made] if n == 1 else made, [r.type for r in regions[0].results], strict=True))

    return _if(g, test, yes, g.subgraph("branch", Region((), ()), [], extra=others), n)
