"""The typed subset of Python as C++, and symc's own functions in it: they mean what they mean on the CPU."""

from __future__ import annotations

import ast
import ctypes
import inspect
import textwrap

import numpy as np
import pytest

from symc.codegen.cuda.cxx import Translator, expression, statements
from symc.codegen.cuda.generic import Generic
from symc.codegen.cuda.prelude import END, PRELUDE
from symc.codegen.kernel.collapse import collapse
from symc.codegen.kernel.scalarize import scalarize
from symc.codegen.language.syntax import Unsupported
from symc.ir.op import all_ops, lookup
from symc.ir.traverse import close_over
from symc.ir.types import TensorType
from symc.ir.value import fresh_input
from symc.runtime.cuda.device import Signature
from symc.runtime.cuda.library import helpers
from symc.runtime.library import MODULE_OF
from tests.codegen.test_cpu_kernels import run_kernel
from tests.cuda.emulated import needs_compiler
from tests.cuda.generic_cases import FastDevice
from tests.cuda.template_cases import Case, run

# --- the language -----------------------------------------------------------------------------------------------------


def divided(a, b):
    return a // b * 1000 + a % b


def shifted(a, b):
    return ((a << 3) >> 1) ^ (a & 0xFF) | (b & 1)


def chosen(a, b):
    if a < b:
        least = a
    else:
        least = b
    return least - 1 if 0 <= least < 10 else (-least if least < 0 else 7)


def exchanged(a, b):
    for _ in range(3):
        a, b = b, a - b
    return a * 3 + b


def counted(a, b):
    total = 0
    n = abs(a)
    while n > 0:
        n -= 1
        if n % 3 == 0:
            continue
        if total > 50:
            break
        total += n
    for k in range(9, 0, -2):
        total += k
    return total


def hoisted(a, b):
    if b > a:
        low = a
        twice = low * 2
    else:
        twice = b * 3
    return twice


def last(a, b):
    for k in range(4):
        found = a + k * b
    return found


def logical(a, b):
    return (1 if (a > 0 and b > 0) or not b > 3 else 0) + (10 if a == 3 or b == -2 else 0)


LANGUAGE = [divided, shifted, chosen, exchanged, counted, hoisted, last, logical]


def translated(f) -> str:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(f))).body
    assert isinstance(tree, ast.FunctionDef)
    lines = Translator("i64", {}).body(tree.body, ["a", "b"])
    return "\n".join([f"SYMC_FUNCTION auto {f.__name__}(i64 a, i64 b) {{", *lines, "}", ""])


@needs_compiler
def test_the_language_is_pythons():
    pairs = np.array([(a, b) for a in (-17, -3, -1, 0, 1, 3, 8, 100) for b in (-7, -2, -1, 1, 2, 9)])
    device = FastDevice()
    body = "\n".join(f"  o[i * {len(LANGUAGE)} + {k}] = {f.__name__}(x[2 * i], x[2 * i + 1]);"
                     for k, f in enumerate(LANGUAGE))
    text = (PRELUDE + "".join(map(translated, LANGUAGE)) + 'extern "C" __global__ void all(const i64 *x, i64 *o) {\n'
            f"  const i64 i = blockIdx.x * 32 + threadIdx.x;\n  if (i >= {len(pairs)}) return;\n{body}\n}}\n" + END)
    kernel = device.load(text, [Signature("all", (8, 8))])["all"]
    out = np.zeros((len(pairs), len(LANGUAGE)), np.int64)
    stream, x, o = device.stream(), device.alloc(pairs.nbytes), device.alloc(out.nbytes)
    device.upload(x.address, pairs, stream)
    words = (ctypes.c_void_p * 2)(x.address, o.address)
    cells = (ctypes.c_void_p * 2)(*(ctypes.addressof(words) + 8 * k for k in range(2)))
    device.launch(kernel, (-(-len(pairs) // 32), 1, 1), 32, 0, ctypes.addressof(cells), stream,
                  [(x.address, pairs.nbytes)], [(o.address, out.nbytes)])
    device.download(out, o.address, stream)
    device.synchronize(stream)
    want = [[f(int(a), int(b)) for f in LANGUAGE] for a, b in pairs]
    np.testing.assert_array_equal(out, want)


def test_numbers_have_the_types_of_the_cpu():
    noted: dict[str, None] = {}
    assert expression("x + 1", noted, "i32") == "(x + 1)" and expression("x + 1", noted) == "(x + 1LL)"
    assert expression("like(x, 1)", noted, "i32") == "like(x, 1LL)", "an operand of a function is no index"
    assert expression("-2.5", noted) == "(-2.5)" and expression("2.0**-3", noted) == "0.125"
    assert expression("f32(inf) if math.nan < INF else -INF", noted).count("SYMC_INF") == 3
    assert expression("exp(x) + math.log(y)", noted) == "(exp(x) + log(y))" and list(noted) == ["exp", "log"]
    assert expression("x.real + z.conjugate().imag", noted) == "(x.real + z.conjugate().imag)"
    assert statements("failed[0] = u8(1)", noted) == ["  fail(failed);"]


@pytest.mark.parametrize("text", ["f(x, k=1)", "[x]", "lambda: 1", "x @ y", "{1: 2}", "x.shape"])
def test_what_is_no_part_of_it_is_refused(text):
    with pytest.raises(Unsupported):
        expression(text, {})


# --- the library ------------------------------------------------------------------------------------------------------


def test_helpers_come_once_and_after_what_they_need():
    text = helpers(["tanh", "exp", "gamma_draw", "tanh"])
    assert text == helpers(["gamma_draw", "tanh", "exp"]), "the order of the names does not matter"
    lines = [line for line in text.split("\n") if line.startswith("template")]
    assert len(lines) == len(set(lines)) > 20
    for callee, caller in (("near_exp64(", "_exp64("), ("_exp64(", "exp("), ("philox_block(", "own_words(")):
        assert text.index(f"auto {callee}") < text.index(f"auto {caller}")


def test_every_function_of_the_library_is_there():
    text = helpers(MODULE_OF)
    assert text.count("template <") > 200
    with pytest.raises(Unsupported, match="the function nowhere on a GPU"):
        helpers(["nowhere"])


def points(dtype):
    rng = np.random.default_rng(11)
    info = np.finfo(dtype)
    edges = [0.0, -0.0, 1, -1, 0.5, 2, np.inf, -np.inf, np.nan, info.tiny, info.max, -info.max, info.tiny / 4, 1e5]
    parts = [rng.normal(size=300), rng.uniform(-1, 1, 200), rng.uniform(-40, 40, 200)]
    return np.concatenate([edges, *parts, np.exp(rng.uniform(-80, 80, 200))]).astype(dtype)


@needs_compiler
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_are_those_of_the_cpu(dtype):
    with np.errstate(all="ignore"):
        x = points(dtype)
    y = np.roll(x, 7)
    leaves = [fresh_input(TensorType(a.dtype, a.shape)) for a in (x, y)]
    cases = []
    functions = [op for op in all_ops() if op.facts.kernel == "vectorized" and "elementwise" in op.traits]
    assert len(functions) > 30
    for op in (*functions, *map(lookup, ("fmod", "mod", "floordiv", "maximum", "minimum", "fmax"))):
        region = close_over(leaves, [op(*leaves[: op.facts.arity or 2])])
        case = Case(region, [x, y], {}, Generic((region, ()), scalarize(collapse(region))))
        case.want = run_kernel(region, [x, y], {})
        case.name = op.name
        cases.append(case)
    names = [c.name for c in cases]
    run(cases, FastDevice())
    for name, case in zip(names, cases, strict=True):
        got, want = case.got[0], case.want[0]
        with np.errstate(all="ignore"):
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            zeros = 64 * (name in ("digamma", "lgamma", "logaddexp"))  # near these they have few digits
            near = abs(got - want) <= np.finfo(dtype).eps * (8 * abs(want) + zeros)
        wrong = ~(same | near)
        assert not wrong.any(), (name, x[wrong][:4], y[wrong][:4], got[wrong][:4], want[wrong][:4])


@needs_compiler
def test_complex_functions_are_numpys():
    rng = np.random.default_rng(5)
    z = np.concatenate([rng.normal(size=200) + 1j * rng.normal(size=200), rng.normal(size=50) + 0j,
                        1j * rng.normal(size=50), np.exp(rng.uniform(-30, 30, 100) + 1j * rng.uniform(-3, 3, 100)),
                        [complex(a, b) for a in (0.0, -0.0, 1, -1, 400) for b in (0.0, -0.0, 2, -2)]])
    leaf = fresh_input(TensorType(z.dtype, z.shape))
    names = ["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh",
             "acosh", "atanh", "abs", "log2", "log10"]
    cases = []
    for name in names:
        region = close_over([leaf], [lookup(name)(leaf)])
        with np.errstate(all="ignore"):
            want = [lookup(name).reference(z)]
        cases.append(Case(region, [z], {}, Generic((region, ()), scalarize(collapse(region))), want=want))
    run(cases, FastDevice())
    for name, case in zip(names, cases, strict=True):
        got, want = case.got[0], case.want[0]
        finite = np.isfinite(want)
        off = abs(got[finite] - want[finite]) / np.maximum(abs(want[finite]), 1e-300)
        assert off.max() < 1e-13, (name, z[finite][off.argmax()], got[finite][off.argmax()])
        np.testing.assert_array_equal(np.isfinite(got), finite, err_msg=name)
