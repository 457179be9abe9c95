"""Chunks of products, for several threads: some rows of one product, or some products of a batch.

Both functions take the address of words: the range of rows or products, the address of a routine of BLAS, how many
bytes a row or matrix has in a, b and c, the arguments of the routine. All these are addresses; matrices are row-major,
which BLAS sees as their transposes, so the rows of our result are BLAS's columns, each of which it computes alike
whichever others there are.
"""

from __future__ import annotations

from typing import Any

from symc.runtime.cpu.native.loops import loop

#: Where the routine is among the words, how long units are in a, b and c, and where the routine's arguments begin.
ROUTINE, STEPS, ARGUMENTS = 2, {"a": 3, "b": 4, "c": 5}, 6
#: Which arguments of the routine are the matrices, and the number of rows of the result.
PLACES, ROWS, COUNT = {"a": 8, "b": 6, "c": 11}, 3, 13


def write(module: Any, ir: Any) -> None:
    """Write the functions of rows and of matrices."""
    i64 = ir.IntType(64)
    word = i64.as_pointer()
    routine = ir.FunctionType(ir.VoidType(), [word] * COUNT).as_pointer()

    def begin(name: str) -> tuple[Any, Any]:
        f = ir.Function(module, ir.FunctionType(ir.VoidType(), [word]), name)
        return f, ir.IRBuilder(f.append_basic_block("entry"))

    def load(b: Any, words: Any, k: int) -> Any:
        return b.load(b.gep(words, [ir.Constant(i64, k)], source_etype=i64), typ=i64)

    def call(b: Any, words: Any, unit: Any, moved: str, rows: Any = None) -> None:
        """Call the routine for a unit, or for ``rows`` from it on."""
        arguments = [load(b, words, ARGUMENTS + k) for k in range(COUNT)]
        for x in moved:
            arguments[PLACES[x]] = b.add(arguments[PLACES[x]], b.mul(unit, load(b, words, STEPS[x])))
        pointers = [b.inttoptr(x, word) for x in arguments]
        if rows is not None:
            pointers[ROWS] = rows
        b.call(b.inttoptr(load(b, words, ROUTINE), routine), pointers)

    of_rows, b = begin("symc_rows_of_product")
    words = of_rows.args[0]
    first, number = load(b, words, 0), b.alloca(i64)
    b.store(b.sub(load(b, words, 1), first), number)  # a library whose integers have 32 bits reads the lower half
    call(b, words, first, "ac", number)
    b.ret_void()

    of_matrices, b = begin("symc_products_of_batch")
    words = of_matrices.args[0]
    loop(b, load(b, words, 0), load(b, words, 1), lambda unit: call(b, words, unit, "abc"))
    b.ret_void()
