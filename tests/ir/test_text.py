"""Text of the IR reads back to the same values and the same text: generated programs after passes, numbers of every
dtype at its ends, attributes of every dtype, and names that users give."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
import symc.testing.fuzz.campaign
from symc.ir.dtypes import DTYPES
from symc.ir.function import Function, Input, function
from symc.ir.op import lookup
from symc.ir.ops.leaf import array
from symc.ir.text import print_function
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.opt import DEFAULT, optimize
from symc.testing.fuzz.programs import GENERATORS, make


def assert_reads_back(f: Function) -> None:
    text = print_function(f)
    again = sc.parse(text)
    assert again.body is f.body, text
    assert print_function(again, locations=False) == print_function(f, locations=False)
    assert str(sc.parse(str(again))) == str(again)


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(set(GENERATORS) - {"arguments"}))
def test_generated_programs_after_passes(kind):
    for seed in range(9000, 9003 if kind in ("loops", "sized") else 9010):
        f = make(f"{kind}:{seed}").function
        stages = list(optimize(f, DEFAULT).stages.values())
        for g in dict.fromkeys([f, *stages[seed % 5 :: 5], stages[-1]]):
            assert_reads_back(g)


def ends(d: np.dtype) -> list:
    """Numbers of a dtype that are hard to write down."""
    if d.kind == "b":
        return [True, False]
    if d.kind in "iu":
        return [np.iinfo(d).min, np.iinfo(d).max, 0]
    if d.kind == "c":
        half = ends(np.dtype(f"f{d.itemsize // 2}"))
        return [complex(a, b) for a, b in zip(half, half[1:] + half[:1])] + [complex(-0.0, -0.0), complex(0.0, -0.0)]
    limits = sc.finfo(d)
    return [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.1, float(limits.max), float(limits.smallest_subnormal), 1e-5]


def numbers(d: np.dtype) -> list[np.ndarray]:
    out = [np.array(x).astype(d if isinstance(d, np.dtype) else str(d)) for x in ends(d)]
    if d.kind == "f":
        payload = (np.array(np.nan).astype(d).view(f"u{d.itemsize}") | 3).astype(f"u{d.itemsize}")
        out.append(payload.view(d))
    return out


@pytest.mark.parametrize("name", [n for n, d in DTYPES.items() if isinstance(d, np.dtype)])
def test_numbers_of_every_dtype(name):
    results: list[Value] = []
    for x in numbers(DTYPES[name]):
        for shape in ((), (3,), (2, 1), (0,)):
            results.append(array(np.broadcast_to(x, shape)))
    results.append(array(np.array(numbers(DTYPES[name]))))
    assert_reads_back(function("f", [], results))


@pytest.mark.parametrize("name", DTYPES)
def test_an_attribute_may_be_any_dtype(name):
    x = fresh_input(TensorType("f32", (3,)))
    f = function("f", [(x, Input("x", x.type))], [lookup("cast")(x, dtype=DTYPES[name])])
    assert_reads_back(f)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "uint8", "bool", "complex64"])
def test_a_saved_function_may_convert_to_any_dtype(tmp_path, dtype):
    x = sc.input("x", "float32", (3,))
    f = sc.compile(sc.abs(x.astype(dtype).astype("complex64")))
    f.save(tmp_path / "f.symc")
    np.testing.assert_array_equal(sc.load(tmp_path / "f.symc")(np.ones(3, "f4")), f(np.ones(3, "f4")))


@pytest.mark.parametrize("name", ["é", "Größe", "λ_1", "名", "_", "max", "f64", "inf", "nan", "class", "n0"])
def test_names_of_users(name, tmp_path):
    x = sc.input(name, "float64", (name, 3))
    f = sc.compile([sc.sin(x), x[1:], sc.zeros(x.shape[0] // 2 + 1)], name=name)
    for stage in ("input", list(f.stages)[-1]):
        assert str(sc.parse(f.dump(stage))) == str(sc.parse(str(sc.parse(f.dump(stage)))))
    f.save(tmp_path / "f.symc")
    for a, b in zip(sc.load(tmp_path / "f.symc")(np.ones((2, 3))), f(np.ones((2, 3))), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["N m", "1n", "n.m", "", "a·b", "e\u0301", "℮", "n\n", "%n"])
def test_what_text_cannot_hold_names_no_size(name):
    with pytest.raises(sc.InputError, match="cannot name a size"):
        sc.input("x", "float64", (name,))


@pytest.mark.parametrize("said", ['say "hi"', "\\ {{}} \n \t", "é // # %x }} ^(", "\x00", "'"])
def test_strings_of_users(said):
    x = sc.input("x", "float64", (3,))
    f = sc.compile([sc.debug.print(x, said), sc.debug.assert_(x, sc.all(x > 0), said)])
    assert_reads_back(sc.parse(f.dump("input")))
