"""Products with sparse matrices: symc and scipy.sparse, alternating, best of some.

    python benchmarks/sparse_products.py
"""

import time

import numpy as np
import scipy.sparse as sp

import symc as sc


def best(functions, args, seconds=1.0):
    """The least time of each function, in us, and how often each ran; they take turns."""
    times = [[] for _ in functions]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for kept, (f, a) in zip(times, zip(functions, args)):
            start = time.perf_counter()
            f(*a)
            kept.append(time.perf_counter() - start)
    return [min(t) * 1e6 for t in times]


def main():
    rng = np.random.default_rng(0)
    print(f"{'':34}{'symc us':>10}{'arrays us':>10}{'scipy us':>10}{'ratio':>7}")
    for n, per_row in ((1_000, 10), (20_000, 10), (100_000, 30), (200_000, 5)):
        m = sp.random_array((n, n), density=per_row / n, format="csr", rng=rng)
        for bits in (32, 64):
            m.indptr, m.indices = m.indptr.astype(f"int{bits}"), m.indices.astype(f"int{bits}")
            a = sc.sparse.input("a", index_dtype=f"int{bits}")
            for k in (None, 4, 16, 64):
                if k and n * k > 4_000_000:
                    continue
                x = sc.input("x", "float64", ("m",) if k is None else ("m", "k"))
                dense = rng.normal(size=n if k is None else (n, k))
                f = sc.compile(a @ x, [a, x])
                g = sc.compile(a @ x, [a.indptr, a.indices, a.data, a.extent, x])
                arrays = (m.indptr, m.indices, m.data, np.empty((n, n, 0), bool), dense)
                assert np.allclose(f(m, dense), m @ dense)
                ours, raw, theirs = best([f, g, lambda m, d: m @ d], [(m, dense), arrays, (m, dense)])
                label = f"n={n} nnz={m.nnz} i{bits} {'vector' if k is None else f'{k} columns'}"
                print(f"{label:34}{ours:10.1f}{raw:10.1f}{theirs:10.1f}{theirs / ours:7.2f}", flush=True)


if __name__ == "__main__":
    main()
