"""Compiling CUDA C++ without a GPU: code, resources, parameters, messages, and what is kept on disk."""

from __future__ import annotations

import pytest

from symc.errors import InputError, InternalError
from symc.runtime.cache import object_cache
from symc.runtime.cuda import libraries, nvrtc
from symc.runtime.cuda.device import Resources, Signature

TEXT = """
struct Three { float4 a[3]; };
extern "C" __global__ __launch_bounds__(128)
void sums(float* __restrict__ x, int n, long long m, unsigned char c, double z) {
    __shared__ float s[128];
    s[threadIdx.x] = x[n];
    __syncthreads();
    x[m] = s[c] + (float)z;
}
extern "C" __global__ void spilling(Three p, const float4* x) {
    float a[500];
    for (int i = 0; i < 500; i++) a[(int)x[i].y] = x[i].x;
    ((float*)x)[0] = a[(int)p.a[0].x];
}
extern "C" __global__ void nothing() {}
"""

LOG = """symc.cu(3): warning #177-D: variable "q" was declared but never referenced
ptxas info    : 4 bytes gmem
ptxas info    : Compiling entry function 'k2' for 'sm_90'
ptxas info    : Function properties for helper
ptxas         .     64 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Function properties for k2
    400 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 38 registers, used 0 barriers, 464 bytes cumulative stack size, 512 bytes smem, 400 bytes cmem[0]
"""

PTX = """
.visible .entry k2(
	.param .align 16 .b8 k2_param_0[48],
	.param .u64 .ptr .global .align 16 k2_param_1,
	.param .f32 k2_param_2
)
{ ld.param.u64 %rd1, [k2_param_1]; }
.visible .entry k3()
{ ret; }
"""


@pytest.fixture(scope="module", autouse=True)
def compiler():
    try:
        return nvrtc.library()
    except InputError as e:
        pytest.skip(str(e))


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_code_of_every_kind_of_gpu(place):
    for arch in ("sm_75", "sm_80", "sm_90", "sm_100"):
        made = nvrtc.compile_cubin(TEXT, arch)
        assert made.data.startswith(b"\x7fELF")
        assert made.warnings == ""
        assert made.parameters == {"sums": (8, 4, 8, 1, 8), "spilling": (48, 8), "nothing": ()}
        assert made.resources["sums"].shared == 512 and made.resources["sums"].stack == 0
        assert made.resources["spilling"].stack == 2000 and 0 < made.resources["spilling"].registers <= 255


def test_what_a_log_says():
    assert nvrtc.resources_of(LOG) == {"k2": Resources(registers=38, spills=28, stack=464, shared=512)}
    assert nvrtc.warnings_of(LOG) == LOG.split("\n")[0]
    assert nvrtc.parameters_of(PTX) == {"k2": (48, 8, 4), "k3": ()}


def test_what_is_compiled_is_kept(place, monkeypatch):
    first = nvrtc.compile_cubin(TEXT, "sm_90")
    assert len(list(place.iterdir())) == 1
    monkeypatch.setattr(nvrtc, "_compile", lambda *_: pytest.fail("compiled again"))
    assert nvrtc.compile_cubin(TEXT, "sm_90") == first
    with pytest.raises(BaseException, match="compiled again"):
        nvrtc.compile_cubin(TEXT, "sm_80")
    with pytest.raises(BaseException, match="compiled again"):
        nvrtc.compile_cubin(TEXT + " ", "sm_90")


def test_damaged_code_is_compiled_again(place):
    first = nvrtc.compile_cubin(TEXT, "sm_90")
    (file,) = place.iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    assert nvrtc.compile_cubin(TEXT, "sm_90").resources == first.resources


def test_warnings_are_reported(place):
    made = nvrtc.compile_cubin('extern "C" __global__ void f(float* x) { int unused; x[0] = 1.0f; }', "sm_90")
    assert "unused" in made.warnings
    assert nvrtc.compile_cubin('extern "C" __global__ void f(float* x) { int unused; x[0] = 1.0f; }', "sm_90") == made


def test_a_text_that_does_not_compile_shows_its_line(place):
    text = 'extern "C" __global__ void f(float* x) {\n    x[0] = 1.0f;\n    x[1] = y;\n    z = 1;\n}'
    with pytest.raises(InternalError) as caught:
        nvrtc.compile_cubin(text, "sm_90")
    message = str(caught.value)
    assert message.split("\n")[0] == 'NVRTC does not compile a kernel: line 3: identifier "y" is undefined'
    assert "    3 |     x[1] = y;" in message
    assert 'line 4: identifier "z" is undefined' in message


def test_numbers_are_not_flushed_and_headers_not_there(place):
    with pytest.raises(InternalError, match="INFINITY"):
        nvrtc.compile_cubin('extern "C" __global__ void f(float* x) { x[0] = INFINITY; }', "sm_90")
    assert "--ftz=false" in nvrtc.FLAGS


def test_entries_have_the_declared_parameters(place):
    made = nvrtc.compile_cubin(TEXT, "sm_90")
    made.check([Signature("sums", (8, 4, 8, 1, 8)), Signature("nothing", ())])
    with pytest.raises(InternalError, match="sums takes parameters of"):
        made.check([Signature("sums", (8, 8, 8, 1, 8))])
    with pytest.raises(InternalError, match="no entry other"):
        made.check([Signature("other", ())])


def test_code_for_gpus_that_this_compiler_does_not_know():
    known = (75, 80, 86, 90, 100)
    assert nvrtc.serving("sm_90", known) == "sm_90"
    assert nvrtc.serving("sm_89", known) == "sm_86"
    with pytest.raises(InputError, match=r"no GPU of compute capability 7\.0"):
        nvrtc.serving("sm_70", known)
    with pytest.raises(InputError, match=r"no GPU of compute capability 12\.1"):
        nvrtc.serving("sm_121", known)


def test_a_missing_compiler_says_what_to_install(monkeypatch):
    monkeypatch.setattr(libraries, "folders", lambda *_: iter(()))
    monkeypatch.setattr(libraries.ctypes, "CDLL", _refuse)
    nvrtc.library.cache_clear()
    try:
        with pytest.raises(InputError, match="nvidia-cuda-nvrtc>=13,<14' or 'nvidia-cuda-nvrtc-cu12'") as caught:
            nvrtc.library()
        assert "is not found" in str(caught.value)
        with pytest.raises(InputError, match=r"pip install 'nvidia-cuda-nvrtc-cu12'$"):
            nvrtc.library(12)
    finally:
        nvrtc.library.cache_clear()


def _refuse(name):
    raise OSError(f"{name}: cannot open shared object file")
