"""Linear algebra by LAPACK: which routines, with which arguments and workspaces, make up an op.

Arrays are row-major and the library reads columns, so it sees the transpose. Where the factorization of the transpose
is, in memory, the one that was wanted, nothing is moved (Cholesky, triangular solves); elsewhere matrices are
transposed on the way in and out, so that signs and orders of rows are NumPy's. A routine that fails hands over to the
reference implementation, which knows how to say so. Workspaces lie behind the arena of the plan, as long as the
documentation of a routine asks for and as ``BLOCK`` lets it use; a call allocates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from symc.ir.dim import Size, product
from symc.ir.dtypes import RECORDS
from symc.ir.size_extremes import maximum, minimum
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.runtime import routines
from symc.runtime.cpu.arithmetic import at_least, both, less
from symc.runtime.cpu.blas_library import library
from symc.runtime.cpu.executor import Label
from symc.runtime.cpu.lowering import Lowering
from symc.runtime.cpu.native import small_ir
from symc.runtime.cpu.native.instructions import Op
from symc.runtime.cpu.symbols import routine

#: How many columns the routines take at once, at most.
BLOCK = 64
#: The most rows of a triangle and the fewest right sides of a substitution of our own (``routines.substitution``).
MOST, FEWEST = 32, 4


class At(int):
    """An argument that is a slot: the routine gets the address that the slot holds."""


#: An argument of a routine: a slot, a letter, an integer (a size), or a number of the matrices' dtype.
Argument = At | str | Size | float


class Emitter:
    """Writes the code of one value. ``shapes``: of the operands, then of the results."""

    def __init__(self, lowering: Lowering, v: Value, reads: Sequence[int], writes: Sequence[int],
                 unread: Collection[int] = ()):
        self.lowering, self.code, self.value, self.unread = lowering, lowering.code, v, unread
        self.reads, self.writes = [At(s) for s in reads], [At(s) for s in writes]
        results = v.types
        types: list[TensorType] = [*[o.type for o in v.operands], *results]  # type: ignore[list-item]
        self.shapes = [tuple(map(lowering.number, t.shape)) for t in types]
        self.dtype = v.operands[0].dtype
        self.letter = RECORDS[self.dtype].blas
        self.real = np.dtype(self.dtype.char.lower())
        self.integer = library().integer
        self.info = At(self.code.keep(np.zeros(1, np.int64)))  # of 32 bits a routine writes the lower half
        self.bad = Label()

    @property
    def complex(self) -> bool:
        return self.dtype.kind == "c"

    def memory(self, *shape: Size, dtype: np.dtype | None = None) -> At:
        """Memory while the step runs."""
        return At(self.lowering.workspace(maximum(1, product(shape)) * (dtype or self.dtype).itemsize))

    def work(self, least: Size, dtype: np.dtype | None = None) -> list[Argument]:
        """``work, lwork`` of a routine."""
        return [self.memory(least, dtype=dtype), maximum(1, least)]

    def slot(self, x: Argument, integer: np.dtype | None = None) -> int:
        """The slot that holds the address of an argument. ``integer``: not as wide as the library's."""
        if isinstance(x, At):
            return int(x)
        if isinstance(x, str):
            return self.lowering.literal(ord(x), np.uint8)
        if isinstance(x, float):
            return self.lowering.literal(x, self.dtype)
        return self.lowering.integer(x, integer or self.integer)

    def lapack(self, name: str, *arguments: Argument) -> None:
        """Call a routine whose last argument says whether it failed."""
        self.code.limit_blas()
        self.code.call(routine(self.letter + name), [self.slot(x) for x in (*arguments, self.info)])
        self._check()

    def quietly(self, name: str, *arguments: Argument) -> None:
        """Call a routine that cannot fail, of BLAS or LAPACK."""
        self.code.limit_blas()
        self.code.call(routine(self.letter + name), [self.slot(x) for x in arguments])

    def own(self, name: str, *arguments: Argument, module: str = "lapack_loops") -> None:
        """Call one of our own functions."""
        symbol = routines.entry(module, f"{name}_{self.letter}")
        self.code.call(symbol, [self.slot(x, np.dtype("i8")) for x in arguments])

    def transpose(self, to: Argument, source: Argument, rows: Size, columns: Size) -> None:
        """Write the transpose of rows."""
        self.own("transpose", to, source, rows, columns)

    def small(self, name: str, n: Size, *arguments: Argument) -> None:
        """Call a function for all matrices of n rows at once; with ``info`` where that comes first."""
        one = product(self.shapes[0][:-2]) == 1
        symbol = small_ir.entry(f"{name}_{self.letter}{n}{'x1' if one else ''}")
        self.code.call(symbol, [self.slot(x, np.dtype("i8")) for x in arguments])
        if arguments[0] is self.info:
            self._check()

    def unless(self, name: str, *arguments: Argument) -> None:
        """Call one of our own functions that looks for what makes the rest impossible."""
        self.own(name, self.info, *arguments)
        self._check()

    def _check(self) -> None:
        """Leave for the reference implementation unless ``info`` is 0."""
        self.code.emit(Op.JUMP_UNLESS_ZERO, self.slot(self.info), self.bad)

    def copy(self, to: Argument, source: Argument, elements: Size) -> None:
        self.code.emit(Op.COPY, self.slot(to), self.slot(source), elements * self.dtype.itemsize)

    @contextmanager
    def each(self, batch: Size, *moved: tuple[int, Size]) -> Iterator[list[At]]:
        """Loop: what is emitted inside runs for every matrix. ``moved``: (slot, number of bytes from one to the
        next)."""
        if batch == 1:
            yield [At(s) for s, _ in moved]
            return
        own = [self.code.slot() for _ in moved]
        for mine, (s, _) in zip(own, moved, strict=True):
            self.code.emit(Op.MOVE, mine, s, 0)
        with self.lowering.repeat(batch):
            yield [At(s) for s in own]
            for mine, (_, nbytes) in zip(own, moved, strict=True):
                self.code.emit(Op.MOVE, mine, mine, nbytes)

    def matrices(self, k: int, ndim: int = 2, dtype: np.dtype | None = None) -> tuple[int, Size]:
        """Operand or result k as an argument of ``each``; the last ``ndim`` axes are one matrix."""
        itemsize = (dtype or self.dtype).itemsize
        return [*self.reads, *self.writes][k], product(self.shapes[k][-ndim:]) * itemsize


def lower(lowering: Lowering, v: Value, reads: Sequence[int], writes: Sequence[int],
          reference: Callable[[], None], unread: Collection[int] = ()) -> bool:
    """The code of a value, if there is a recipe for it. ``reference``: emits the reference implementation. ``unread``:
    results that nothing reads, which need not be made."""
    recipe = RECIPES.get(v.op.name)
    if recipe is None or not RECORDS[v.operands[0].dtype].blas:
        return False
    e, end = Emitter(lowering, v, reads, writes, unread), Label()
    sizes = dict.fromkeys(n for shape in e.shapes for n in shape)
    if any(less(library().most, n) == 1 for n in sizes) or 0 in sizes:
        return False
    for n in sizes:
        lowering.code.refuse(less(library().most, n))
        if less(n, 1) != 0:  # of no elements the reference knows what comes out
            lowering.code.emit(Op.JUMP_IF_LESS, lowering.code.number(n), 1, e.bad)
    recipe(e)
    lowering.code.emit(Op.JUMP, end)
    lowering.code.place(e.bad)
    reference()
    lowering.code.place(end)
    return True


# --- recipes: what lies in memory row by row, the library sees as its transpose ---------------------------------------


def _cholesky(e: Emitter) -> None:
    """The upper triangle U of the transpose, A^T = U^H U, lies in memory as L = U^T, and A = L L^H."""
    *batch, n, _ = e.shapes[0]
    count = product(batch)
    if small_ir.serves(e.letter, n):
        return e.small("cholesky", n, e.info, e.writes[0], e.reads[0], count)
    e.copy(e.writes[0], e.reads[0], count * n * n)
    with e.each(count, e.matrices(1)) as (c,):
        e.lapack("potrf", "U", n, c, n)
        e.lowering.choose(n, 2, lambda: None, partial(_clear_below, e, c, n))


def _clear_below(e: Emitter, c: At, n: Size) -> None:
    second = e.code.slot()
    e.code.emit(Op.MOVE, second, c, e.dtype.itemsize)
    e.quietly("laset", "L", n - 1, n - 1, 0.0, 0.0, At(second), n)


def _solve(e: Emitter, a: Argument, b: Argument, n: Size, k: Size, lower_: bool, trans: str, unit: bool) -> None:
    """op(A) X = B is X^T op(A)^T = B^T, in place in B."""
    uplo, diagonal = "U" if lower_ else "L", "U" if unit else "N"
    one = partial(e.quietly, "trsv", uplo, "T" if trans == "n" else "N", diagonal, n, a, n, b, 1)
    several = partial(e.quietly, "trsm", "R", uplo, trans.upper(), diagonal, k, n, 1.0, a, n, b, k)

    def few() -> None:
        steps = [n, 1] if trans == "n" else [1, n]
        e.own("substitute", b, a, n, k, *steps, int(lower_ == (trans == "n")), int(unit), module="substitution")

    e.lowering.where(both(at_least(MOST, n), at_least(k, FEWEST)) if e.letter in "sd" else 0, few,
                     lambda: e.lowering.where(less(k, 2) if trans != "c" else 0, one, several))


def _solve_triangular(e: Emitter) -> None:
    attrs = e.value.attrs
    *batch, n, k = e.shapes[1]
    count = product(batch)
    if small_ir.serves(e.letter, n):
        how = "lu"[not attrs["lower"]] + "nt"[attrs["trans"] != "n"] + "du"[attrs["unit"]]
        return e.small(f"triangular_{how}", n, e.info, e.writes[0], *e.reads, count, k)
    e.copy(e.writes[0], e.reads[1], count * n * k)
    with e.each(count, e.matrices(0), e.matrices(2)) as (a, x):
        if not attrs["unit"]:
            e.unless("singular", a, n)
        _solve(e, a, x, n, k, attrs["lower"], attrs["trans"], attrs["unit"])


def _lu_factor(e: Emitter) -> None:
    *batch, n, _ = e.shapes[0]
    if small_ir.serves(e.letter, n):
        return e.small("lu", n, *e.writes, e.reads[0], product(batch))
    pivots, columns = e.memory(n, dtype=e.integer), e.memory(n, n)
    moved = [e.matrices(0), e.matrices(1), e.matrices(2, 1, np.dtype("i8"))]
    with e.each(product(batch), *moved) as (a, lu, perm):
        e.transpose(columns, a, n, n)
        e.quietly("getrf", n, n, columns, n, pivots, e.info)  # a zero pivot is a result, too
        e.transpose(lu, columns, n, n)
        e.own(f"order{8 * e.integer.itemsize}", perm, pivots, n)


def _lu_solve(e: Emitter) -> None:
    """A[p] = L U: L and U of rows in the order p, or their transposes, then rows put back."""
    trans = e.value.attrs["trans"]
    *batch, n, k = e.shapes[2]
    count, nbytes = product(batch), k * e.dtype.itemsize
    if small_ir.serves(e.letter, n):
        return e.small(f"solve_{'nt'[trans != 'n']}", n, e.info, e.writes[0], *e.reads, count, k)
    work = e.memory(n, k)
    with e.each(count, e.matrices(0), e.matrices(1, 1, np.dtype("i8")), e.matrices(2), e.matrices(3)) as (lu, p, b, x):
        e.unless("outside", p, n)
        e.unless("singular", lu, n)
        if trans == "n":
            e.own("take", x, b, p, n, nbytes)
            _solve(e, lu, x, n, k, True, "n", True)
            _solve(e, lu, x, n, k, False, "n", False)
        else:
            e.copy(work, b, n * k)
            _solve(e, lu, work, n, k, False, trans, False)
            _solve(e, lu, work, n, k, True, trans, True)
            e.own("put", x, work, p, n, nbytes)


def _eigh(e: Emitter) -> None:
    """The matrix itself, not its transpose: signs and phases of vectors are those that NumPy has."""
    vectors = e.value.op.name == "eigh"
    *batch, n, _ = e.shapes[0]
    uplo, job = "L" if e.value.attrs["lower"] else "U", "V" if vectors else "N"
    columns = e.memory(n, n)
    name = "heevd" if e.complex else "syevd"
    work = _eigh_workspace(e, vectors, n)
    moved = [e.matrices(0), e.matrices(1, 1, e.real), *([e.matrices(2)] if vectors else [])]
    with e.each(product(batch), *moved) as (a, w, *v):
        e.transpose(columns, a, n, n)
        e.lapack(name, job, uplo, n, columns, n, w, *work)
        if vectors:
            e.transpose(v[0], columns, n, n)


def _eigh_workspace(e: Emitter, vectors: bool, n: Size) -> list[Argument]:
    """The lengths that the documentation of ?syevd and ?heevd asks for."""
    integers = e.work(3 + 5 * n if vectors else 1, e.integer)
    if e.complex:
        least = 2 * n + n * n if vectors else n + 1
        return [*e.work(least + BLOCK * n), *e.work(1 + 5 * n + 2 * n * n if vectors else n, e.real), *integers]
    least = 1 + 6 * n + 2 * n * n if vectors else 2 * n + 1
    return [*e.work(least + BLOCK * n), *integers]


def _svd(e: Emitter) -> None:
    """The matrix itself, as for ``_eigh``."""
    vectors = e.value.op.name == "svd"
    *batch, m, n = e.shapes[0]
    k, larger = minimum(m, n), maximum(m, n)
    full = vectors and e.value.attrs["full"]
    job, p, q = "N" if not vectors else "A" if full else "S", m if full else k, n if full else k
    a, u, vt = (e.memory(m, n), e.memory(m, p if vectors else 0), e.memory(q if vectors else 0, n))
    more: list[Argument] = [e.memory(8 * k, dtype=e.integer)]
    if e.complex:
        reals = maximum(5 * k * k + 5 * k, 2 * larger * k + 2 * k * k + k) if vectors else 7 * k
        more.insert(0, e.memory(reals, dtype=e.real))
    # the most that the documentation of ?gesdd asks for, and a block for each row and column
    work = e.work(4 * k * k + 7 * k + larger + BLOCK * (m + n))
    moved = [e.matrices(0), e.matrices(2 if vectors else 1, 1, e.real)]
    with e.each(product(batch), *moved, *([e.matrices(1), e.matrices(3)] if vectors else [])) as (x, s, *out):
        e.transpose(a, x, m, n)
        e.lapack("gesdd", job, m, n, a, m, s, u, m, vt, q, *work, *more)
        if vectors:
            e.transpose(out[0], u, p, m)
            e.transpose(out[1], vt, n, q)


def _qr(e: Emitter) -> None:
    """QR of the transpose of A in memory, whose columns are then apart, as are those that a reflection changes. Of a
    wide matrix only the first m columns are factored: they determine Q, and a product turns the others."""
    *batch, m, n = e.shapes[0]
    wide, k = e.shapes[1][-1], minimum(m, n)  # the columns of Q: m for all of Q, else k
    a, tau, upper = e.memory(maximum(wide, k) * m), e.memory(k), e.memory(wide * k)
    work = e.work(BLOCK * maximum(wide, k))

    def factor(source: At, q: At, r: At, alone: bool = False) -> None:
        e.transpose(a, source, m, k)
        e.lapack("geqrf", m, k, a, m, tau, *work)
        e.code.emit(Op.CLEAR, e.slot(upper), wide * k * e.dtype.itemsize)
        e.quietly("lacpy", "U", k, k, a, m, upper, wide)
        e.transpose(r, upper, k, wide)
        if alone:
            return
        e.lapack("ungqr" if e.complex else "orgqr", m, wide, k, a, m, tau, *work)
        e.transpose(q, a, wide, m)

    def factor_first(source: At, q: At, r: At) -> None:
        left, others, to = e.memory(m, m), At(e.code.slot()), At(e.code.slot())
        e.quietly("lacpy", "A", m, m, source, n, left, m)
        factor(left, q, left)
        e.quietly("lacpy", "A", m, m, left, m, r, n)
        for second, first in ((others, source), (to, r)):
            e.code.emit(Op.MOVE, second, first, m * e.dtype.itemsize)
        e.quietly("gemm", "N", "C", n - m, m, m, 1.0, others, n, q, m, 0.0, to, n)

    with e.each(product(batch), e.matrices(0), e.matrices(1), e.matrices(2)) as (x, q, r):
        e.lowering.choose(m, n, partial(factor_first, x, q, r), partial(factor, x, q, r, 0 in e.unread))


def _solve_banded(e: Emitter) -> None:
    """Diagonals lie in memory as rows, and the library wants them as columns, with room above for those that exchanges
    of rows fill. For three diagonals it has a routine that takes the rows."""
    low, up = e.value.attrs["low"], e.value.attrs["up"]
    *batch, n, k = e.shapes[1]
    three, rows, ld = (low, up) == (1, 1), low + up + 1, 2 * low + up + 1
    band, turned = e.memory(rows * n), e.memory(0 if three else ld * n)
    pivots, columns = e.memory(n, dtype=e.integer), e.memory(n * k)

    def solved(ab: At, x: At) -> None:
        if three:
            e.copy(band, ab, 3 * n)
            e.lapack("gtsv", n, k, _after(e, band, 2 * n), _after(e, band, n), _after(e, band, 1), x, n)
            return
        e.transpose(band, ab, rows, n)
        e.quietly("lacpy", "A", rows, n, band, rows, _after(e, turned, low), ld)
        e.lapack("gbsv", n, low, up, k, turned, ld, pivots, x, n)

    def several(ab: At, b: At, x: At) -> None:
        e.transpose(columns, b, n, k)
        solved(ab, columns)
        e.transpose(x, columns, k, n)

    def one(ab: At, b: At, x: At) -> None:
        e.copy(x, b, n)
        solved(ab, x)

    with e.each(product(batch), e.matrices(0), e.matrices(1), e.matrices(2)) as arrays:
        e.lowering.where(less(k, 2), partial(one, *arrays), partial(several, *arrays))


def _after(e: Emitter, start: At, elements: Size) -> At:
    """The address so many elements behind another."""
    place = At(e.code.slot())
    e.code.emit(Op.MOVE, place, start, elements * e.dtype.itemsize)
    return place


RECIPES: dict[str, Callable[[Emitter], None]] = {
    "cholesky": _cholesky,
    "solve_triangular": _solve_triangular,
    "solve_banded": _solve_banded,
    "lu_factor": _lu_factor,
    "lu_solve": _lu_solve,
    "eigh": _eigh,
    "eigvalsh": _eigh,
    "svd": _svd,
    "svdvals": _svd,
    "qr": _qr,
}
