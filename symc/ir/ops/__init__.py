"""All op records. Importing this package registers every one of them; each family is one file."""

from symc.ir.op import seal
from symc.ir.ops import (
    arithmetic,
    assume,
    bessel,
    cached,
    call,
    cast,
    collective,
    compare,
    control,
    conv,
    cumulative,
    determinant,
    effect,
    factor,
    fourier,
    gemm,
    grad_control,
    hypergeometric,
    implicit,
    index,
    kernel,
    leaf,
    linalg,
    logic,
    loop,
    math,
    matrix_functions,
    places,
    pool,
    put,
    random,
    reduce,
    remat,
    search,
    shape,
    softmax,
    solve,
    sort,
    sparse,
    special,
    spectral,
    windows,
)

#: The families, in the order in which the documentation shows them.
FAMILIES = (leaf, cast, compare, logic, arithmetic, math, grad_control, shape, cumulative, reduce, softmax, linalg,
            gemm, windows, conv, pool, factor, solve, determinant, spectral, matrix_functions, fourier, index,
            sort, search, places, random, special, bessel, hypergeometric,
            control, call, remat, cached, implicit, effect, collective, assume, kernel, sparse, put, loop)

seal()

__all__ = ["FAMILIES", "arithmetic", "assume", "bessel", "cached", "call", "cast", "collective", "compare", "control",
           "conv", "cumulative", "determinant", "effect", "factor", "fourier", "gemm", "grad_control", "hypergeometric",
           "implicit", "index", "kernel", "leaf", "linalg", "logic", "loop", "math", "matrix_functions", "places",
           "pool", "put", "random", "reduce", "remat", "search", "shape", "softmax", "solve", "sort", "sparse",
           "special", "spectral", "windows"]
