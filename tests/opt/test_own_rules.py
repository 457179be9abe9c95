"""Rules of users are written as programs are: with functions of symc and NumPy, operators, and their own ops."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.driver.build import build
from symc.ir.op import all_ops
from symc.ir.ops.math import atan
from symc.opt import UNFUSED, optimize, rewrite, rule, temporary_rules
from symc.tensors.callsite import caller
from symc.tensors.public import API
from symc.testing import check_rule

#: No rule of symc's own has this number.
ODD = 1234.5


@sc.op(derivative=lambda x: (1 - 2 * x * x) * sc.exp(-x * x))
def bump_of_a_rule(x):
    """``x * exp(-x**2)``."""
    return x * np.exp(-x * x)


def optimized(y, *inputs):
    f = build([y], list(inputs), None, None, (), "f", caller()).function
    return optimize(f, UNFUSED, strict=True, verify=True)


def fired(y, *inputs):
    return {f.rule for f in optimized(y, *inputs).provenance.firings}


def functions():
    """Public functions of one float that are one op."""
    x = sc.input("x", "float64", ())
    for op in all_ops():
        if "elementwise" in op.traits and op.facts.custom is None and op.name in API:
            try:
                y = API[op.name](x)
            except (TypeError, sc.SymcError):
                continue
            if y.dtype == np.float64 and y.value.op is op and y.value.operands == (x.value,):
                yield op.name


FUNCTIONS = sorted(functions())


def test_there_are_functions():
    assert {"exp", "log", "tanh", "abs"} <= set(FUNCTIONS)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_rule_with_a_public_function(name, dtype):
    f = API[name]
    with temporary_rules():

        @rule
        def with_a_public_function(x):
            """Far from anything else."""
            return ODD + f(x) * ODD, sc.atan(x) - ODD

        v = sc.input("v", dtype, ("n",))
        assert "with_a_public_function" in fired(ODD + f(v) * ODD, v)
        out = optimized(ODD + f(v) * ODD, v).function
        assert out.body.results[0].dtype == v.dtype


def forms():
    def spelled(left, right):
        return lambda x, y: (left(x, y), right(x, y))

    return {
        "functions of NumPy": spelled(lambda x, y: np.arctan(x) * ODD + y, lambda x, y: y - np.arctan(-x) * ODD),
        "comparisons": spelled(
            lambda x, y: sc.where(x == y, sc.atan(x), ODD), lambda x, y: sc.where(x != y, ODD, sc.atan(x))
        ),
        "methods": spelled(lambda x, y: x.round() * ODD + y, lambda x, y: y + ODD * np.floor(x + 0.5)),
        "an own op": spelled(lambda x, y: bump_of_a_rule(-x) + y, lambda x, y: y - bump_of_a_rule(x)),
        "builders of the IR among them": spelled(
            lambda x, y: atan(sc.exp(x)) * ODD + y, lambda x, y: y - ODD * atan(-np.exp(x))
        ),
        "numbers from functions": spelled(
            lambda x, y: sc.atan(x) * sc.log(3.0) + y, lambda x, y: y - sc.log(3.0) * sc.atan(-x)
        ),
    }


@pytest.mark.parametrize("form", forms())
def test_forms_of_programs(form):
    sides = forms()[form]
    with temporary_rules():
        made = _declared(sides)
        assert made.pattern is not None
        for dtype in ("float64", "float32"):
            x, y = sc.input("x", dtype, ("n",)), sc.input("y", dtype, ("n",))
            left = sides(x, y)[0]
            out = optimized(left, x, y)
            assert made.name in {f.rule for f in out.provenance.firings}
            assert out.function.body.results[0].dtype == np.dtype(dtype)


def _declared(sides):
    def of_a_program(x, y):
        """Far from anything else."""
        return sides(x, y)

    return rule(of_a_program)


def test_an_own_op_keeps_what_a_rule_promises():
    with temporary_rules():

        @rule
        def an_odd_op(x):
            """A sign moves out."""
            return bump_of_a_rule(-x), -bump_of_a_rule(x)

        check_rule(an_odd_op)


def test_a_rewrite_may_give_a_tensor():
    with temporary_rules():

        @rewrite("sin")
        def sine_of_exp(v):
            """Another function."""
            (x,) = v.operands
            return sc.cos(x - np.pi / 2) if x.op.name == "exp" else None

        v = sc.vector("v")
        assert "sine_of_exp" in fired(sc.sin(sc.exp(v)), v)
