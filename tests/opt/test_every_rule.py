"""Every rule keeps its promises: generated from the registry."""

import subprocess
import sys

import numpy as np
import pytest

from symc.errors import InternalError, PipelineError
from symc.ir.dim import size_name
from symc.ir.function import Input, function
from symc.ir.op import all_ops, splat
from symc.ir.ops.arithmetic import abs_, maximum, minimum, neg
from symc.ir.ops.cast import cast
from symc.ir.ops.grad_control import stop_gradient
from symc.ir.ops.linalg import dot
from symc.ir.ops.math import atan, atan2, cos, cosh, exp, log, log1p, sigmoid, sin, softplus, sqrt, tanh
from symc.ir.ops.reduce import prod, sum_
from symc.ir.ops.shape import broadcast
from symc.ir.text import splat_of
from symc.ir.types import TensorType
from symc.ir.value import Value, fresh_input
from symc.opt import (
    UNFUSED,
    all_passes,
    all_rules,
    lookup_rule,
    optimize,
    rewrite,
    rule,
    temporary_rules,
    unregister,
    why_not,
)
from symc.opt.engine.declare import default_dtype, reject_loops
from symc.opt.engine.examples import variables_of_rule
from symc.opt.why.catalogue import TITLES, before_and_after
from symc.testing import check_rule
from symc.testing.rule_uses import as_function

RULES = [r for r in all_rules() if r.family != "user"]  # an example declares one


#: Elementwise ops that take bools alone, and how many.
OF_BOOLS = [(op, len(next(op.samples())[0])) for op in all_ops()
            if op.samples and "elementwise" in op.traits and "b" in (op.facts.kinds or "") and op.facts.custom is None]


def names(rules):
    return [r.name for r in rules]


def leaf(dtype="f64", *shape):
    return fresh_input(TensorType(dtype, shape))


@pytest.mark.long
@pytest.mark.parametrize("r", RULES, ids=names(RULES))
def test_claims(r):
    check_rule(r)
    assert r.doc and "->" in r.equation


@pytest.mark.parametrize("r", RULES, ids=names(RULES))
def test_the_catalogue_says_what_why_and_where(r):
    """A rule without an equation, an example before and after, a reason, a title or a pass is no rule for users."""
    assert "->" in r.equation and len(r.doc) > 8 and before_and_after(r)
    assert all(before != after or "{" in before for before, after in before_and_after(r))
    assert r.family in TITLES and any(r.family in p.families for p in all_passes())


@pytest.mark.parametrize("r", [r for r in RULES if r.pattern is not None and r.build is not None],
                         ids=lambda r: r.name)
def test_no_right_side_contains_its_left_side_again(r):
    """Of users' rules this is asked when they are declared; of symc's own it is asked here."""
    right = r.build(*variables_of_rule(len(r.variables), {
        k: r.dtypes.get(n, default_dtype(r.kinds)) for k, n in enumerate(r.variables)}))[1]
    if isinstance(right, Value):
        reject_loops(r.name, r.pattern, right, r.exact, r.family != "canonicalize", r.when)


@pytest.mark.long
def test_an_equation_does_not_depend_on_when_a_rule_was_read():
    code = "import symc as sc; {}; from symc.opt import all_rules; " \
           "print([(r.name, r.pattern, sorted(r.needs)) for r in all_rules()])"
    first, late = (subprocess.run([sys.executable, "-c", code.format(before)], capture_output=True, text=True,
                                  check=True).stdout
                   for before in ("pass", "[sc.input(f'x{k}', 'f64') for k in range(777)]"))
    assert first == late and "add" in first


# --- the checks themselves find what is wrong: each of these rules is, in one way ------------------------------------


def claims_too_much():
    @rule(exact=True)
    def wrong(x):
        """Not bit for bit."""
        return sqrt(x) * sqrt(x), x


def exact_but_for_zeros():
    @rewrite("sum", family="user", exact=True, equation="sum(abs(x)) -> -sum(minimum(x, -x))",
             examples=lambda: [sum_(abs_(leaf("f64", 3)), axes=(0,))])
    def wrong(v):
        """The sum of nothing is 0.0, not -0.0."""
        (x,) = v.operands
        if x.op is not abs_:
            return None
        return -sum_(minimum(x.operands[0], -x.operands[0]), axes=v.attrs["axes"])


def off_by_little():
    @rule
    def wrong(x):
        """Off by a little."""
        return sin(cos(x)), sin(cos(x) * (1 + 1e-12))


def another_shape():
    @rewrite("sin", family="user", equation="sin(tanh(x)) -> sum(x)", examples=lambda: [sin(tanh(leaf("f64", 3)))])
    def wrong(v):
        """One number for many."""
        return sum_(v, axes=(0,)) if v.operands[0].op is tanh else None


def another_dtype():
    @rewrite("sin", family="user", equation="sin(tanh(x)) -> sin in f32", examples=lambda: [sin(tanh(leaf("f64", 3)))])
    def wrong(v):
        """Narrower."""
        (x,) = v.operands
        return sin(cast(x, dtype=np.dtype("f4"))) if x.op is tanh else None


def claims_a_kind_it_has_not():
    @rule(kinds="fc")
    def wrong(x):
        """sigmoid is for real numbers."""
        return sigmoid(tanh(x)), 1 / (1 + exp(-tanh(x)))


def inaccurate_where_large():
    @rule
    def wrong(x):
        """Overflows where the left side does not."""
        return tanh(sin(cosh(x)) * x), (exp(sin(cosh(x)) * x * 2) - 1) / (exp(sin(cosh(x)) * x * 2) + 1)


def inaccurate_sum():
    @rewrite("sum", family="user", equation="sum(x - y) -> sum(x) - sum(y)", needs=["sub"],
             examples=lambda: [sum_(leaf("f64", 3) - leaf("f64", 3), axes=(0,))])
    def wrong(v):
        """Small sums lose their digits beside a large number."""
        (x,) = v.operands
        if x.op.name != "sub":
            return None
        first, second = (sum_(o, axes=v.attrs["axes"]) + 64.0 for o in x.operands)
        return first - second


def another_gradient():
    @rule
    def wrong(x):
        """The same number, but it does not vary."""
        return atan(tanh(x)), atan2(stop_gradient(tanh(x)), 1.0)


def makes_nan():
    @rule(domain={"x": (0.0, 1e300)})
    def wrong(x):
        """0 / 0 where the left side is 1."""
        return cos(sin(x)) + sqrt(abs_(x)), (cos(sin(x)) * x + sqrt(abs_(x)) * x) / x


def loses_nan():
    @rule
    def wrong(x):
        """A nan is no number."""
        return minimum(maximum(x, 2.0), 1.0), 1.0


def left_side_not_canonical():
    @rewrite("sub", family="user", equation="x - 2 -> x + -2", examples=lambda: [leaf("f64", 3) - 2.0])
    def wrong(v):
        """canonicalize leaves no difference with a number."""
        return v.operands[0] + splat(-2.0, v.type) if splat_of(v.operands[1]) is not None else None


def misses_hidden_numbers():
    @rewrite("sin", family="user", equation="sin(tanh(x) * 3) -> sin(3 * tanh(x) + 0)",
             examples=lambda: [sin(tanh(leaf("f64", 3)) * 3.0)])
    def wrong(v):
        """Looks at how the number is spread, which says nothing."""
        (x,) = v.operands
        if x.op.name != "mul" or x.operands[1].op.name != "broadcast" or x.operands[1].operands[0].ndim:
            return None
        return cos(tanh(v)) if x.operands[1].attrs["axes"] == (0,) else None


def never_ends():
    @rule
    def there(x):
        """One way."""
        return atan(sin(x)), atan2(sin(x), 1.0)

    @rule
    def wrong(x):
        """And back."""
        return atan2(sin(x), 1.0), atan(sin(x))


def fires_on_all():
    @rewrite("div", family="user", equation="x / 5 -> x * 0.2", examples=lambda: [tanh(leaf("f64", 3)) / 5.0])
    def wrong(v):
        """Does not look at the number."""
        return v.operands[0] * 0.2 if splat_of(v.operands[1]) is not None else None


def wrong_when_empty():
    @rewrite("prod", family="user", equation="prod(broadcast(x)) -> x * x", examples=lambda: [
        prod(broadcast(leaf("f64", 3), axes=(0,), shape=(3, 2)), axes=(1,))])
    def wrong(v):
        """The product of two, but also of none and of one."""
        (x,) = v.operands
        fits = x.op is broadcast and v.attrs["axes"] == (1,) and x.operands[0].type is v.type
        return x.operands[0] * x.operands[0] if fits else None


def says_what_it_misses():
    @rule(misses=lambda: [atan(sin(leaf()))])
    def wrong(x):
        """Fires on what it says it does not."""
        return atan(sin(x)), atan2(sin(x), 1.0)


def not_as_users_write_it():
    @rule(written=lambda sc: sc.sin(sc.vector("x")))
    def wrong(x):
        """Another form than it says."""
        return atan(sin(x)), atan2(sin(x), 1.0)


WRONG = {
    claims_too_much: "claims to be exact",
    exact_but_for_zeros: "claims to be exact",
    off_by_little: "ulp off",
    another_shape: "becomes",
    another_dtype: "becomes",
    claims_a_kind_it_has_not: "claims dtype kinds",
    inaccurate_where_large: "ulp off|makes nan",
    inaccurate_sum: "ulp off",
    another_gradient: "the gradient of",
    makes_nan: "makes nan",
    loses_nan: "loses a nan",
    left_side_not_canonical: "does not fire on the canonical form",
    misses_hidden_numbers: "does not fire",
    never_ends: "back into|changes when|firings",
    wrong_when_empty: "0 for 2|1 for 2",
    fires_on_all: r"\(5.0 \+ 1\)",
    says_what_it_misses: "which it says it does not",
    not_as_users_write_it: "does not fire in the default pipeline",
}


@pytest.mark.parametrize("plant,message", WRONG.items(), ids=[f.__name__ for f in WRONG])
def test_what_is_wrong_is_found(plant, message):
    with temporary_rules(), pytest.raises((AssertionError, InternalError, PipelineError), match=message):
        plant()
        check_rule("wrong")


def test_rules_that_undo_each_other_are_found():
    with temporary_rules():

        @rule
        def there(x):
            """One way."""
            return sin(cos(x)), cos(sin(x))

        @rule
        def back(x):
            """And back."""
            return cos(sin(x)), sin(cos(x))

        x = leaf()
        out = optimize(as_function(sin(cos(x))), "simplify")
        assert out.provenance.disabled


def test_registration_rejects_what_cannot_work():
    with temporary_rules():
        with pytest.raises(PipelineError, match="would never end"):

            @rule
            def endless(x):
                """Contains itself."""
                return sin(x), sin(x) + 1

        with pytest.raises(PipelineError, match="canonicalize already"):

            @rule
            def leaf_only(x):
                """Nothing is left of its left side."""
                return neg(neg(x)), x

        with pytest.raises(PipelineError, match="already called"):

            @rewrite("exp")
            def log_one_plus(v):
                """A name that is taken."""
                return None


def test_a_failing_rule_is_disabled_and_recorded():
    with temporary_rules():

        @rewrite("sin", family="user")
        def broken(v):
            """Raises."""
            raise ZeroDivisionError("oops")

        f = as_function(sin(leaf()))
        out = optimize(f, "simplify")
        assert out.function.body is f.body and isinstance(out.provenance.disabled["broken"], ZeroDivisionError)
        with pytest.raises(ZeroDivisionError):
            optimize(f, "simplify", strict=True)
    assert "broken" not in names(all_rules())


def test_a_user_rule_runs_in_simplify_and_can_be_taken_out():
    @rule
    def mine(x):
        """For this test."""
        return tanh(sin(x)), sin(tanh(x))

    try:
        check_name = optimize(as_function(tanh(sin(leaf("f32", 3))))).provenance.count("mine")
        assert mine.family == "user" and check_name == 1
    finally:
        unregister("mine")
    with pytest.raises(PipelineError, match="did you mean"):
        lookup_rule("log_one_pluss")


# --- one rule, all spellings ------------------------------------------------------------------------------------------

X = lambda: leaf("f64", size_name("n"))
SPELLINGS = {
    "log_one_plus": [
        lambda x: log(1 + x),
        lambda x: log(x + 1),
        lambda x: log(x - -1),
        lambda x: log(1 - -x),
        lambda x: log(2 * x / 2 + 1),
    ],
    "one_minus_exp": [
        lambda x: 1 - exp(x),
        lambda x: -1 * exp(x) + 1,
        lambda x: 1 + -exp(x),
        lambda x: 1 - exp(x) + tanh(x),
    ],
    "log_one_minus_exp": [lambda x: log(1 - exp(x)), lambda x: log(1 + -1 * exp(x)), lambda x: log1p(-1 * exp(x))],
    "reciprocal_one_plus_exp": [
        lambda x: 1 / (1 + exp(-x)),
        lambda x: (1 + exp(-x)) ** -1,
        lambda x: tanh(x) / (exp(-x) + 1),
    ],
    "exp_over_one_plus_exp": [
        lambda x: exp(x) / (1 + exp(x)),
        lambda x: 3 * exp(x) / (exp(x) + 1),
        lambda x: exp(x) * (1 / (1 + exp(x))),
    ],
    "twice_sinh": [
        lambda x: (exp(x) - exp(-x)) / 2,
        lambda x: 0.5 * (exp(x) - exp(-x)),
        lambda x: 0.5 * (exp(x) + -1 * exp(-1 * x)),
    ],
    "sqrt_of_two_squares": [lambda x: (x * x + tanh(x) ** 2) ** 0.5],
    "log_sigmoid": [lambda x: log(1 / (1 + exp(-x)))],
}
WAYS = [(name, k) for name, ways in SPELLINGS.items() for k in range(len(ways))]


@pytest.mark.parametrize("name,k", WAYS, ids=[f"{n}-{k}" for n, k in WAYS])
def test_no_spelling_is_missed(name, k):
    out = optimize(as_function(SPELLINGS[name][k](X())), UNFUSED, strict=True)
    fired = {f.rule for f in out.provenance.firings}
    ours = {"log_one_minus_exp": {"log_one_minus_exp", "log_minus_expm1"}}.get(name, {name})
    ours |= {"exp_times_sigmoid"} if name == "exp_over_one_plus_exp" else set()
    assert fired & ours, sorted(fired)


def test_a_number_behind_a_broadcast_is_a_number():
    n = size_name("n")
    x = leaf("f32", n)
    v = log(broadcast(exp(x), axes=(1,), shape=(4, n)) + 1)
    out = optimize(as_function(v), "stabilize").function.body.results[0]
    assert out.op.name == "broadcast" and out.operands[0].op is softplus


# --- explanations -----------------------------------------------------------------------------------------------------


def test_explain_names_rules():
    out = optimize(as_function(log(1 + exp(leaf()))), UNFUSED.split(",decompose")[0])
    text = out.provenance.explain(out.function.body.results[0])
    assert "log_one_plus_exp" in text and "softplus" in text


def test_why_not_names_the_nearest_match():
    out = optimize(as_function(log(2 + exp(leaf()))), "stabilize")
    text = why_not(out, "log_one_plus")
    assert "wants 1.0" in text and "2.0" in text
    assert "there is no mul or div" in why_not(out, "sinh_over_cosh")
    assert "pass fold is not in the pipeline" in why_not(out, "fold")
    with pytest.raises(PipelineError, match="did you mean 'log_one_plus'"):
        why_not(out, "log_one_plu")


# --- probes: right where the user's form is not -----------------------------------------------------------------------

PROBES = {
    "log1p": (lambda x: log(1 + x), 1e-18, 1e-18),
    "softplus": (lambda x: log(1 + exp(x)), 800.0, 800.0),
    "log_sigmoid": (lambda x: log(sigmoid(x)), -800.0, -800.0),
    "log1msigmoid": (lambda x: log(1 - sigmoid(x)), 800.0, -800.0),
    "tanh": (lambda x: (exp(x) - exp(-x)) / (exp(x) + exp(-x)), 800.0, 1.0),
    "versine": (lambda x: 1 - cos(x), 1e-9, 5e-19),
    "expm1": (lambda x: exp(x) - 1, 1e-17, 1e-17),
    "sigmoid": (lambda x: exp(x) / (1 + exp(x)), 800.0, 1.0),
}


@pytest.mark.parametrize("name", PROBES)
def test_probes_are_right_where_the_users_form_is_not(name):
    build, at, want = PROBES[name]
    f = as_function(build(leaf()))
    from symc.ir.reference import evaluate_function

    (naive,), (got,) = [evaluate_function(g, [np.asarray(at)]) for g in (f, optimize(f, UNFUSED).function)]
    assert np.isclose(got, want, rtol=1e-12, atol=0) and not np.isclose(naive, want, rtol=1e-6, atol=0)


def test_an_exponential_is_not_negative():
    """Not for the log of -0.0 either, whatever rules make of the sign of zero."""
    from symc.ir.reference import evaluate_function

    x = leaf("f64", 4)
    f = optimize(function("f", [(x, Input("x", x.type))], [exp(-log(maximum(x, x * 0.0)))]), UNFUSED, strict=True)
    assert "exp_of_minus_log" in {x.rule for x in f.provenance.firings}
    with np.errstate(all="ignore"):
        (got,) = evaluate_function(f.function, [np.array([-1.0, 0.0, 2.0, -0.0])])
    assert list(got) == [np.inf, np.inf, 0.5, np.inf]


def logs_of_weighted_sums():
    x, vector, matrix = leaf("f64", 3), leaf("f64", 3), leaf("f64", 3, 2)
    columns = broadcast(x, axes=(0,), shape=(3, 2))
    product = dot(exp(x), exp(matrix) + 1, contract=((0,), (0,)), batch=((), ()))
    return [(x, vector, log(sum_(exp(x) * vector, axes=(0,)))), (x, matrix, log(product)),
            (x, matrix, log(sum_(exp(columns) * matrix, axes=(0,))))]


@pytest.mark.parametrize("k", range(3))
def test_an_infinite_weight_makes_no_nan(k):
    """exp(x - m) may be 0, and inf * 0 is nan."""
    from symc.ir.reference import evaluate_function

    x, w, y = logs_of_weighted_sums()[k]
    f = function("f", [(x, Input("x", x.type)), (w, Input("w", w.type))], [y])
    g = optimize(f, UNFUSED, strict=True)
    assert {"log_dot_exp", "log_sum_weighted_exp"} & {x.rule for x in g.provenance.firings}
    weights = np.array([[1.0, 1.0], [np.inf, 2.0], [1.0, 3.0]])
    for exponents in ([500.0, -500.0, 0.0], [1.0, 2.0, 3.0]):
        arrays = [np.array(exponents), np.log(weights) if k == 1 else weights if k else weights[:, 0]]
        with np.errstate(all="ignore"):
            (want,), (got,) = evaluate_function(f, arrays), evaluate_function(g.function, arrays)
        np.testing.assert_allclose(got, want, 1e-13)
        assert np.ravel(got)[0] == np.inf


def test_idempotent_order_ops_fold_for_ties():
    x = X()
    assert optimize(as_function(maximum(x, x)), "canonicalize").function.body.results[0].op.name == "param"


@pytest.mark.parametrize("dtype", ["f64", "i64", "c128", "bool"])
def test_bools_that_were_numbers_are_bools(dtype):
    """A rule for numbers may see a bool beside them, but not bools alone."""
    x = leaf(dtype, 3)
    was = cast(x, dtype=np.dtype(bool))
    results = [op(*[was] * n) for op, n in OF_BOOLS]
    assert len(results) > 10
    optimize(function("f", [(x, Input("x", x.type))], results), UNFUSED, strict=True)
