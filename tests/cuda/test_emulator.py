"""The emulated device finds what is wrong with a kernel, and nothing is wrong with those that are right."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from symc.errors import InternalError
from symc.runtime.emulator import BACKWARD, FORWARD, EmulationError, build, native
from tests.cuda.emulated import needs_compiler, run
from tests.cuda.emulator_cases import CASES, Case

pytestmark = needs_compiler
MISTAKES = [pytest.param(c, k, id=f"{c.name}: {m.name}") for c in CASES for k, m in enumerate(c.mistakes)]


def _name(text: str) -> str:
    return re.search(r"__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(", text)[1]


def _all(case: Case) -> str:
    """The text that is right and all that are wrong, as one: it is compiled once."""
    parts = []
    for k, m in enumerate([None, *case.mistakes]):
        assert m is None or m.old in case.text
        text = case.text.replace(m.old, m.new, 1) if m is not None and m.old else case.text
        name = _name(text)
        text = text.replace(f"{name}(", f"{name}_{k}(", 1)
        parts.append(f"namespace case_{k} {{\n{text}\n}}\nusing namespace case_{k};")
    return "\n".join(parts)


def _run(case: Case, which: int, **options) -> list[np.ndarray]:
    names = [f"{_name(case.text)}_{k}" for k in range(1 + len(case.mistakes))]
    return run(_all(case), names[which], case.arguments, entries=names, **{**case.launch, **options})


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@pytest.mark.parametrize("order", [FORWARD, BACKWARD, 11])
def test_what_is_right_runs(case, order):
    for found, want in zip(_run(case, 0, order=order), case.want, strict=False):
        np.testing.assert_allclose(found, want, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_what_is_right_runs_fast(case):
    for found, want in zip(_run(case, 0, checked=False), case.want, strict=False):
        np.testing.assert_allclose(found, want, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("case, which", MISTAKES)
@pytest.mark.parametrize("order", [FORWARD, 5])
def test_what_is_wrong_is_found(case: Case, which: int, order: int):
    mistake = case.mistakes[which]
    with pytest.raises(EmulationError) as error:
        _run(case, which + 1, order=order, **mistake.launch)
    kinds = {mistake.kind, mistake.otherwise} if order else {mistake.kind}
    assert error.value.kind in kinds, str(error.value)


def test_what_is_right_runs_on_other_processors(monkeypatch):
    """Where the switch of stacks is not written by hand, the C library's is used."""
    found = native.load(build.runtime(("-DSYMC_UCONTEXT",)))
    monkeypatch.setattr(native, "runtime", lambda: found)
    case = CASES[0]
    for order in (FORWARD, 3):
        np.testing.assert_allclose(_run(case, 0, order=order)[0], case.want[0], rtol=case.tolerance, atol=1e-6)
    with pytest.raises(EmulationError, match="RACE"):
        _run(case, 2)


def test_no_compiler(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    build._compiler.cache_clear()
    with pytest.raises(InternalError, match=r"g\+\+, which is not installed(?s:.*)apt-get install g\+\+"):
        build._compiler()
    build._compiler.cache_clear()


def test_contracted_products():
    """What g++ makes of a product and a sum when it may: one rounding less, as NVRTC does."""
    text = 'extern "C" __global__ void f(float* y, float a, float b) { y[threadIdx.x] = a * a - b; }'
    a = np.float32(1 + 2.0**-12)
    exact = float(a) * float(a)
    found = [run(text, "f", [(np.zeros(32, np.float32), "w"), a, a * a], block=32, fused=fused)[0][0]
             for fused in (False, True)]
    assert found == [0.0, np.float32(exact - float(a * a)) if build._fma() else 0.0]


def test_there_are_enough_mistakes():
    assert len(MISTAKES) >= 50 and len(CASES) >= 10


def test_what_kernels_of_users_may_call():
    """Functions of CUDA that no kernel of ours calls."""
    text = """
extern "C" __global__ void every(int* out, const double* x) {
    if (threadIdx.x) return;
    unsigned a = 0x12345678u, b = 0x9abcdef0u;
    out[0] = (int)__byte_perm(a, b, 0x7531);
    out[1] = (int)__funnelshift_l(a, b, 8);
    out[2] = __double2int_rz(x[0]);
    out[3] = __double2int_rz(x[1]);
    out[4] = __mulhi(1 << 30, 12);
    out[5] = (int)__umulhi(1u << 31, 6u);
    out[6] = __double2hiint(x[2]);
    out[7] = (int)(100.0f * __saturatef(7.5f));
}
"""
    out, x = np.zeros(8, np.int32), np.array([-2.9, 1e30, 1.0])
    (found,) = run(text, "every", [(out, "w"), (x, "r")], block=32)
    expected = np.array([0x9ADE1256, 0xBCDEF012, 2**32 - 2, 2**31 - 1, 3, 3, 0x3FF00000, 100], np.uint32).view(np.int32)
    np.testing.assert_array_equal(found, expected)
