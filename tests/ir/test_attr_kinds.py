"""Attributes in text: of every op, each is of the kind that its samples have, or the text is refused."""

import itertools
import re

import numpy as np
import pytest

import symc as sc
from symc.ir.attr_kinds import checks_of
from symc.ir.dim import Dim, size_name
from symc.ir.function import Input, function
from symc.ir.literal import print_attr
from symc.ir.ops.kernel import results_of
from symc.ir.text import print_function
from symc.ir.types import TensorType
from tests.ir.op_cases import SAMPLED, apply, cases

OTHERS = [None, True, -1, 10**18, 1.5, float("nan"), "a", (), (-1,), (0, 0), (10**9,), ((),), ("a",),
          np.dtype("f4"), TensorType("f4", ()), size_name("n")]  # fmt: skip


def kind(x):
    """What an attribute is made of. A size may be symbolic, and a number of floats an integer."""
    if isinstance(x, tuple):
        return tuple(sorted({kind(i) for i in x}, key=str))
    return int if isinstance(x, Dim) else type(x)


def text_of(op, arrays, attrs):
    return print_function(closed(*apply(op, arrays, attrs)))


def closed(v, leaves):
    return function("f", [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)], results_of(v))


@pytest.mark.parametrize("op", [op for op in SAMPLED if any(attrs for _, attrs in cases(op))], ids=lambda op: op.name)
def test_attributes_of_another_kind_are_refused(op):
    arrays, attrs = next((a, b) for a, b in cases(op) if b)
    kinds = {k: {kind(b[k]) for _, b in cases(op) if k in b} for k in attrs}
    text = with_attrs(text_of(op, arrays, attrs), op, attrs)
    assert sc.parse(text) is not None
    taken = []
    for (name, value), other in itertools.product(attrs.items(), OTHERS):
        changed = text.replace(f"{name} = {print_attr(value)}", f"{name} = {print_attr(other)}")
        assert changed != text or other == value
        if kind(other) in kinds[name] or other == ():
            continue  # of the same kind: right or wrong by its value
        try:
            sc.parse(changed)
            taken.append((name, other))
        except sc.SymcError as e:
            assert isinstance(e, sc.ParseError)
    free = {k for k in attrs if checks_of(op).get(k, lambda x: False)(OTHERS)}  # annotated with Any
    assert [(k, o) for k, o in taken if k not in free and not (type(o) is int and float in kinds[k])] == []


def with_attrs(text, op, attrs):
    """The text with every attribute of the op's line, defaults too."""
    said = "{" + ", ".join(f"{k} = {print_attr(a)}" for k, a in attrs.items()) + "}"
    return re.sub(rf"( = {op.name}\b[^{{\n]*?)(?: {{.*?}})?( : \w+\[)", lambda m: f"{m[1]} {said}{m[2]}", text, count=1)


@pytest.mark.parametrize("op", [op for op in SAMPLED if op.defaults], ids=lambda op: op.name)
def test_defaults_are_left_out_and_may_be_written(op):
    left_out = set()
    for arrays, attrs in cases(op):
        v, leaves = apply(op, arrays, attrs)
        f = closed(v, leaves)
        text = print_function(f)
        short = {k: a for k, a in v.attrs.items() if f"{k} = " in text}
        left_out |= v.attrs.keys() - short.keys()
        assert v.attrs.keys() - short.keys() <= op.defaults.keys() <= v.attrs.keys()
        assert sc.parse(text).body is sc.parse(with_attrs(text, op, v.attrs)).body is f.body
        assert op(*v.operands, regions=v.regions, **short) is v
    assert left_out == op.defaults.keys()


@pytest.mark.parametrize("op", [op for op in SAMPLED if op.defaults], ids=lambda op: op.name)
def test_too_few_operands_are_no_missing_attributes(op):
    with pytest.raises(sc.ParseError, match=r"operands|axis"):
        sc.parse(f"func @f() -> (f64[]) {{\n  %0 = {op.name} : f64[]\n  return %0\n}}")
