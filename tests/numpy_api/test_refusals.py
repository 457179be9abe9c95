"""What NumPy refuses for the shape of an array is refused where sizes are unknown while the graph is built, too.

Programs of unknown sizes are called with arrays of many shapes. Where NumPy has an answer, it is that or an error, as
sizes of 1 are stretched only where they are declared; where NumPy raises, there is an error: never numbers.
"""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import symc as sc

ONE = """
x[2]
x[-3]
x[1:3]
x[::2]
x[[0, 2]]
x[np.array([-1, 1])]
x.reshape(3, -1)
np.reshape(x, (2, 2))
np.reshape(x, (-1, 2))
np.split(x, 2)[0]
np.split(x, [1, 3])[1]
np.array_split(x, 3)[1]
np.max(x)
np.max(x, axis=0)
np.min(x, axis=-1)
np.argmax(x)
np.argmin(x, axis=0)
np.mean(x)
np.median(x)
np.median(x, axis=0)
np.quantile(x, 0.5)
np.nanmax(x)
np.nanmedian(x)
np.nanargmax(x)
np.ptp(x)
np.std(x, ddof=1)
np.var(x, axis=0)
np.gradient(x) if x.ndim==1 else np.gradient(x)[0]
np.gradient(x, edge_order=2) if x.ndim==1 else np.gradient(x, edge_order=2)[0]
np.diff(x, n=2)
np.partition(x, 2)
np.argpartition(x, 1, axis=0)
np.squeeze(x, axis=0)
np.take(x, 3)
np.take(x, 2, axis=0)
np.delete(x, 1)
np.delete(x, [0, 2], axis=0)
np.insert(x, 2, 0.5)
np.insert(x, -2, 0.5, axis=0)
np.pad(x, 2, mode='reflect')
np.pad(x, 1, mode='edge')
np.pad(x, 2, mode='symmetric')
np.pad(x, 2, mode='wrap')
np.pad(x, 1, mode='linear_ramp')
np.pad(x, 1, mode='mean')
np.fft.fft(x)
np.fft.rfft(x)
np.fft.irfft(x)
np.fft.fft(x, axis=0)
np.linalg.inv(x)
np.linalg.det(x)
np.linalg.eigvalsh(x+x.T)
np.linalg.svd(x)[1]
np.linalg.qr(x)[1]
np.linalg.pinv(x)
np.linalg.norm(x)
np.linalg.norm(x, ord=2)
np.linalg.norm(x, ord=np.inf)
np.linalg.norm(x, axis=0)
np.linalg.matrix_power(x, 2)
np.linalg.matrix_rank(x)
np.linalg.cond(x)
np.linalg.slogdet(x)[1]
np.trace(x)
np.diag(x)
np.diagonal(x, 1)
np.vander(x, 3)
np.convolve(x, [1.0, 2.0])
np.convolve(x, [1.0, 2.0, 1.0], 'valid')
np.convolve(x, [1.0, 2.0, 1.0], 'same')
np.correlate(x, [1.0, 2.0, 1.0])
np.histogram(x, bins=3)[0]
np.histogram(x, bins=3)[1]
np.bincount(np.where(x>0, 1, 0))
np.cumsum(x, axis=0)
np.cumprod(x)
np.maximum.accumulate(x)
np.maximum.reduce(x)
np.add.reduceat(x, [0, 2])
np.add.reduce(x)
np.sort(x, axis=0)
np.argsort(x)
np.flip(x, 1)
np.fliplr(x)
np.rot90(x)
np.rollaxis(x, 1)
np.swapaxes(x, 0, 1)
np.moveaxis(x, 0, -1)
np.expand_dims(x, 2)
np.tile(x, 2)
np.repeat(x, [1, 2, 1], axis=0)
np.repeat(x, 3)
np.trapezoid(x)
np.interp(0.3, np.arange(3.0), x)
np.interp(x, [0.0, 1.0], [1.0, 2.0])
np.searchsorted([0.0, 1.0], x)
np.digitize(x, [0.0, 1.0])
np.triu(x)
np.kron(x, x)
np.outer(x, x)
np.dot(x, x)
np.inner(x, x)
np.einsum('ii', x)
np.einsum('ii->i', x)
np.einsum('ij,jk', x, x)
np.tensordot(x, x, 1)
np.tensordot(x, x, ([0], [0]))
x@x
np.block([[x, x]])
np.hstack([x, np.ones(2)])
np.vstack([x, np.ones(3)])
np.concatenate([x, np.ones((2, 3))])
np.column_stack([x, np.ones(3)])
np.stack([x, np.ones(3)])
np.append(x, np.ones((1, 3)), axis=0)
np.where(np.array([True, False, True]), x, 0.0)
np.compress([True, False, True], x, axis=0)
x[np.array([True, False, True])]
x+np.ones(3)
x*np.ones((2, 1))
np.broadcast_to(x, (2, 3))
np.atleast_2d(x)[0]
np.average(x, weights=[1.0, 2.0, 3.0])
np.average(x, axis=0, weights=[1.0, 2.0, 3.0])
np.percentile(x, [10, 50], axis=0)
np.nanquantile(x, 0.2, axis=0)
np.polyder(x)
np.polyint(x)
np.polyfit(np.arange(3.0), x, 1)
np.polymul(x, [1.0, 2.0])
np.ediff1d(x)
np.unwrap(x)
np.nan_to_num(x)
np.lexsort((x, x))
np.choose(np.where(x>0, 1, 0), [0.0, 1.0])
np.logical_and.reduce(x>0)
np.count_nonzero(x>0, axis=0)
np.array_equal(x, np.ones(3))
np.allclose(x, np.ones(3))
np.isclose(x, np.ones(3))
np.sinc(x)
np.i0(x)
np.vecdot(x, np.ones(3))
np.linalg.solve(x, np.ones(3))
np.linalg.solve(x, np.ones((3, 2)))
np.linalg.lstsq(x, np.ones(3))[0]
np.linalg.tensorinv(x)
np.linalg.eigh(x+x.T)[0]
np.lib.stride_tricks.sliding_window_view(x, 3)
np.lib.stride_tricks.sliding_window_view(x, 2, axis=0)
np.take_along_axis(x, np.zeros((2, 1), int), axis=1)
np.roll(x, 5)
np.resize(x, (3, 3))
np.hsplit(x, 2)[1]
np.vsplit(x, 2)[1]
np.dsplit(x, 2)[1]
np.diagflat(x)
x.T
x.flatten()
x.cumsum(1)
x.sum((0, 1))
x.max(initial=0.0)
x.trace()
x.argmax(1)
x[..., 1]
x[:, 1]
x[:, None, 2]
x[1, -1]
x[0:1, 1:2]
x[-2:]
x[5:]
x[::-1][1]
np.ldexp(x, np.array([1, 2, 3]))
np.fft.fft2(x)
np.fft.ifft(x, 4)
np.fft.fftshift(x)
np.nanstd(x, axis=0)
np.bitwise_count(np.where(x>0, 3, 4))
np.size(x, 1)
np.permute_dims(x, (1, 0))
np.flipud(x)
np.geomspace(1, 2, 3)*x
np.linspace(x, x+1, 3)
np.piecewise(x, [x>0, x<0], [1.0, 2.0])
np.clip(x, [0.0, 0.1, 0.2], None)
np.heaviside(x, [0.0, 1.0, 2.0])
""".strip().split("\n")
TWO = """
np.broadcast_arrays(x, y)[0]
np.add(x, y)
np.arctan2(x, y)
np.dot(x, y)
np.vdot(x, y)
np.inner(x, y)
np.outer(x, y)
np.matmul(x, y)
np.kron(x, y)
np.convolve(x, y)
np.correlate(x, y)
np.isin(x, y)
np.searchsorted(np.sort(y), x)
np.take(x, np.where(y>9, 1, 0), axis=0)
np.select([x>0, y>0], [x, y], 0.0)
np.where(x>0, x, y)
np.take_along_axis(x, np.where(y>9, 1, 0), axis=-1)
np.append(x, y, axis=0)
np.concatenate([x, y])
np.stack([x, y])
np.vstack([x, y])
np.hstack([x, y])
np.column_stack([x, y])
np.dstack([x, y])
np.polymul(x, y)
np.trapezoid(x, y)
np.histogram(x, bins=3, range=(-1, 1), weights=y)[0]
np.bincount(np.where(x>0, 1, 0), weights=y, minlength=3)
np.digitize(x, np.sort(y))
np.lexsort((x, y))
np.allclose(x, y)
np.array_equal(x, y)
np.tensordot(x, y, axes=1)
np.einsum('...i,...i', x, y)
np.einsum('i,i', x, y) if x.ndim==1 else np.einsum('ij,ij->i', x, y)
np.choose(np.where(x>0, 1, 0), [x, y])
np.block([[x, y]])
np.linalg.solve(x, y)
np.ldexp(x, np.where(y>0, 1, 2))
np.heaviside(x, y)
np.hypot(x, y)
np.copysign(x, y)
np.fmax(x, y)
np.logaddexp(x, y)
np.gcd(np.where(x>0, 4, 6), np.where(y>0, 2, 3))
np.vecdot(x, y)
np.piecewise(x, [y>0], [1.0, 2.0])
np.insert(x, 1, y, axis=0)
np.gradient(x, y)
np.diff(x, prepend=y, axis=0)
np.clip(x, -1, y)
np.sum(np.repeat(x, np.where(y>0, 1, 2), axis=0))
np.meshgrid(x, y)[0]
x[np.where(y>9, 1, 0)]
np.polyfit(x, y, 1)
np.histogram2d(x, y, bins=2, range=((-1, 1), (-1, 1)))[0]
np.interp(0.5, x, y)
np.sum(x, where=y>0)
np.mean(x, where=y>-9)
np.max(x, where=y>0, initial=0.0)
np.var(x, where=y>-9)
np.linalg.multi_dot([x, y, x])
np.broadcast_arrays(x, y)[1]
""".strip().split("\n")
SHAPES = [(0,), (1,), (2,), (3,), (4,), (0, 3), (3, 1), (2, 3), (3, 3), (4, 3), (1, 2, 2)]
PAIRS = [(3,), (4,), (1,), (0,), (3, 4), (3, 3), (2, 4), (1, 4), (3, 1), (4, 3)]


def compiled(text: str, *ranks: int) -> Callable[..., np.ndarray] | None:
    """The program as a function of arrays of so many axes; None if it is refused for these at once."""
    args = [sc.input(name, "float64", tuple(f"{name}{i}" for i in range(rank)))
            for name, rank in zip("xy", ranks, strict=False)]
    try:
        return sc.compile(eval(text, {"np": np, **dict(zip("xy", args, strict=False))}), args, mode="reference")
    except (sc.SymcError, TypeError, IndexError):
        return None


def of_numpy(text: str, *arrays: np.ndarray) -> np.ndarray | None:
    try:
        return np.asarray(eval(text, {"np": np, **dict(zip("xy", arrays, strict=False))}))
    except (ValueError, IndexError, TypeError, np.linalg.LinAlgError):
        return None


def compare(text: str, shapes: list[tuple[tuple[int, ...], ...]]) -> None:
    rng = np.random.default_rng(0)
    functions: dict[tuple[int, ...], Callable[..., np.ndarray] | None] = {}
    agreed = 0
    for several in shapes:
        ranks = tuple(map(len, several))
        if ranks not in functions:
            functions[ranks] = compiled(text, *ranks)
        if (f := functions[ranks]) is None:
            continue
        arrays = [rng.normal(size=shape) for shape in several]
        try:
            got = f(*arrays)
        except sc.SymcError:
            continue
        want = of_numpy(text, *arrays)
        assert want is not None, f"{several}: NumPy raises, not so {got!r}"
        assert got.shape == want.shape, several
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9, err_msg=str(several))
        agreed += 1
    assert agreed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", ONE)
def test_one_array(text: str) -> None:
    compare(text, [(shape,) for shape in SHAPES])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", TWO)
def test_two_arrays(text: str) -> None:
    compare(text, list(itertools.product(PAIRS, PAIRS)))


@pytest.mark.parametrize(("fn", "least"), [
    (lambda x: sc.topk(x, 3)[0], 3), (lambda x: sc.topk(x, 200)[0], 200), (lambda x: x.at[4].set(1.0), 5),
    (lambda x: x.at[-4].add(1.0), 4), (lambda x: np.partition(x, [1, -3]), 3),
    (lambda x: sc.dynamic_slice(x, [0], [3]), 3), (lambda x: np.polyfit(x, x, 1, cov=True)[0], 3),
    (lambda x: sc.linalg.companion(x), 2), (lambda x: sc.random.choice(sc.random.key(0), x, (3,)), 1),
], ids=["topk", "topk of many", "at", "at from the end", "partition", "window", "polyfit", "companion", "choice"])
def test_sizes_at_least(fn: Callable, least: int) -> None:
    f = sc.compile(fn(sc.vector("x")), mode="reference")
    assert len(f(np.arange(float(least)))) in (least - 1, least, 3)
    with pytest.raises(sc.ShapeError, match=f"at least {least}"):
        f(np.ones(least - 1))
    with pytest.raises((sc.ShapeError, sc.IndexingError, sc.InputError)):
        fn(sc.input("x", "float64", (least - 1,)))


def test_as_many_probabilities_as_elements() -> None:
    f = sc.compile(sc.random.choice(sc.random.key(0), sc.vector("x"), (2,), p=sc.vector("p")), mode="reference")
    assert f(np.ones(2), np.full(2, 0.5)).shape == (2,)
    with pytest.raises(sc.ShapeError, match="must equal"):
        f(np.ones(2), np.full(4, 0.25))


def test_matrices_have_two_axes() -> None:
    x, v = sc.matrix("x"), sc.vector("v")
    for call in (lambda: sc.matvec(v, v), lambda: sc.vecmat(v, v), lambda: np.linalg.multi_dot([x, v, x])):
        with pytest.raises(sc.ShapeError, match=r"axes|shapes"):
            call()
