"""Code of products: one BLAS call for each matrix of a batch, which scales and adds on the way.

``c`` below is the result; what is added is put there first, scaled by beta unless BLAS does that, and BLAS adds to it.
BLAS takes a 0 as the order to look at nothing (0 times nan would be 0), so numbers that are known only at run time are
multiplied here, and alpha is compared with 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np

from symc.codegen.cpu.chunks import WORTH
from symc.codegen.plan.costs import MULTIPLY
from symc.codegen.plan.gemm import Gemm, as_gemm
from symc.ir.dim import Size
from symc.ir.dtypes import RECORDS
from symc.ir.ops.gemm import gemm, parts
from symc.ir.plan import Step
from symc.ir.size_extremes import maximum, minimum
from symc.runtime import routines
from symc.runtime.cpu import blas, symbols
from symc.runtime.cpu.arithmetic import at_least, both, less
from symc.runtime.cpu.blas_library import library
from symc.runtime.cpu.executor import Label
from symc.runtime.cpu.lowering import Lowering
from symc.runtime.cpu.native import few_columns_ir, few_rows_ir, small_products_ir
from symc.runtime.cpu.native.instructions import Op, Word

#: Where all sizes are at least this, half of a symmetric product, and a copy of it, take less time than all of it: on
#: one core 8.5 instead of 10.2 us for f64 64 x 64, 73 instead of 104 for 100 x 300. With k = 30 as much, f32 more.
GRAM = 48
#: Rows of a product are divided at multiples of so many, a multiple of what any routine of BLAS takes at once; and a
#: chunk has so many multiplications at least: OpenBLAS has other routines for small products (up to 10**6). So every
#: chunk of a product is computed as it is in the whole product.
ROWS, PIECE = 24, 2_000_000


def lower(lowering: Lowering, step: Step, reads: Sequence[int], writes: Sequence[int]) -> bool:
    """The code of a product, if BLAS computes it."""
    form = as_gemm(step.value)
    if form is None:
        return False
    product = _Product(lowering, step, form, reads, writes[0])
    if any(less(library().most, x) == 1 for x in (product.m, product.n, product.k)):
        return False
    for x in (product.m, product.n, product.k):
        lowering.code.refuse(less(library().most, x))
    product.emit()
    return True


class _Product:
    """Emits one step. Attributes are numbers of elements, which may be symbolic, and slots."""

    def __init__(self, lowering: Lowering, step: Step, form: Gemm, reads: Sequence[int], result: int):
        self.lowering, self.code, self.form = lowering, lowering.code, form
        self.dtype: np.dtype = step.value.dtype
        self.letter = RECORDS[self.dtype].blas
        self.batch, self.m, self.n, self.k = (lowering.number(s) for s in (form.batch, form.m, form.n, form.k))
        v = step.value
        self.given = parts(v, reads) if v.op is gemm else dict(zip("ab", reads, strict=True))
        self.in_place = "c" in self.given and step.reads[2] == step.writes[0]
        self.attrs = v.attrs if v.op is gemm else {"alpha": 1.0, "beta": 0.0}
        self.c = result

    # -- chunks

    def slot(self, *numbers: float) -> int:
        """The slot of the address of numbers."""
        return self.code.keep(np.array(numbers, self.dtype))

    def count(self, n: Size) -> int:
        """The slot of the address of an integer."""
        return self.lowering.integer(n)

    def own(self, name: str, *slots: int) -> None:
        """Call one of our own functions."""
        module = "mirror" if name == "mirror" else "blas_loops"
        self.code.call(routines.entry(module, f"{name}_{self.letter}"), slots)

    def call(self, routine: blas.Routine, slots: Mapping[str, int]) -> None:
        self.code.call(symbols.routine(routine.name), [self._argument(x, slots) for x in routine.arguments])

    def _argument(self, x: Size | str, slots: Mapping[str, int]) -> int:
        """The slot of an argument of BLAS: what is known here by name, a letter, or an integer."""
        if not isinstance(x, str):
            return self.lowering.integer(x, library().integer)
        return slots[x] if x in slots else self.lowering.literal(ord(x), np.uint8)

    def factor(self, name: str) -> int:
        """The slot of alpha or beta: a number, an operand, or their product."""
        number = self.attrs[name]
        if name not in self.given:
            return self.slot(number)
        if number == 1:
            return self.given[name]
        product = self.slot(0.0)
        self.own("scaled", product, self.given[name], self.slot(number), self.count(1))
        return product

    def scale(self, to: int, source: int, factor: int, n: Size) -> None:
        """``to = factor * source``, n elements."""
        if to == source:
            self.own("scale", to, factor, self.count(n))
        else:
            self.own("scaled", to, source, factor, self.count(n))

    # -- the step

    def emit(self) -> None:
        size = self.batch * self.m * self.n
        self.lowering.if_any(size, lambda: self._emit(size))

    def _emit(self, size: Size) -> None:
        beta = self._prepare(size)
        alpha = self.factor("alpha")
        self.lowering.choose(self.k, 1, lambda: self._of_nothing(size, beta), lambda: self._sum(size, alpha, beta))

    def _sum(self, size: Size, alpha: int, beta: float) -> None:
        """With terms, but where alpha is 0."""
        if "alpha" not in self.given:
            self._products(alpha, beta)
            return
        flag, zero, end = self.code.keep(np.zeros(1, np.int64)), Label(), Label()
        self.own("nonzero", flag, alpha)
        self.code.emit(Op.JUMP_IF_ZERO, flag, zero)
        self._products(alpha, beta)
        self.code.emit(Op.JUMP, end)
        self.code.place(zero)
        self._times_zero(size, alpha, beta)
        self.code.place(end)

    def _prepare(self, size: Size) -> float:
        """Put what is added where the result will be; what is left of beta for BLAS to multiply it by."""
        if "c" not in self.given:
            return 0.0
        source, plain = self.given["c"], "beta" not in self.given
        if self.in_place and plain:
            return self.attrs["beta"]
        if plain and self.attrs["beta"] == 1:
            self.code.emit(Op.COPY, self.c, source, size * self.dtype.itemsize)
        else:
            self.scale(self.c, self.c if self.in_place else source, self.factor("beta"), size)
        return 1.0

    @contextmanager
    def _each(self) -> Iterator[dict[str, int]]:
        """Loop over the matrices of the batch: the slots of a, b and c."""
        slots = {"a": self.given["a"], "b": self.given["b"], "c": self.c}
        if self.batch == 1:
            yield slots
            return
        steps = {"a": self.m * self.k, "b": self.k * self.n, "c": self.m * self.n}
        steps.pop(self.form.shared, None)
        moving = {x: self.code.slot() for x in steps}
        for x in moving:
            self.code.emit(Op.MOVE, moving[x], slots[x], 0)
        with self.lowering.repeat(self.batch):
            yield {**slots, **moving}
            for x in moving:
                self.code.emit(Op.MOVE, moving[x], moving[x], steps[x] * self.dtype.itemsize)

    def _products(self, alpha: int, beta: float) -> None:
        """Every product of the batch: by our own routines for small sizes and few rows, by half of a symmetric one, by
        BLAS."""
        if self.batch != 1 and small_products_ir.serves(self.letter, self.m, self.n, self.k):
            return self._small(alpha, beta)
        plain = self.batch == 1 and not (self.form.trans_a or self.form.trans_b)
        few = few_rows_ir.serves(self.letter, self.m, self.n, self.k) if plain else 0
        narrow = self.batch == 1 and not self.form.trans_a and not self.form.gram
        columns = few_columns_ir.serves(self.letter, self.m, self.n, self.k) if narrow else 0
        square = at_least(minimum(self.m, self.k), GRAM) if self.form.gram else 0
        self.lowering.where(few, lambda: self._few_rows(alpha, beta), lambda: self.lowering.where(
            columns, lambda: self._few_columns(alpha, beta), lambda: self.lowering.where(
                square, lambda: self._gram(alpha, beta), lambda: self._gemm(alpha, beta))))

    def _small(self, alpha: int, beta: float) -> None:
        how = "nt"[self.form.trans_a] + "nt"[self.form.trans_b]
        steps = [0 if self.form.shared == x else n for x, n in (("a", self.m * self.k), ("b", self.k * self.n))]
        name = f"product_{how}_{self.letter}_{self.m}_{self.n}_{self.k}"
        self.code.call(small_products_ir.entry(name), [
            self.given["a"], self.given["b"], self.c, alpha, self.slot(beta),
            *map(self.count, (self.batch, *steps))])

    def _few_rows(self, alpha: int, beta: float) -> None:
        sizes = [self.count(x) for x in (self.m, self.n, self.k)]
        arrays = [self.given["a"], self.given["b"], self.c]
        self.code.call(few_rows_ir.entry(f"few_rows_{self.letter}"), [*arrays, alpha, self.slot(beta), *sizes])

    def _few_columns(self, alpha: int, beta: float) -> None:
        steps = (1, self.k) if self.form.trans_b else (self.n, 1)
        sizes = [self.count(x) for x in (self.m, self.n, self.k, *steps)]
        arrays = [self.given["a"], self.given["b"], self.c]
        self.code.call(few_columns_ir.entry(f"few_columns_{self.letter}"), [*arrays, alpha, self.slot(beta), *sizes])

    def _gram(self, alpha: int, beta: float) -> None:
        self.code.limit_blas(self.m * self.n * self.k)
        with self._each() as slots:
            self.call(blas.gram(self.dtype, self.m, self.k, self.form.trans_a),
                      {**slots, "alpha": alpha, "beta": self.slot(beta)})
            self.own("mirror", slots["c"], self.count(self.n))

    def _gemm(self, alpha: int, beta: float) -> None:
        """Call of the routine for matrices, or those for vectors."""
        form, vector = self.form, partial(blas.gemv, self.dtype)
        self.code.limit_blas(self.m * self.n * self.k)
        self.lowering.choose(
            self.n, 2, lambda: self._whole(vector(self.m, self.k, form.trans_a, "a", "b"), alpha, beta),
            lambda: self.lowering.choose(
                self.m, 2, lambda: self._whole(vector(self.n, self.k, not form.trans_b, "b", "a"), alpha, beta),
                lambda: self._matrices(alpha, beta)))

    def _matrices(self, alpha: int, beta: float) -> None:
        routine = blas.product(self.dtype, self.m, self.n, self.k, self.form.trans_a, self.form.trans_b)
        whole, end = Label(), Label()
        if self._in_chunks(routine, alpha, beta, whole):
            self.code.emit(Op.JUMP, end)
        self.code.place(whole)
        self._whole(routine, alpha, beta)
        self.code.place(end)

    def _whole(self, routine: blas.Routine, alpha: int, beta: float) -> None:
        """Product by one thread."""
        with self._each() as slots:
            self.call(routine, {**slots, "alpha": alpha, "beta": self.slot(beta)})

    def _in_chunks(self, routine: blas.Routine, alpha: int, beta: float, alone: Label) -> bool:
        """Divided among threads: the batch, or the rows of one product. False if that is never worth it; where it is
        not, or if there is but one thread, it jumps to ``alone``."""
        rows = self.batch == 1
        each = self.m * self.n * self.k
        grain = -(-PIECE // maximum(1, self.n * self.k * ROWS)) * ROWS if rows else 1
        units = self.m if rows else self.batch
        worth = both(at_least(each * self.batch, math.ceil(WORTH / MULTIPLY)), at_least(units, 2 * grain))
        if worth == 0:
            return False
        whole = {"a": self.m * self.k, "b": self.k * self.n, "c": self.m * self.n}
        row = {"a": 1 if self.form.trans_a else self.k, "b": 0, "c": self.n}
        if not rows and self.form.shared:
            whole[self.form.shared] = 0
        steps = [n * self.dtype.itemsize for n in (row if rows else whole).values()]
        slots = {"a": self.given["a"], "b": self.given["b"], "c": self.c, "alpha": alpha, "beta": self.slot(beta)}
        arguments = [self._argument(x, slots) for x in routine.arguments]
        self.code.emit(Op.JUMP_IF_LESS, Word.THREADS, 2, alone)
        if worth != 1:
            self.code.emit(Op.JUMP_IF_LESS, self.code.number(worth), 1, alone)
        self.code.product(symbols.routine(routine.name), steps, arguments, units, grain, rows, worth)
        return True

    def _of_nothing(self, size: Size, beta: float) -> None:
        """Sums of no terms are 0, whatever alpha is."""
        if "c" not in self.given:
            self.code.emit(Op.CLEAR, self.c, size * self.dtype.itemsize)
        elif beta != 1:
            self.scale(self.c, self.c, self.slot(beta), size)

    def _times_zero(self, size: Size, alpha: int, beta: float) -> None:
        """alpha is 0: 0 times what is not finite is nan. The product is made by rows, in memory for one row."""
        if "c" not in self.given:
            self._products(self.slot(1.0), 0.0)
            self.scale(self.c, self.c, alpha, size)
            return
        if beta != 1:
            self.scale(self.c, self.c, self.slot(beta), size)
        self.lowering.choose(self.n, 2, lambda: self._rows_of_zero(alpha, True),
                             lambda: self._rows_of_zero(alpha, False))

    def _rows_of_zero(self, alpha: int, whole: bool) -> None:
        """``whole``: a matrix times a vector, which is one row."""
        form, code = self.form, self.code
        length, rows = (self.m, 1) if whole else (self.n, self.m)
        step = self.m if form.trans_a and not whole else 1
        row = self.lowering.workspace(length * self.dtype.itemsize)
        if whole:
            make = blas.gemv(self.dtype, self.m, self.k, form.trans_a, "a", "b")
        else:
            make = blas.gemv(self.dtype, self.n, self.k, not form.trans_b, "b", "a", step)
        one, zero = self.slot(1.0), self.slot(0.0)
        with self._each() as slots:
            a, c = code.slot(), code.slot()
            code.emit(Op.MOVE, a, slots["a"], 0)
            code.emit(Op.MOVE, c, slots["c"], 0)
            with self.lowering.repeat(rows):
                self.call(make, {"a": a, "b": slots["b"], "c": row, "alpha": one, "beta": zero})
                self.scale(row, row, alpha, length)
                self.call(blas.add(self.dtype, length), {"a": row, "c": c, "alpha": one})
                code.emit(Op.MOVE, a, a, (1 if form.trans_a else self.k) * self.dtype.itemsize)
                code.emit(Op.MOVE, c, c, length * self.dtype.itemsize)
