"""Passes and rules of users that are wrong: each mistake is told where it is made, with its line, and never later."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import symc as sc
from symc.errors import PipelineError
from symc.ir.function import Function
from symc.ir.record import replace
from symc.ir.types import TensorType
from symc.ir.value import Region
from symc.opt import graph_pass, rewrite, rule, temporary_rules, unregister_pass

HERE = re.escape("test_user_mistakes.py:")


@contextmanager
def a_pass(run, bodies=False):
    graph_pass("a_users_pass", bodies=bodies)(run)
    try:
        yield
    finally:
        unregister_pass("a_users_pass")


def plain():
    x, w = sc.input("x", "float64", ("n", 3)), sc.input("w", "float64", (3,))
    return sc.tanh(x @ w) * 2, None, (np.ones((2, 3)), np.ones(3))


def with_state():
    s, x = sc.shared(np.zeros(3), "s"), sc.input("x", "float64", (3,))
    return s + x, {s: s * 2 + x}, (np.ones(3),)


def loop():
    x = sc.input("x", "float64", ("n", 3))
    return sc.scan(lambda h, row: (sc.sin(h + row), h), sc.zeros(3), x)[1], None, (np.ones((4, 3)),)


def jitted():
    x, y = sc.input("x", "float64", ("n",)), sc.input("y", "float64", ("m",))
    return x * y + x[2], None, (np.arange(3.0), np.ones(3))


PROGRAMS = {f.__name__: f for f in (plain, with_state, loop, jitted)}
FOREIGN = sc.input("foreign", "float64", (3,))


def other_type(v):
    return TensorType("f32" if v.dtype == np.float64 else "f64", v.shape)


#: What a pass gives, from the function that it was given; and what is said of it.
MISTAKES = {
    "None": (lambda f: None, "gave a NoneType, not a Function"),
    "text": (lambda f: str(f), "gave a str, not a Function"),
    "results": (lambda f: list(f.body.results), "gave a list, not a Function"),
    "a tensor": (lambda f: FOREIGN, "gave a Tensor, not a Function"),
    "no results": (lambda f: f.with_results([]), "changed how many results"),
    "more results": (lambda f: f.with_results([*f.body.results, f.body.results[0]]), "changed how many results"),
    "no updates": (lambda f: replace(f, updates=()) if f.updates else f.with_results([]), "changed how many results"),
    "another dtype": (lambda f: f.with_results([sc.asarray(v).astype("float32") for v in f.body.results]),
                      "changed the type of result 0"),
    "another rank": (lambda f: f.with_results([sc.sum(v) for v in f.body.results]), "changed the type of result 0"),
    "no value": (lambda f: f.with_results([np.ones(2)] * len(f.body.results)), "result 0 is a ndarray, not a value"),
    "a foreign value": (lambda f: f.with_results([v + sc.sum(FOREIGN) for v in f.body.results]),
                        "uses a value that is not of the function"),
    "no inputs": (lambda f: Function(f.name, (), Region((), f.body.results), f.updates), "changed the inputs"),
    "inputs of other names": (lambda f: replace(f, inputs=tuple(replace(i, name="q" + i.name) for i in f.inputs)),
                              "changed the inputs"),
    "inputs of other types": (
        lambda f: replace(f, inputs=tuple(replace(i, type=other_type(i.type)) for i in f.inputs)),
        "changed the inputs"),
    "params of other types": (
        lambda f: replace(f, body=Region(map(other_type, f.body.params), f.body.results)), "changed the inputs"),
    "inputs in another order": (lambda f: replace(f, inputs=f.inputs[::-1], body=Region(
        f.body.params[::-1], f.body.results)) if len(f.inputs) > 1 else None, "changed the inputs|gave a NoneType"),
}


def compiled(program, name="a_users_pass"):
    y, updates, arrays = PROGRAMS[program]()
    return sc.compile(y, updates=updates, pipeline=f"canonicalize,{name},check_indices,fuse"), arrays


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("bodies", [False, True])
def test_what_a_pass_must_keep(program, mistake, bodies):
    run, said = MISTAKES[mistake]
    with a_pass(run, bodies), pytest.raises((PipelineError, sc.InputError), match=said) as e:
        compiled(program)
    if isinstance(e.value, PipelineError):
        assert "'a_users_pass'" in str(e.value) and re.search(HERE, str(e.value)) and e.value.help


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("right", [
    lambda f: f,
    lambda f: sc.parse(str(f)),
    lambda f: f.with_results([sc.asarray(v) * 1 for v in f.body.results]),
    lambda f: replace(f, guards=()),
], ids=["itself", "text", "tensors", "without its guards"])
def test_a_pass_that_keeps_it_is_right(program, right):
    with a_pass(right):
        f, arrays = compiled(program)
        y, updates, _ = PROGRAMS[program]()
        g = sc.compile(y, updates=updates, mode="reference")
        for _ in range(2):
            np.testing.assert_array_equal(f(*arrays), g(*arrays))
        if program == "jitted":
            for wrong in ((np.ones(3), np.ones(4)), (np.ones(1), np.ones(1))):
                with pytest.raises((sc.ShapeError, sc.IndexingError)):
                    f(*wrong)


def test_an_exception_in_a_pass_says_which():
    with a_pass(lambda f: 1 / 0), pytest.raises(ZeroDivisionError) as e:
        compiled("plain")
    assert re.search(f"in pass 'a_users_pass' on @f, {HERE}", e.value.__notes__[0])


def declared(sides, **options):
    def of_a_user(x, y):
        return sides(x, y)

    return rule(**options)(of_a_user)


SIDES = {
    "none": (lambda x, y: None, "gives a NoneType, not its two sides"),
    "one": (lambda x, y: sc.log(x) * 77, "gives a Tensor, not its two sides"),
    "an equation": (lambda x, y: sc.log(x) == sc.sin(y), "gives a Tensor, not its two sides"),
    "three": (lambda x, y: (sc.log(x), x, y), "gives 3 of them"),
    "a number": (lambda x, y: (3, x), "has a int on its left"),
    "unbound": (lambda x, y: (sc.log(x) * 77, sc.log(y)), "has y on its right, which its left side does not say"),
    "foreign right": (lambda x, y: (sc.log(x) * 77, x * sc.sum(FOREIGN)), "has on its right a value from outside"),
    "foreign left": (lambda x, y: (sc.log(x) * sc.sum(FOREIGN), x * 3), "has on its left a value from outside"),
    "dtype": (lambda x, y: (sc.log(x) * 77, x.astype("float32")), "has sides of two types"),
    "sum of a number": (lambda x, y: (sc.sum(sc.log(x)) * 77, sc.log(x)), "has sum of a number on its left"),
    "sum of a number at last": (lambda x, y: (sc.log(x) * 77, sc.sum(x)), "has sum of a number on its right"),
}


@pytest.mark.parametrize("sides", SIDES)
def test_equations_that_are_none(sides):
    with temporary_rules(), pytest.raises(PipelineError, match=SIDES[sides][1]) as e:
        declared(SIDES[sides][0])
    assert re.search(HERE, str(e.value)) and e.value.help


def test_rules_for_what_there_is_not():
    with temporary_rules():
        for declare, said in (
            (lambda: declared(lambda x, y: (sc.log(x) * 77, x), kinds="fz"), "dtypes of kind 'z'"),
            (lambda: rewrite("logg")(lambda v: None), "the op 'logg'.*\n.*\n.*did you mean 'log'"),
            (lambda: rewrite("log", kinds="float")(lambda v: None), "dtypes of kind"),
            (lambda: rewrite(lambda v: None), "takes the names of the ops"),
        ):
            with pytest.raises(PipelineError, match=said):
                declare()


GIVEN = {
    "a number": (lambda v: 3, "gives a int, not a value"),
    "operands": (lambda v: v.operands, "gives a tuple, not a value"),
    "a foreign value": (lambda v: FOREIGN, "gives a value from outside"),
    "another dtype": (lambda v: sc.asarray(v.operands[0]).astype("float32"), "gives f32"),
    "another shape": (lambda v: sc.sum(sc.asarray(v.operands[0])), r"gives f64\[\] for f64\[3\]"),
    "an exception": (lambda v: 1 / 0, f"ZeroDivisionError: division by zero    {HERE}"),
    "no return": (lambda v, context, more: None, "TypeError"),
}


@pytest.mark.parametrize("given", GIVEN)
def test_a_rewrite_that_gives_none_is_switched_off_and_its_user_is_told(given):
    give, said = GIVEN[given]
    x = sc.input("x", "float64", (3,))
    with temporary_rules():
        rewrite("log")(give)
        with pytest.warns(UserWarning, match=f"rule <lambda> was switched off: .*{said}"):
            f = sc.compile(sc.log(x) * 77)
        np.testing.assert_allclose(f(np.ones(3)), 0)
        assert re.search(said, str(f.explain())) and re.search(said, f.why_not("<lambda>"))


def test_rules_that_undo_each_other_name_each_other():
    x = sc.input("x", "float64", (3,))
    with temporary_rules():

        @rule
        def there(x):
            return sc.sin(x) * 77, sc.cos(x) * 77

        @rule
        def and_back(x):
            return sc.cos(x) * 77, sc.sin(x) * 77

        with pytest.warns(UserWarning, match="rule and_back turns mul back into a value that there has just replaced"):
            sc.compile(sc.sin(x) * 77)


def test_right_rules_are_silent():
    x = sc.input("x", "float64", (3,))
    with temporary_rules(), warnings.catch_warnings():
        warnings.simplefilter("error")
        declared(lambda x, y: (sc.log(x) * 77 + y, y + sc.log2(x) * 53.37))
        rewrite("log")(lambda v: "why not")
        sc.compile(sc.log(x) * 77 + 1)
