"""Products of arrays against NumPy: dot, matmul, einsum, tensordot and their relatives; norms."""

import numpy as np
import pytest

from tests.numpy_api.numpy_compare import check

A1 = np.array([3.0, -1.0, 2.5, 0.5, -2.0])
A2 = np.array([[1.0, -2.0, 3.0, 0.5], [0.0, 4.0, -1.5, 2.0], [2.5, 1.0, -3.0, 1.5]])
A3 = np.arange(24.0).reshape(2, 3, 4) * 0.5 - 5
C2 = A2 + 1j * A2[::-1]
I2 = np.array([[3, -1, 2], [5, 0, -4]])

RNG = np.random.default_rng(0)


def _normal(*shape):
    return RNG.normal(size=shape)


PRODUCTS = [
    (np.dot, (4,), (4,)),
    (np.dot, (3, 4), (4,)),
    (np.dot, (3, 4), (4, 2)),
    (np.dot, (2, 3, 4), (4, 5)),
    (np.dot, (2, 3, 4), (5, 4, 2)),
    (np.dot, (), (3,)),
    (np.dot, (3, 2), ()),
    (np.dot, (4,), (2, 4, 3)),
    (np.inner, (4,), (4,)),
    (np.inner, (2, 4), (3, 4)),
    (np.inner, (), (3,)),
    (np.outer, (2, 2), (3,)),
    (np.outer, (), (3,)),
    (np.matmul, (4,), (4,)),
    (np.matmul, (3, 4), (4,)),
    (np.matmul, (4,), (4, 2)),
    (np.matmul, (2, 3, 4), (4, 5)),
    (np.matmul, (3, 4), (2, 4, 5)),
    (np.matmul, (2, 3, 4), (2, 4, 5)),
    (np.matmul, (1, 3, 4), (2, 4, 5)),
    (np.matmul, (5, 1, 3, 4), (2, 4, 1)),
    (np.matmul, (2, 3, 1), (1, 2)),
    (np.matmul, (2, 0), (0, 3)),
    (np.kron, (2, 3), (3, 2)),
    (np.kron, (2,), (2, 3)),
    (np.kron, (), (3,)),
    (np.kron, (2, 2), ()),
    (np.vdot, (2, 3), (2, 3)),
    (np.tensordot, (3, 4, 2), (4, 2, 5)),
    (np.cross, (3,), (3,)),
    (np.cross, (4, 3), (3,)),
    (np.vecdot, (2, 3), (3,)),
    (lambda a, b: np.tensordot(a, b, axes=1), (2, 3), (3, 4)),
    (lambda a, b: np.tensordot(a, b, axes=0), (2,), (3,)),
    (lambda a, b: np.tensordot(a, b, axes=((1,), (0,))), (2, 3), (3, 4)),
    (lambda a, b: np.tensordot(a, b, [[-1], [0]]), (2, 3), (3, 4)),
    (lambda a, b: np.tensordot(a, b, [-1, 0]), (2, 3), (3, 4)),
    (lambda a, b: np.tensordot(a, b, (0, 1)), (3, 2), (4, 3)),
    (lambda a, b: np.tensordot(a, b, 2), (2, 3, 4), (3, 4, 5)),
    (lambda a, b: np.cross(a, b, axis=0), (3, 4), (3, 4)),
    (lambda a, b: np.cross(a, b, axisa=0, axisb=1, axisc=0), (3, 4), (4, 3)),
    (lambda a, b: np.einsum("ij,jk->ik", a, b), (2, 3), (3, 4)),
    (lambda a, b: np.einsum("...ij,...jk->...ik", a, b), (5, 2, 3), (5, 3, 4)),
    (lambda a, b: np.einsum("...ij,...jk->...ik", a, b), (0, 2, 3), (0, 3, 4)),
    (lambda a, b: np.einsum("...jk,...lj->...lk", a, b), (2, 3, 4), (2, 5, 3)),
    (lambda a, b: np.einsum("...,...->...", a, b), (2, 3), (3,)),
    (lambda a, b: np.einsum("jk...,lj...->lk...", a, b), (2, 3, 4), (5, 2, 4)),
    (lambda a, b: np.einsum("j...k,lj...->lk...", a, b), (2, 4, 3), (5, 2, 4)),
    (lambda a, b: np.einsum("ijk,lji->lki", a, b), (2, 3, 4), (5, 3, 2)),
    (lambda a, b: np.einsum("k,nk->", a, b), (3,), (2, 3)),
    (lambda a, b: np.einsum("...k,...nk->...", a, b), (2, 3), (2, 4, 3)),
    (lambda a, b: np.einsum("ij,k", a, b), (2, 3), (4,)),
    (lambda a, b: np.einsum("ij,jk,lli->lki", a, b, A3[:, :2, :2]), (2, 3), (3, 4)),
    (lambda a, b: np.einsum(a, (0, 1), b, (1, 2), (0, 2)), (2, 3), (3, 4)),
    (lambda a, b: np.einsum(a, (Ellipsis, 0, 1), b, (Ellipsis, 1, 2), [Ellipsis, 0, 2]), (2, 2, 3), (2, 3, 4)),
    (lambda a, b: np.einsum("ij,ij->ij", a, b), (2, 3), (2, 1)),
    (lambda a, b: np.einsum("ij,jk,kl,lm->im", a, b, b.T, b), (2, 3), (3, 4)),
    (lambda a, b: np.einsum("i,i,i->", a, b, b), (3,), (3,)),
    (lambda a, b: np.linalg.multi_dot([a, b, b.T, b]), (2, 3), (3, 4)),
    (np.cov, (3, 6), (2, 6)),
    (np.convolve, (5,), (3,)),
    (lambda a, b: np.convolve(a, b, "same"), (6,), (3,)),
    (lambda a, b: np.convolve(a, b, "valid"), (3,), (6,)),
    (np.matvec, (2, 3, 4), (4,)),
    (np.vecmat, (3,), (2, 3, 4)),
]


@pytest.mark.parametrize("k", range(len(PRODUCTS)))
def test_products(k):
    fn, s, t = PRODUCTS[k]
    a, b = _normal(*s), _normal(*t)
    check(fn, a, b, rtol=1e-11, atol=1e-14)
    check(lambda x: fn(x, b), a, rtol=1e-11, atol=1e-14)
    check(lambda y: fn(a, y), b, rtol=1e-11, atol=1e-14)
    if fn not in (np.cov, np.convolve):
        check(fn, a + 1j, b - 2j * b, rtol=1e-10, atol=1e-13)
    check(fn, a.astype("f4"), b, rtol=1e-5, atol=1e-6)


def test_single_operand_einsum():
    for text in ("ij->ji", "ij", "ji", "ij->", "ii->i", "ii", "...i->i..."):
        check(lambda a, text=text: np.einsum(text, a), _normal(3, 3))
    check(lambda a: np.einsum("abcd->bd", a), _normal(2, 3, 4, 2))
    check(lambda a: np.einsum(a, (3, 3, 0)), _normal(2, 2, 3))
    check(lambda a: np.einsum("iij->j", a), _normal(2, 2, 3))


def test_integer_and_bool_products():
    check(np.matmul, I2, I2.T)
    check(np.matmul, I2 > 0, I2.T > 0)
    check(np.dot, I2.astype("i1"), I2.T.astype("i1"))


@pytest.mark.parametrize("ord", [None, 1, 2, 3, 0.5, 0, np.inf, -np.inf, -1])
def test_vector_norms(ord):
    check(lambda a: np.linalg.norm(a, ord), A1)
    check(lambda a: np.linalg.norm(a, ord, axis=1), A2)
    check(lambda a: np.linalg.norm(a, ord, axis=0, keepdims=True), C2)


def test_other_norms():
    for ord in (None, "fro", 1, -1, np.inf, -np.inf):
        check(lambda a, ord=ord: np.linalg.norm(a, ord, axis=(0, 1)), A2)
        check(lambda a, ord=ord: np.linalg.norm(a, ord, axis=(2, 0), keepdims=True), A3)
    check(np.linalg.norm, A3)
    check(np.linalg.norm, I2)
    check(lambda a: np.linalg.vector_norm(a, axis=(0, 2), ord=1), A3)
    check(np.linalg.matrix_norm, A3)
    check(lambda a: np.linalg.matrix_power(a, 5), _normal(3, 3))
    check(lambda a: np.linalg.matrix_power(a, 0), _normal(3, 3))
    check(np.linalg.matrix_transpose, A3)
