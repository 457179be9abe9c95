"""blas: sums of products and arrays become products that add to what is there, one library call each.

``0.5 * C + 2 * A @ B`` is one `gemm`, and so is any nest of sums, differences, negations, and products with numbers or
with values of rank 0. Of a sum of several products the first writes and the others add. `gemm` goes over what it
adds to if nobody else needs that, which only the plan knows; else its step copies it first.

When it is good. A library clears C before it adds to it, so writing costs what adding costs. A gemm therefore saves
what a kernel for the sum would do: read the product and C, and write; but for the copy of a C that is still needed. It
loses where the sum costs nothing, because a kernel that uses it computes it on the way (``tanh(x @ W + b)``). And what
is added must be an array already: a bias that is broadcast, or a sum of several arrays, takes a kernel before the
product or after it, and after it was as fast or faster. In these cases only products are added to each other.
"""

from __future__ import annotations

import functools

import numpy as np

from symc.ir.dim import product as size_of
from symc.ir.function import Function
from symc.ir.location import NOWHERE
from symc.ir.op import Update, View
from symc.ir.ops.arithmetic import add, div, mul
from symc.ir.ops.gemm import gemm
from symc.ir.ops.leaf import scalar
from symc.ir.ops.linalg import dot
from symc.ir.ops.shape import in_shape, reshape
from symc.ir.ops.store import is_epilogue
from symc.ir.record import dataclass, field
from symc.ir.traverse import use_counts, users
from symc.ir.value import Value
from symc.opt.empty import unguarded
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.facts.linear_sums import ONE, Coefficient, Sum, collect, summands, together
from symc.opt.fusion.kernel_ops import is_free, is_kernel_op, reads_in_place
from symc.opt.loops.edit import Edit

#: The dtypes that libraries multiply.
DTYPES = "fdFD"


@standard_pass(
    after=("native_products",),
    why="decompose makes sums of what has a name and takes small products apart; kernels of small loops multiply "
        "themselves; the sums that are left belong to kernels",
    bodies="inner", on=("dot", "gemm"), reasons="of_blas", makes=("gemm",),
)
def blas(provenance: Provenance, f: Function) -> Function:
    """Sums of products become products that add to what is there."""
    found = find(f)
    if not found:
        return f
    edit = Edit(f, provenance, "blas")
    for v in edit.values:
        if v in found:
            new = edit.done[v] = _build(found[v], edit)
            edit.record(v, new)
        else:
            edit.step(v)
    return edit.finish()


@dataclass
class Job:
    """A sum and the products in it that become gemms, those first that can be computed first: what is added last keeps
    its operands alive for longest. ``target``: the array that the first one adds to, times a number. ``apart``: a
    kernel adds what else there is to the products."""

    sum: Sum
    products: list[tuple[Value, Coefficient]] = field(default_factory=list)
    target: tuple[Value, Coefficient] | None = None
    apart: bool = False


def find(f: Function) -> dict[Value, Job]:
    """The sums of a function that are better as gemms, by what they are the value of."""
    values = f.values()
    readers, uses = users(values), use_counts(values, f.body.results)
    height: dict[Value, int] = {}
    for v in values:
        height[v] = 1 + max((height[o] for o in v.operands), default=0)
    results = set(f.body.results)
    inner: set[Value] = set()
    found = {}
    for v in reversed(values):
        if v in inner or summands(v) is None or v.dtype.char not in DTYPES or not v.ndim:
            continue
        s = collect(v, lambda x: uses[x] == 1)
        inner.update(s.nodes)
        job = _job(s, v not in results and all(_takes_in(u, v) for u in readers[v]), uses)
        if job is not None:
            job.products.sort(key=lambda p: height[p[0]])
            found[v] = job
    return found


def _job(s: Sum, in_kernel: bool, uses: dict[Value, int]) -> Job | None:
    """The change to a sum, if there is any. ``in_kernel``: kernels compute it on the way."""
    job = Job(s)
    others: dict[Value, list[Coefficient | None]] = {}
    for v, c in s.leaves:
        product = _product(v)
        alone = _adds(product) and uses[v] == uses[product] == 1
        if alone and c is not None and c.fits(s.root.dtype):
            job.products.append((v, c))
        else:
            others.setdefault(v, []).append(c)
    if others and not in_kernel:
        job.target = _target(others, uses)
    job.apart = in_kernel or (bool(others) and job.target is None)
    n = len(job.products)
    if n > 1 or n == 1 and not job.apart and (others or not job.products[0][1].is_one):
        return job
    return None


def _target(others: dict[Value, list[Coefficient | None]], uses: dict[Value, int]) -> tuple[Value, Coefficient] | None:
    """The only array among ``others``, and what it is multiplied by."""
    if len(others) > 1:
        return None
    ((v, coefficients),) = others.items()
    c = together(coefficients)
    return (v, c) if c is not None and c.fits(v.dtype) and _is_array(v, uses) else None


def _adds(v: Value) -> bool:
    """True if it is a product that could add to something."""
    if v.op is gemm:
        return not v.attrs["beta"] and not v.attrs["times"]
    return v.op is dot and bool(v.attrs["contract"][0])


def _product(v: Value) -> Value:
    """The value that ``v`` is in another shape."""
    return v.operands[0] if v.op is reshape else v


def _takes_in(user: Value, v: Value) -> bool:
    """True if the kernel of a user can compute ``v`` on the way."""
    if not is_kernel_op(user):
        return False
    if is_epilogue(user):
        return not (isinstance(user.op.lowering, Update) and user.operands[0] is v)
    return reads_in_place(user)


def _is_array(v: Value, uses: dict[Value, int]) -> bool:
    """True if a value lies in memory anyway."""
    while isinstance(v.op.lowering, View):
        v = v.operands[0]
    return not is_free(v) and (not is_kernel_op(v) or uses[v] > 1)


# --- what becomes of it -----------------------------------------------------------------------------------------------


def _build(job: Job, edit: Edit) -> Value:
    """The value of a sum as gemms, each of which adds to the one before."""
    start: Value | None = None
    beta = ONE
    if job.target is not None:
        start, beta = edit.done[job.target[0]], job.target[1]
    lines = NOWHERE.union(*[edit.hints.get(n, NOWHERE) for n in job.sum.nodes])
    for v, alpha in job.products:
        start = _add(start, beta, edit.done[v], alpha, edit)
        edit.note(start, lines | edit.hints.get(v, NOWHERE))
        beta = ONE
    assert start is not None
    if not job.apart:
        return start
    chosen = {v for v, _ in job.products}
    rest = job.sum.of(lambda v: None if v in chosen else edit.done[v], lambda v: edit.done[v])
    return start if rest is None else add(rest, start)


def _add(start: Value | None, beta: Coefficient, v: Value, alpha: Coefficient, edit: Edit) -> Value:
    """``beta * start + alpha * v`` for a product ``v``, which may be in another shape.

    A gemm does not look at alpha where it adds up nothing: alpha need not be guarded against that.
    """
    product = _product(v)
    if start is None and alpha.is_one:
        return v
    operands = list(product.operands)
    if start is not None:
        operands.append(in_shape(start, product.shape))
    times, terms = [], size_of(product.operands[0].shape[i] for i in product.attrs["contract"][0])
    for name, c in (("alpha", alpha), ("beta", beta)):
        by = _factor([unguarded(edit.done[s], terms) if name == "alpha" else edit.done[s] for s in c.times],
                     [edit.done[s] for s in c.over])
        if by is not None:
            operands.append(by)
            times.append(name)
    number = _shortest(alpha.number * product.attrs.get("alpha", 1.0), product.dtype)
    other = 0.0 if start is None else _shortest(beta.number, product.dtype)
    axes = {k: product.attrs[k] for k in ("contract", "batch")}
    out = gemm(*operands, **axes, alpha=number, beta=other, times=tuple(times))
    return in_shape(out, v.shape)


def _factor(times: list[Value], over: list[Value]) -> Value | None:
    """The value that the number of a coefficient is multiplied by."""
    up = functools.reduce(mul, times) if times else None
    down = functools.reduce(mul, over) if over else None
    if down is None:
        return up
    return div(scalar(1.0, down.dtype) if up is None else up, down)


def _shortest(x: float, dtype: np.dtype) -> float:
    """The shortest float that is this number in ``dtype``."""
    return float(str(dtype.type(x).real))
