"""Reasons why passes without rules left something alone: read off the functions before and after, when asked.

A reason is a value (of the function before or after; None for all of it), and words. A pass is registered with
``reasons=f``: ``f(before, after)`` gives them, the best first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from symc.ir.dim import Dim
from symc.ir.function import Function
from symc.ir.ops.control import cond, scan
from symc.ir.ops.control import while_ as while_op
from symc.ir.ops.kernel import projection
from symc.ir.ops.linalg import dot
from symc.ir.ops.shape import reshape
from symc.ir.ops.store import is_epilogue
from symc.ir.traverse import dependent, every_value, postorder, users
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.engine.provenance import expression
from symc.opt.engine.regions import as_function, every_function
from symc.opt.fusion.kernel_ops import is_fold

Reason = tuple[Value | None, str]


def count(n: int, thing: str) -> str:
    """``2 consumers``."""
    return f"{n} {thing}{'s' * (n != 1)}"


def _uses(f: Function) -> dict[Value, list[Value | None]]:
    """Users of each value; None for a result."""
    found: dict[Value, list[Value | None]] = {v: [*us] for v, us in users(f.values()).items()}
    for r in f.body.results:
        found[r].append(None)
    return found


# --- products ---------------------------------------------------------------------------------------------------------


def of_blas(before: Function, after: Function) -> Iterator[Reason]:
    """Reasons why a product is not one with the sum around it."""
    from symc.opt.matmul.blas import DTYPES, find

    if not any(v.op is dot for v in every_value(before.body)):
        yield None, "there is no product of arrays"
    for f in every_function(before):
        jobs = find(f)
        merged = {v for job in jobs.values() for v, _ in job.products}
        uses = _uses(f)
        for v in f.values():
            if v.op is dot and v not in merged:
                yield v, _alone(v, uses, DTYPES)


def _alone(v: Value, uses: dict[Value, list[Value | None]], dtypes: str) -> str:
    x = v
    if v.dtype.char not in dtypes:
        return f"the library multiplies no {v.dtype}"
    while len(uses[x]) == 1 and (user := uses[x][0]) is not None and user.op is reshape:
        x = user
    if len(uses[x]) > 1:
        return f"the product has {count(len(uses[x]), 'consumer')}, so it is needed by itself"
    (user,) = uses[x]
    if user is None:
        return "the product is a result as it is: nothing is multiplied with or added to it"
    if user.op.facts.symbol or user.op.name == "neg":
        others = [o for o in user.operands if o is not x]
        return (
            f"a kernel that reads the product computes {expression(user, 2)} on the way, which is as fast"
            if others
            else f"{expression(user, 2)} uses the product twice"
        )
    return f"what reads the product is {user.op.name}, not a sum"


def of_pack(before: Function, after: Function) -> Iterator[Reason]:
    """Reasons why products that share an operand are still several."""
    if not any(v.op is dot for v in every_value(before.body)):
        yield None, "there is no product of arrays"
    for f in every_function(after):
        by_operand: dict[Value, list[Value]] = {}
        for v in f.values():
            if v.op is dot:
                for o in dict.fromkeys(v.operands):
                    by_operand.setdefault(o, []).append(v)
        for o, products in by_operand.items():
            for v in products[1:]:
                yield v, _apart(products[0], v, o)
        if not any(len(p) > 1 for p in by_operand.values()):
            for v in f.values():
                if v.op is dot:
                    yield v, "no other product shares an operand with it"


def _apart(first: Value, second: Value, shared: Value) -> str:
    what = f"it shares {expression(shared, 1)} with {expression(first, 2)}, but "
    if first in postorder([second]) or second in postorder([first]):
        return what + "one of them is made of the other"
    sides = [v.operands.index(shared) for v in (first, second)]
    if sides[0] != sides[1]:
        return what + "once as the left and once as the right operand, over other axes"
    if first.attrs["contract"][sides[0]] != second.attrs["contract"][sides[1]]:
        return what + "they contract other axes of it"
    parts = [v.operands[1 - s] for v, s in zip((first, second), sides, strict=True)]
    if parts[0].dtype != parts[1].dtype:
        return what + f"the other operands are {parts[0].dtype} and {parts[1].dtype}"
    if parts[0].ndim != parts[1].ndim:
        return what + f"the other operands have {parts[0].ndim} and {parts[1].ndim} axes"
    return what + "putting the other operands side by side would cost more than it saves"


def of_fuse_matvec(before: Function, after: Function) -> Iterator[Reason]:
    """Reasons why a product of a matrix and a vector stays a call of the library."""
    from symc.opt.matmul.matrix_vector import as_product, pairs

    found = False
    for f in every_function(before):
        taken = {p.value for pair in pairs(f) for p in pair}
        products = [p for v in f.values() if (p := as_product(v)) is not None]
        found = found or bool(products)
        for p in products:
            if p.value not in taken:
                other = any(q.matrix is p.matrix and q.axis != p.axis for q in products)
                yield p.value, ("its vector is not made of the other product of the matrix element by element" if other
                                else "the matrix is multiplied with vectors from one side only")
    if not found:
        yield None, "there is no product of a matrix in memory and a vector"


# --- kernels ----------------------------------------------------------------------------------------------------------


def of_fuse(before: Function, after: Function) -> Iterator[Reason]:
    """Reasons why a kernel is not one with the kernel that makes what it reads."""
    from symc.opt.fusion.fuse import MAX_VALUES

    for f in every_function(after):
        kernels = [v for v in f.values() if v.op.name == "fused"]
        if len(kernels) == 1 and f is after:
            yield None, "everything that a kernel can compute is in this one"
        readers: dict[Value, dict[Value, None]] = {}
        for v in f.values():
            for o in v.operands:
                source, _ = projection(o)
                if source.op.name == "fused" and v.op.name != "get":
                    readers.setdefault(source, {})[v] = None
        for k in kernels:
            for reader in readers.get(k, ()):
                yield k, _two_kernels(k, reader, readers[k], MAX_VALUES)
        if len(kernels) > 1 and not any(readers.get(k) for k in kernels):
            spaces = {str(_space(k)) for k in kernels}
            why = "they compute arrays of different shapes" if len(spaces) > 1 else "each is large enough by itself"
            yield kernels[-1], f"no kernel reads what another makes, and {why}"


def _two_kernels(maker: Value, reader: Value, others: Iterable[Value], most: int) -> str:
    what = f"{_kernel(maker)} and {_kernel(reader)}: "
    if reader.op.name != "fused":
        return what + f"{reader.op.name} is no kernel: a library or the interpreter computes it, from memory"
    many = len(list(others))
    if many > 1:
        return what + f"the first has {count(many, 'consumer')}, which read it from memory"
    inner, outer = ([v for v in postorder(r.regions[0].results) if v.operands] for r in (maker, reader))
    if len(inner) + len(outer) > most and not any(is_fold(v) or is_epilogue(v) for v in (*inner, *outer)):
        return what + f"of {len(inner) + len(outer)} values together, cut where few arrays cross"
    if len(inner) + len(outer) > most:
        return what + f"together they have {len(inner) + len(outer)} values, more than the {most} of a kernel"
    ends = [v for v in inner if is_epilogue(v)]
    if ends:
        return what + f"{ends[0].op.name} ends a kernel: it is read when it is complete"
    folds = [v for v in inner if is_fold(v)]
    if folds and _space(maker) != _space(reader):
        axes = folds[0].attrs["axes"]
        return what + f"{folds[0].op.name} over axes {axes} must be complete before another space is computed from it"
    if folds:
        return what + f"{folds[0].op.name} must be complete before it is read, and its axes are not the last"
    if _space(maker) != _space(reader):
        return what + f"the shapes they compute over are {_space(maker)} and {_space(reader)}"
    return what + "the second also waits for something that is made of the first"


def _space(kernel: Value) -> str:
    """The largest shape that a kernel computes."""
    shapes = [v.shape for v in postorder(kernel.regions[0].results) if isinstance(v.type, TensorType)]
    best = max(shapes, key=len, default=())
    return f"[{', '.join(map(str, best))}]"


def _kernel(v: Value) -> str:
    """A kernel in words: its last few ops."""
    if v.op.name != "fused":
        return v.op.name
    ops = [x.op.name for x in postorder(v.regions[0].results) if x.operands and x.op.name not in ("broadcast", "get")]
    return "a kernel (" + ", ".join([*(["..."] if len(ops) > 4 else []), *ops[-4:]]) + ")"


# --- loops ------------------------------------------------------------------------------------------------------------


def _loops(f: Function) -> list[Value]:
    return [v for g in every_function(f) for v in g.values() if v.op in (scan, while_op, cond)]


def _length(v: Value) -> str:
    n = v.attrs.get("length")
    return f"the loop's length {n} is not known before a call" if isinstance(n, Dim) else f"the loop has {n} steps"


def of_unroll(before: Function, after: Function) -> Iterator[Reason]:
    """Reasons why a loop or branch is still there."""
    if not _loops(before):
        yield None, "there is no loop or branch"
    from symc.opt.loops.unroll import MOST_STEPS, MOST_VALUES

    for v in _loops(after):
        if v.op is scan:
            n = v.attrs["length"]
            size = sum(bool(x.operands) for x in postorder(v.regions[0].results))
            more = f", more than {MOST_STEPS}" if isinstance(n, int) and n > MOST_STEPS else ""
            large = f": {size} values a step are more than {MOST_VALUES} in all" if not more else ""
            yield v, _length(v) + more + (large if isinstance(n, int) else "")
        elif v.op is cond:
            yield v, "which branch runs is not known before a call, and a branch is not small enough to compute both"
        else:
            yield v, "how many steps a while loop takes is not known before a call"


def of_push_out(before: Function, after: Function) -> Iterator[Reason]:
    """Reasons why a product is still computed in every step."""
    if not _loops(before):
        yield None, "there is no loop"
    for v in _loops(after):
        if v.op is not scan:
            continue
        body = as_function(v.regions[0], after.inside)
        carries = set(body.params[: v.attrs["carry"]])
        varying = _made_of(body, carries)
        for x in body.values():
            if x.op is dot:
                why = "is made of a carry, which only the step before knows" if x in varying else "costs little"
                yield x, f"{expression(x, 2)} in the loop {why}"
        if not any(x.op is dot for x in body.values()):
            yield v, "there is no product in the loop"


def of_hoist(before: Function, after: Function) -> Iterator[Reason]:
    """Reasons why values are still computed in every step."""
    if not _loops(before):
        yield None, "there is no loop"
    for v in _loops(after):
        if v.op is scan:
            yield v, "everything that is left in the loop depends on a carry or a row, costs nothing, or may fail"
        elif v.op is cond:
            yield v, "nothing leaves a branch: it might not run"


def of_merge_scans(before: Function, after: Function) -> Iterator[Reason]:
    """Reasons why two loops are not one."""
    if not _loops(before):
        yield None, "there is no loop"
    for f in every_function(after):
        loops = [v for v in f.values() if v.op is scan]
        for first, second in pairwise(loops):
            if first in postorder([second]):
                yield second, "it reads what the other loop has made after all its steps"
            elif first.attrs["length"] != second.attrs["length"]:
                yield second, f"the lengths are {first.attrs['length']} and {second.attrs['length']}"
            elif first.attrs["reverse"] != second.attrs["reverse"]:
                yield second, "one goes forwards and the other backwards"
        if len(loops) == 1:
            yield loops[0], "there is one loop only"


def of_small_loops(before: Function, after: Function) -> Iterator[Reason]:
    """Reasons why a loop runs as steps of a plan and not as one kernel."""
    if not _loops(before):
        yield None, "there is no loop"
    for v in _loops(after):
        if v.op in (scan, while_op):
            yield v, "its body has arrays of unknown or many elements, calls of libraries, or too many values"


def _made_of(f: Function, leaves: set[Value]) -> set[Value]:
    return dependent(f.values(), leaves)
