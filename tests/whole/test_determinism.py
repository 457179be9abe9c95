"""Two processes with different hash seeds make the same text of everything: values, plans, kernels and their keys."""

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import symc as sc

ROOT = Path(__file__).parents[2]

SHOW = """
import hashlib, sys
from symc.codegen.kernel.source import kernel_form_of, kernel_source
from symc.codegen.plan.planner import make_plan
from symc.codegen.plan.text import print_plan
from symc.opt import DEFAULT, optimize

def steps_of(plan):
    for step in plan.steps:
        yield step
        for body in step.bodies:
            yield from steps_of(body)

def show(name, f):
    out = optimize(f, DEFAULT)
    for stage, g in out.stages.items():
        print(name, stage, hashlib.blake2b(str(g).encode(), digest_size=8).hexdigest())
    print(out.function)
    print(out.provenance.explain())
    plan = make_plan(out.function, frozenset(f.updates))
    print(print_plan(plan))
    for step in steps_of(plan):
        print(step.value.fingerprint.hex())
        if step.kind == "launch":
            print(kernel_source(kernel_form_of(step)).text)
"""

RANDOM = SHOW + """
from symc.testing.fuzz import random_function
for seed in range(12):
    show(f"random {seed}", random_function(seed, 16))
"""

SCRIPT = RANDOM + """
import contextlib, importlib, io
import symc as sc

class Enough(Exception):
    pass

compile_ = sc.compile
def compile_and_show(*args, **kwargs):
    f = compile_(*args, **{**kwargs, "mode": "reference"})
    if hasattr(f, "_compilation"):
        show(f.name, f._compilation.source)
    def call(*args, **kwargs):
        raise Enough
    type(f).__call__ = call
    return f
sc.compile = compile_and_show
sys.stdout.reconfigure(line_buffering=True)
for name in ("hello", "logistic_regression", "rosenbrock", "custom_op", "custom_rule", "newton", "kalman", "hmc",
             "char_lstm", "mlp_digits", "gaussian_process"):
    module = importlib.import_module("examples." + name)
    module.compile = compile_and_show
    print("= example", name)
    try:
        module.main()
    except Enough:
        pass
"""


def run(script, seed):
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_hash_seeds_change_nothing():
    first, second = run(SCRIPT, "1"), run(SCRIPT, "4242")
    drawn, *examples = first.split("= example ")
    for part in drawn, "".join(examples[:8]), "".join(examples[8:]):
        assert part.count("func @") >= 3 and "def kernel(" in part and "plan @" in part
    if first != second:
        lines = list(difflib.unified_diff(first.splitlines(), second.splitlines(), lineterm="", n=1))
        pytest.fail("\n".join(lines[:30]))


def test_a_program_does_not_depend_on_what_was_made_before():
    """Neither the graph, nor the gradient, nor what they become: leaves are numbered through, and only order counts."""

    def text():
        e = sc.input("e", "float64", shape=(50, 8))
        a, b, c = (sc.input(k, "int64", shape=("n",)) for k in "abc")
        f = sc.compile(sc.grad(sc.sum(sc.tanh(e[a]) * e[b] + sc.exp(e[c])), e), [e, a, b, c])
        return re.sub(r"\s*//.*", "", f.dump("input") + f.dump() + f.plan)

    texts = set()
    for _ in range(6):
        texts.add(text())
        sc.vector("another")
    assert len(texts) == 1
