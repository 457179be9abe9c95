"""Products of matrices on a CUDA device: what a `dot` or `gemm` of a plan becomes at given sizes. Nothing runs here.

A product is one call of cuBLAS, which scales by numbers known now and adds to what is in the result. cuBLAS stores
matrices by columns: a matrix stored by rows is its transpose stored by columns, and the transpose of ``A @ B`` is
``B.T @ A.T``, so operands are exchanged and nothing is moved.

cuBLAS takes a factor of 0 as the order to look at nothing (0 times nan would be 0), so where a factor is an operand,
whose number is known on the device alone, a kernel of our own multiplies: made from the same ops as any other kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.codegen.kernel.source import Form
from symc.codegen.plan.gemm import Gemm, as_gemm
from symc.ir.dim import Size
from symc.ir.ops.arithmetic import mul
from symc.ir.ops.gemm import combine, gemm, parts, product_of, scale
from symc.ir.ops.linalg import free_axes
from symc.ir.ops.reduce import sum_
from symc.ir.ops.shape import broadcast, in_order
from symc.ir.plan import Step
from symc.ir.record import dataclass
from symc.ir.traverse import close_over
from symc.ir.value import Region, Value, fresh_input, param
from symc.runtime.cuda.actions import CopyAction, FillAction, ProductAction
from symc.runtime.cuda.device import Product

#: Dtypes all of whose numbers tf32 has (11 bits of precision, the exponents of f32): what is cast from them to f32 is
#: multiplied exactly by tensor cores, and added up in f32 as it would be anyway.
IN_TF32 = "e?bB"
_MOVES = frozenset({"transpose", "reshape", "broadcast", "slice"})

#: Where an operand or result of an operation lies: which operand of the step, or one of these.
Place = int
RESULT, SCRATCH = -1, -2
Number = Callable[[Size], int]


@dataclass(frozen=True)
class Launch:
    """A kernel that reads ``operands`` and writes ``result``."""

    form: Form
    operands: tuple[Place, ...]
    result: Place


#: Actions name places here where they name slots in a plan.
Operation = ProductAction | Launch | CopyAction | FillAction


@dataclass(frozen=True)
class LoweredProduct:
    """Operations of a product, in order. ``scratch``: bytes of memory that it needs for itself."""

    operations: tuple[Operation, ...]
    scratch: int = 0


def lower_product(step: Step, number: Number, compute: str = "highest") -> LoweredProduct | None:
    """The operations of a step that is a product; None if it is none."""
    form = as_gemm(step.value, narrow=True)
    return None if form is None else _Lowering(step, form, number, compute).lowered()


def column_major(m: int, n: int, k: int, form: Gemm, batch: int) -> dict:
    """The sizes and layout of a product whose matrices are stored by rows, as cuBLAS calls them. Its first operand is
    the second matrix, its second operand the first one."""
    joined = form.shared == "b" and not form.trans_a
    if joined:  # the rows of all matrices of the batch are rows of one
        m, batch = batch * m, 1
    return {
        "trans_a": form.trans_b, "trans_b": form.trans_a, "m": n, "n": m, "k": k, "batch": batch,
        "lda": k if form.trans_b else n, "ldb": m if form.trans_a else k, "ldc": n,
        "stride_a": 0 if form.shared == "b" or batch == 1 else k * n,
        "stride_b": 0 if form.shared == "a" or batch == 1 else m * k,
        "stride_c": 0 if batch == 1 else m * n,
    }  # fmt: skip


class _Lowering:
    """One step. ``given``: the place of each operand, by what it is."""

    def __init__(self, step: Step, form: Gemm, number: Number, compute: str):
        v = self.value = step.value
        narrow = [fits_tf32(o) for o in v.operands[:2]] if v.dtype.char == "f" else [False]
        exact = any(narrow) if compute == "bf16" else compute == "highest" and all(narrow)
        self.form, self.compute = form, "tf32" if exact else compute
        self.batch, self.m, self.n, self.k = (number(s) for s in (form.batch, form.m, form.n, form.k))
        self.given = parts(v, range(len(v.operands))) if v.op is gemm else {"a": 0, "b": 1}
        self.attrs = v.attrs if v.op is gemm else {"alpha": 1.0, "beta": 0.0}
        self.in_place = "c" in self.given and step.reads[2] == step.writes[0]
        self.nbytes = self.batch * self.m * self.n * v.dtype.itemsize

    def lowered(self) -> LoweredProduct:
        if not self.nbytes:
            return LoweredProduct(())
        if not self.k:
            return LoweredProduct(tuple(self._of_nothing()))
        if "alpha" in self.given:
            place = SCRATCH if self.in_place else RESULT
            operations = self._multiply(1.0, 0.0, place), self._combine(place)
            return LoweredProduct(operations, self.nbytes if self.in_place else 0)
        added = self._add()
        beta = 0.0 if "c" not in self.given else 1.0 if "beta" in self.given else self.attrs["beta"]
        return LoweredProduct((*added, self._multiply(self.attrs["alpha"], beta, RESULT)))

    def _multiply(self, alpha: float, beta: float, target: Place) -> ProductAction:
        layout = column_major(self.m, self.n, self.k, self.form, self.batch)
        product = Product(alpha=alpha, beta=beta, dtype=self.value.dtype, compute=self.compute, **layout)
        return ProductAction(product, self.given["b"], self.given["a"], target)

    def _add(self) -> Sequence[Operation]:
        """Put what is added where the result will be."""
        if "beta" in self.given:
            return [self._scaled()]
        if "c" not in self.given or self.in_place:
            return []
        return [CopyAction(RESULT, self.given["c"], self.nbytes)]

    def _of_nothing(self) -> Sequence[Operation]:
        """Sums of no terms are 0, whatever alpha is: what is left is what is added."""
        if "c" not in self.given:
            return [FillAction(RESULT, self.nbytes)]
        return self._add() if self.attrs["beta"] == 1 and "beta" not in self.given else [self._scaled()]

    def _scaled(self) -> Launch:
        """``result = beta * c``."""
        return self._kernel(scaling(self.value), [x for x in ("c", "beta") if x in self.given], RESULT)

    def _combine(self, product: Place) -> Launch:
        """``result = alpha * product + beta * c``."""
        return self._kernel(combining(self.value), ["product", *[x for x in self.given if x not in "ab"]], product)

    def _kernel(self, region: Region, names: Sequence[str], product: Place) -> Launch:
        """A kernel in which element i of the result depends on element i of what it may be written over."""
        return Launch((region, ()), tuple(product if x == "product" else self.given[x] for x in names), RESULT)


def fits_tf32(v: Value) -> bool:
    """True if all elements are numbers that tf32 has, because they were cast from fewer bits."""
    while True:
        if v.op.name == "get" and v.operands[0].regions:
            v = v.operands[0].regions[0].results[v.attrs["index"]]
        elif v.op.name == "fused":
            v = v.regions[0].results[0]
        elif v.op.name in _MOVES:
            v = v.operands[0]
        else:
            return v.op.name == "cast" and v.operands[0].dtype.char in IN_TF32


def forms_of(v: Value) -> tuple[Form, ...]:
    """The kernels that a product may launch, whatever its sizes are."""
    if v.op is not gemm:
        return ()
    times, beta = v.attrs["times"], v.attrs["beta"]
    regions = [combining(v)] if "alpha" in times else []
    if "beta" in times or beta not in (0, 1):
        regions.append(scaling(v))
    return tuple((r, ()) for r in regions)


def scaling(v: Value) -> Region:
    """Epilogue of c, and beta if that is an operand: ``beta * c``."""
    types = {name: x.type for name, x in parts(v).items() if name in ("c", "beta")}
    given = {name: param(i, t) for i, (name, t) in enumerate(types.items())}
    return Region(types.values(), [scale(given["c"], v.attrs["beta"], given.get("beta"))])


def combining(v: Value) -> Region:
    """Epilogue of the product and the operands after the first two: ``alpha * product + beta * c``."""
    types = {"product": v.type, **{name: x.type for name, x in parts(v).items() if name not in "ab"}}
    given = {name: param(i, t) for i, (name, t) in enumerate(types.items())}
    return Region(types.values(), [combine(v, given.pop("product"), given)])


def summed_form(v: Value) -> Form:
    """The kernel of a `dot` or `gemm`, of the operands of the step."""
    given = [fresh_input(o.type) for o in v.operands]
    if v.op is gemm:
        pair = product_of(v, given[0], given[1])
        rest = {name: x for name, x in parts(v, given).items() if name not in "ab"}
        result = combine(v, _summed(pair), rest)
    else:
        result = _summed(v, given[0], given[1])
    return close_over(given, [result]), ()


def _summed(v: Value, a: Value | None = None, b: Value | None = None) -> Value:
    """A `dot` as a sum of products."""
    a, b = v.operands[0] if a is None else a, v.operands[1] if b is None else b
    contract, batch = v.attrs["contract"], v.attrs["batch"]
    rows, columns = free_axes(a, contract[0], batch[0]), free_axes(b, contract[1], batch[1])
    x, y = in_order(a, (*batch[0], *rows, *contract[0])), in_order(b, (*batch[1], *columns, *contract[1]))
    n, m, k = len(batch[0]), len(rows), len(columns)
    shape = (*v.shape, *(a.shape[i] for i in contract[0]))
    last = tuple(range(n + m + k, len(shape)))
    x = broadcast(x, axes=(*range(n + m), *last), shape=shape)
    y = broadcast(y, axes=(*range(n), *range(n + m, n + m + k), *last), shape=shape)
    return sum_(mul(x, y), axes=last) if last else mul(x, y)
