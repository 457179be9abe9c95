"""StableHLO: text that JAX's parser verifies, with sizes read from the arguments, and that computes the same there."""

import numpy as np
import pytest

import symc as sc
from symc.ir.op import all_ops
from symc.runtime.cpu.commit import snapshot
from symc.tensors.pytree import flatten
from tests.export.interchange_programs import PROGRAMS
from tests.export.test_onnx import OPS, close, compiled, samples
from tests.export.xla import run

GOLDEN = """\
module @f {
  func.func public @main(%arg0: tensor<?x3xf32> loc("x"), %arg1: tensor<3xf32> loc("w")) -> (tensor<?xf32>, tensor<3xf32>) {
    %3 = "stablehlo.get_dimension_size"(%arg0) <{dimension = 0 : i64}> : (tensor<?x3xf32>) -> (tensor<i32>)
    %4 = "stablehlo.convert"(%3) : (tensor<i32>) -> (tensor<i64>)
    %5 = "stablehlo.reshape"(%4) : (tensor<i64>) -> (tensor<1xi64>)
    %0 = "stablehlo.dot_general"(%arg0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<\
lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], \
rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, \
#stablehlo<precision HIGHEST>]}> : (tensor<?x3xf32>, tensor<3xf32>) -> (tensor<?xf32>)
    %1 = stablehlo.tanh %0 : tensor<?xf32>
    %2 = stablehlo.constant dense<1.00000000000000000e+00> : tensor<f32>
    %6 = "stablehlo.dynamic_broadcast_in_dim"(%2, %5) <{broadcast_dimensions = array<i64>}> : \
(tensor<f32>, tensor<1xi64>) -> (tensor<?xf32>)
    %7 = stablehlo.add %1, %6 : tensor<?xf32>
    %8 = stablehlo.constant dense<2.00000000000000000e+00> : tensor<f32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> (tensor<3xf32>)
    %10 = stablehlo.multiply %arg1, %9 : tensor<3xf32>
    return %7, %10 : tensor<?xf32>, tensor<3xf32>
  }
}
"""  # noqa: E501


def example():
    x, w = sc.input("x", "float32", shape=("n", 3)), sc.shared(np.ones(3, "float32"), "w")
    return sc.compile(sc.tanh(x @ w) + 1, [x], updates={w: w * 2}, mode="reference")


def test_the_text():
    assert example().to_stablehlo() == GOLDEN
    assert "?" not in example().to_stablehlo(n=4) and "tensor<4x3xf32>" in example().to_stablehlo(n=4)


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_of_any_size_and_of_one(program):
    f, calls = program()
    text = f.to_stablehlo()
    start = [a.copy() for a in snapshot(f._cells)]
    for turn, args in enumerate(calls):
        known = f.to_stablehlo(**f._signature.sizes([*map(np.asarray, args), *start]))
        want = flatten(f(*args))[0]
        new = dict(zip(f.shared, [s.get_value() for s in f.shared.values()], strict=True))
        for s, a in zip(f.shared.values(), start, strict=True):
            s.set_value(a)
        for t in (text, known)[: 1 + (turn == 0)]:
            found = run(t, *args, *start)
            close(found[: len(want)], want, slack=10)
            assert len(found) in (len(want), len(want) + len(new))


def has_form(op):
    for operands, attrs in samples(op, 1):
        try:
            return bool(compiled(op, operands, attrs).to_stablehlo())
        except sc.SymcError:
            continue
    return False


def test_most_ops_have_a_form():
    some = OPS[1::3]
    without = [op.name for op in some if not has_form(op)]
    assert len(without) < 0.25 * len(some), without


@pytest.mark.long
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_op(op):
    """Numbers so small that XLA takes them for zeros are left out, and so is the sign of a zero."""
    for operands, attrs in samples(op, 1):
        operands = [np.where(abs(a) < 1e-300, 0, a).astype(a.dtype) if a.dtype.kind == "f" else a for a in operands]
        try:
            f = compiled(op, operands, attrs)
            want = f(*operands)
            text = f.to_stablehlo()
        except sc.ExportError as e:
            assert "StableHLO has no form of" in e.what
            continue
        except sc.SymcError:
            continue
        close([abs(a) if a.dtype.kind == "f" else a for a in run(text, *operands)],
              [abs(a) if a.dtype.kind == "f" else a for a in want], slack=20)


def test_what_has_no_form_is_named_with_its_line():
    x = sc.input("x", "float64", shape=("n",))
    with pytest.raises(sc.ExportError, match="StableHLO has no form of the op jv") as e:
        sc.compile(sc.special.jv(1.5, x), [x], mode="reference").to_stablehlo()
    assert e.value.where[0].file == __file__
    with pytest.raises(sc.InputError, match="no size 'm'"):
        example().to_stablehlo(m=3)
    with pytest.raises(sc.InputError, match="cannot be -1"):
        example().to_stablehlo(n=-1)


def test_names_of_ops_are_those_of_records():
    from symc.export import onnx_ops, parts, stablehlo_ops

    known = {op.name for op in all_ops()}
    for table in (onnx_ops.PLAIN, onnx_ops.FORMS, onnx_ops.OF_ANY_DTYPE, stablehlo_ops.PLAIN, stablehlo_ops.FORMS,
                  parts.PARTS):
        assert set(table) <= known
