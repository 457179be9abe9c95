"""The binding of NCCL, against a library with the same functions, written in C and compiled here: one rank, whose
memory is the host's."""

from __future__ import annotations

import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from symc.errors import DTypeError, InputError, InternalError
from symc.runtime.cuda import libraries, nccl

STAND_IN = r"""
#include <cstring>
#include <cstdlib>
struct Comm { int rank, size, device; };
static const size_t WIDTH[] = {1, 1, 4, 4, 8, 8, 2, 4, 8};
extern "C" {
int type, op;
size_t count;
void *stream;
const char *ncclGetErrorString(int r) { return r == 4 ? "invalid argument" : "?"; }
int ncclCommInitAll(Comm **c, int n, const int *devices) {
  for (int k = 0; k < n; k++) c[k] = new Comm{k, n, devices[k]};
  return 0;
}
int ncclCommDestroy(Comm *c) { delete c; return 0; }
static int done(const void *from, void *to, size_t n, int t, void *s) {
  memmove(to, from, n * WIDTH[t]), count = n, type = t, stream = s;
  return 0;
}
int ncclAllReduce(const void *from, void *to, size_t n, int t, int o, Comm *c, void *s) {
  op = o;
  return c->size == 1 ? done(from, to, n, t, s) : 4;
}
}
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("the stand-in for NCCL is compiled with g++")
    folder = tmp_path_factory.mktemp("nvidia")
    (folder / "stand_in.cpp").write_text(STAND_IN)
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", "libnccl.so.2", "stand_in.cpp"], check=True, cwd=folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(libraries, "folders", lambda *_: iter([str(folder)]))
        nccl.library.cache_clear()
        yield nccl.library()
    nccl.library.cache_clear()


def noted(functions, *names: str) -> list[int]:
    return [nccl.ctypes.c_int.in_dll(functions, n).value for n in names]


STREAM = SimpleNamespace(handle=1234)


@pytest.fixture
def rank(functions):
    (made,) = nccl.communicators([0])
    yield made
    made.close()


@pytest.mark.parametrize(("dtype", "kind", "want"), [
    ("float32", "add", (7, 0, 6)), ("float64", "maximum", (8, 2, 6)), ("float16", "minimum", (6, 3, 6)),
    ("int32", "add", (2, 0, 6)), ("int64", "maximum", (4, 2, 6)), ("uint8", "add", (1, 0, 6)),
    ("uint64", "minimum", (5, 3, 6)), ("complex64", "add", (7, 0, 12)), ("complex128", "add", (8, 0, 12))])
def test_all_reduce(functions, rank, dtype, kind, want):
    x, y = np.arange(6).astype(dtype), np.zeros(6, dtype)
    rank.all_reduce(y.ctypes.data, x.ctypes.data, 6, x.dtype, kind, STREAM)
    np.testing.assert_array_equal(y, x)
    assert tuple(noted(functions, "type", "op", "count")) == want
    assert nccl.ctypes.c_void_p.in_dll(functions, "stream").value == 1234


def test_what_cannot_be_reduced(rank):
    with pytest.raises(DTypeError, match="int16"):
        rank.all_reduce(0, 0, 1, np.dtype("int16"), "add", STREAM)
    with pytest.raises(DTypeError, match="bool"):
        rank.all_reduce(0, 0, 1, np.dtype("bool"), "add", STREAM)
    with pytest.raises(DTypeError, match="complex"):
        rank.all_reduce(0, 0, 1, np.dtype("complex64"), "maximum", STREAM)


def test_ranks(functions):
    found = nccl.communicators([3, 1])
    assert [(r.rank, r.size) for r in found] == [(0, 2), (1, 2)]
    x = np.zeros(4)
    with pytest.raises(InternalError, match="ncclAllReduce: invalid argument"):
        found[1].all_reduce(x.ctypes.data, x.ctypes.data, 4, x.dtype, "add", STREAM)
    for r in found:
        r.close()


def test_a_rank_is_called_where_its_device_is_the_current_one(functions, rank):
    seen = []

    class Here:
        def __enter__(self):
            seen.append("in")

        def __exit__(self, *error):
            seen.append("out")

    rank.here, rank.count = Here(), seen.append
    x, y = np.arange(6.0), np.zeros(6)
    rank.all_reduce(y.ctypes.data, x.ctypes.data, 6, x.dtype, "add", STREAM)
    np.testing.assert_array_equal(y, x)
    assert (rank.rank, rank.size) == (0, 1) and seen == ["in", "out", "library_calls"]


def test_without_nccl_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(libraries, "folders", lambda *_: iter(()))
    monkeypatch.setattr(libraries.ctypes, "CDLL", _refuse)
    with pytest.raises(InputError, match="NCCL, by which GPUs talk to each other, is not found") as caught:
        libraries.load(libraries.NCCL)
    assert "nvidia-nccl-cu13" in str(caught.value)


def _refuse(name):
    raise OSError(name)
