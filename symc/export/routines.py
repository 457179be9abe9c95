"""Steps that are no kernels: products, factorizations, concatenations and assertions, as calls of the prelude."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from symc.codegen.c.prelude import TYPES
from symc.codegen.c.scalars import literal
from symc.codegen.language.typed import PARTS
from symc.codegen.plan.gemm import as_gemm
from symc.export.steps import Statements
from symc.ir.dim import Size, product
from symc.ir.dtypes import RECORDS
from symc.ir.ops.gemm import gemm, parts
from symc.ir.plan import Plan, Step
from symc.ir.record import dataclass
from symc.ir.size_extremes import maximum
from symc.ir.types import DTYPE_NAMES, TupleType
from symc.ir.value import Value


class Routine:
    """One step: pointers of operands and results, their shapes, and the letter of BLAS of the first operand."""

    def __init__(self, out: Statements, plan: Plan, step: Step, reads: Sequence[str], writes: Sequence[str]):
        self.out, self.plan, self.step, self.value = out, plan, step, step.value
        self.reads, self.writes = list(reads), list(writes)
        v = step.value
        types = [*[o.type for o in v.operands], *(v.type.items if isinstance(v.type, TupleType) else (v.type,))]
        self.shapes = [t.shape for t in types]  # type: ignore[union-attr]
        self.dtypes = [t.dtype for t in types]  # type: ignore[union-attr]
        self.letter = RECORDS[self.dtypes[0]].blas if types else ""

    def call(self, what: str, *arguments: str | Size, sign: str = "") -> str:
        """A call of the prelude."""
        given = [a if isinstance(a, str) else self.out.size(a) for a in arguments]
        return f"{sign}{self.out.prelude.need(what, self.letter)}({', '.join(given)})"

    def run(self, what: str, *arguments: str | Size) -> None:
        self.out.line(self.call(what, *arguments) + ";")

    def check(self, why: str, what: str, *arguments: str | Size) -> None:
        """A call that says whether it succeeded."""
        self.out.stop(self.call(what, *arguments, sign="!"), self.plan, self.value, f"{self.value.op.name}: {why}")

    @contextmanager
    def each(self, batch: Size, *moved: tuple[int, int]) -> Iterator[list[str]]:
        """Loop over the matrices of a batch. ``moved``: operands or results, and how many last axes are one of them."""
        every = [*self.reads, *self.writes]
        if batch == 1:
            yield [every[k] for k, _ in moved]
            return
        i = self.out.fresh("i")
        with self.out.block(f"for (int64_t {i} = 0; {i} < {self.out.size(batch)}; {i}++)"):
            nbytes = [product(self.shapes[k][-n:]) * self.dtypes[k].itemsize for k, n in moved]
            yield [f"(void *)((char *){every[k]} + {i} * {self.out.size(n)})"
                   for (k, _), n in zip(moved, nbytes, strict=True)]


def routine(out: Statements, plan: Plan, step: Step, reads: Sequence[str], writes: Sequence[str]) -> bool:
    """The statements of a step that is no kernel; False where there are none."""
    r, v = Routine(out, plan, step, reads, writes), step.value
    if as_gemm(v) is not None:
        _product(r)
    elif v.op.name in RECIPES and (v.op.name in _ANY or r.letter):
        RECIPES[v.op.name](r)
    else:
        return False
    return True


def _product(r: Routine) -> None:
    """c = beta * what is added, if there is any, and alpha * a * b on top."""
    v, out = r.value, r.out
    form = as_gemm(v)
    assert form is not None
    given = parts(v, r.reads) if v.op is gemm else dict(zip("ab", r.reads, strict=True))
    alpha, beta = (_factor(r, name, given) for name in ("alpha", "beta"))
    size, (c,) = form.batch * form.m * form.n, r.writes
    if "c" in given and "beta" not in given and v.attrs["beta"] == 1:
        out.copy(c, given["c"], size * v.dtype.itemsize)
    elif "c" in given:
        r.run("scale", size, beta, given["c"], c)
    steps = {"a": form.m * form.k, "b": form.k * form.n, "c": form.m * form.n}
    steps.pop(form.shared, None)
    arrays = {"a": given["a"], "b": given["b"], "c": c}
    shape = [*map(_bool, ("c" in given, form.trans_a, form.trans_b)), form.m, form.n, form.k]
    if form.batch == 1:
        r.run("product", *shape, alpha, *arrays.values())
        return
    i = out.fresh("i")
    with out.block(f"for (int64_t {i} = 0; {i} < {out.size(form.batch)}; {i}++)"):
        r.run("product", *shape, alpha, *[
            f"(void *)((char *){p} + {i} * {out.size(steps[x] * v.dtype.itemsize)})" if x in steps else p
            for x, p in arrays.items()])


def _factor(r: Routine, name: str, given: dict[str, str]) -> str:
    """A number of a product as an expression: what stands in the attributes times what is given."""
    v = r.value
    number = v.attrs[name] if v.op is gemm else 1.0
    t = RECORDS[v.dtype].memory
    text = literal(t, number if t in PARTS else number.real)
    if name not in given:
        return text
    loaded = f"*(const {TYPES[t]} *){given[name]}"
    return loaded if number == 1 else f"{text} * {loaded}"


def _concat(r: Routine) -> None:
    """Row by row, each operand into its part."""
    v, out = r.value, r.out
    axis = v.attrs["axis"]
    bytes_ = [product(o.shape[axis:]) * o.dtype.itemsize for o in v.operands]
    i = out.fresh("i")
    with out.block(f"for (int64_t {i} = 0; {i} < {out.size(product(v.shape[:axis]))}; {i}++)"):
        at: Size = 0
        for source, n in zip(r.reads, bytes_, strict=True):
            out.line(f"copy((char *){r.writes[0]} + {i} * {out.size(sum(bytes_))} + {out.size(at)}, "
                     f"(char *){source} + {i} * {out.size(n)}, {out.size(n)});")
            at = at + n


def _assert(r: Routine) -> None:
    condition, v = r.value.operands[1], r.value
    test = r.out.prelude.need("all_true")
    why = f"assert_: {v.attrs['message'] or 'the condition does not hold'}"
    r.out.stop(f"!{test}({r.reads[1]}, {r.out.size(product(condition.shape))})", r.plan, v, why)
    r.out.copy(r.writes[0], r.reads[0], v.type.nbytes)  # type: ignore[union-attr]


def _sort(r: Routine) -> None:
    v = r.value
    a, (x,) = v.attrs["axis"], r.shapes[:1]
    values = v.op.name == "sort"
    work = r.out.workspace(x[a] * (16 + v.operands[0].dtype.itemsize))
    sort = r.out.prelude.need("sort", DTYPE_NAMES[r.dtypes[0]])
    sizes = [r.out.size(n) for n in (product(x[:a]), x[a], product(x[a + 1 :]), v.shape[a])]
    wanted = [r.writes[0], "NULL"] if values else ["NULL", r.writes[0]]
    r.out.line(f"{sort}({', '.join([*sizes, _bool(not v.attrs.get('least', True)), r.reads[0], *wanted, work])});")


def _selected(r: Routine) -> None:
    """Elements of lanes that are sorted."""
    v, x, out = r.value, r.shapes[0], r.out
    a, width = v.attrs["axis"], v.dtype.itemsize
    whole, work = out.workspace(product(x) * width), out.workspace(x[a] * (16 + width))
    outer, n, inner, many = (out.size(s) for s in (product(x[:a]), x[a], product(x[a + 1 :]), v.shape[a]))
    sort = out.prelude.need("sort", DTYPE_NAMES[v.dtype])
    out.line(f"{sort}({outer}, {n}, {inner}, {n}, false, {r.reads[0]}, {whole}, NULL, {work});")
    i, p, t = out.fresh("i"), out.fresh("p"), TYPES[RECORDS[v.dtype].memory]
    with out.block(f"for (int64_t {i} = 0; {i} < {outer} * {many} * {inner}; {i}++)"):
        out.line(f"int64_t {p} = ((const int64_t *){r.reads[1]})[{i} / {inner} % {many}];")
        with out.block(f"if ({p} >= 0 && {p} < {n})"):  # else a check has failed
            out.line(f"(({t} *){r.writes[0]})[{i}] = (({t} *){whole})[({i} / {inner} / {many} * {n} + {p}) * {inner} + "
                     f"{i} % {inner}];")


def _fourier(r: Routine) -> None:
    """Computation in double precision, whatever the precision of the numbers."""
    v, (x, y) = r.value, r.shapes
    a, kind = v.attrs["axis"], {"fft": "c", "rfft": "r", "irfft": "h"}[v.op.name]
    n = y[a] if kind == "h" else x[a]
    work = r.out.workspace(6 * 8 * n)
    r.check("there are no points", "fourier", f"'{kind}'", _bool(kind == "h" or v.attrs.get("inverse", False)),
            product(x[:a]), x[a], n, y[a], product(x[a + 1 :]), r.reads[0], r.writes[0], work)


# --- matrices ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OfMatrices:
    """A routine that is called for each matrix of a batch: what it is ``given`` (of m rows of n numbers), then the
    operands and results ``moved``, each with how many of its last axes are one matrix, and ``absent`` ones, then memory
    for ``work`` numbers. ``why``: what it means if the routine says that it has failed."""

    what: str
    moved: tuple[tuple[int, int], ...]
    given: Callable[[Routine, Size, Size], Sequence[str | Size]]
    work: Callable[[Routine, Size, Size], Size] | None = None
    why: str = ""
    absent: int = 0

    def __call__(self, r: Routine) -> None:
        *batch, m, n = r.shapes[0]
        work = [] if self.work is None else [r.out.workspace(self.work(r, m, n) * r.dtypes[0].itemsize)]
        with r.each(product(batch), *self.moved) as arrays:
            given = [*self.given(r, m, n), *arrays, *["NULL"] * self.absent, *work]
            if self.why:
                r.check(self.why, self.what, *given)
            else:
                r.run(self.what, *given)


def _solve_triangular(r: Routine) -> None:
    """The right sides are copied, and solved in place."""
    attrs = r.value.attrs
    r.out.copy(r.writes[0], r.reads[1], product(r.shapes[1]) * r.dtypes[1].itemsize)
    _OfMatrices("triangular", ((0, 2), (2, 2)), lambda r, m, n: [
        _bool(attrs["lower"]), f"'{attrs['trans']}'", _bool(attrs["unit"]), n, r.shapes[1][-1]], why=_SINGULAR)(r)


_SINGULAR = "the matrix is singular"
_NO_END = "the iteration does not converge: is there a nan or an infinity in the matrix?"
_MATRICES: dict[str, Callable[[Routine], None]] = {
    "cholesky": _OfMatrices("cholesky", ((0, 2), (1, 2)), lambda r, m, n: [n],
                            why="the matrix is not positive definite"),
    "solve_triangular": _solve_triangular,
    "lu_factor": _OfMatrices("lu_factor", ((0, 2), (1, 2), (2, 1)), lambda r, m, n: [n]),
    "lu_solve": _OfMatrices("lu_solve", ((0, 2), (1, 1), (2, 2), (3, 2)), lambda r, m, n: [
        f"'{r.value.attrs['trans']}'", n, r.shapes[2][-1]], lambda r, m, n: n * r.shapes[2][-1], _SINGULAR),
    "solve_banded": _OfMatrices("banded", ((0, 2), (1, 2), (2, 2)), lambda r, m, n: [
        r.value.attrs["low"], r.value.attrs["up"], n, r.shapes[1][-1]], lambda r, m, n: (m + r.value.attrs["low"]) * n,
        _SINGULAR),
    "qr": _OfMatrices("qr", ((0, 2), (1, 2), (2, 2)), lambda r, m, n: [m, n, r.shapes[1][-1]],
                      lambda r, m, n: (m + 1) * n),
    **{name: _OfMatrices("eigh", ((0, 2), (1, 1), (2, 2))[:k], lambda r, m, n: [_bool(r.value.attrs["lower"]), n],
                         lambda r, m, n: 5 * n * n, _NO_END, 3 - k) for name, k in (("eigh", 3), ("eigvalsh", 2))},
    "svd": _OfMatrices("svd", ((0, 2), (2, 1), (1, 2), (3, 2)), lambda r, m, n: [_bool(r.value.attrs["full"]), m, n],
                       lambda r, m, n: _two_squares(m, n), _NO_END),
    "svdvals": _OfMatrices("svd", ((0, 2), (1, 1)), lambda r, m, n: ["false", m, n],
                           lambda r, m, n: _two_squares(m, n), _NO_END, 2),
}


def _two_squares(m: Size, n: Size) -> Size:
    side = maximum(m, n)
    return 2 * side * side


def _bool(x: bool) -> str:
    return "true" if x else "false"


RECIPES: dict[str, Callable[[Routine], None]] = {
    "concat": _concat, "assert": _assert, "order_statistics": _selected,
    **dict.fromkeys(("sort", "argsort", "top_places"), _sort),
    **dict.fromkeys(("fft", "rfft", "irfft"), _fourier), **_MATRICES}
_ANY = ("concat", "assert", "sort", "argsort", "top_places", "order_statistics")

__all__ = ["Routine", "Value", "routine"]
