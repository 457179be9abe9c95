"""The language of kernels: its library is Python functions that are read, and names mean what they mean there."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import subprocess
import sys

import pytest

from symc.codegen.cpu.intrinsics import template
from symc.codegen.language import names, syntax
from symc.codegen.language.helpers import Helper, Widths, both, written_out
from symc.ir.op import all_ops
from symc.runtime.compilers.llvm_primitives import primitive
from symc.runtime.library import MODULE_OF, helper, meaning

MODULES = {m: importlib.import_module(f"symc.runtime.library.{m}") for m in sorted(set(MODULE_OF.values()))}
NAMED = [x for m, found in MODULES.items() for x in vars(found).values() if isinstance(x, Helper | Widths)
         and x.module == m]
HELPERS = [*dict.fromkeys(h for x in NAMED for h in ([x] if isinstance(x, Helper) else [x.wide, x.narrow]))]


@pytest.mark.parametrize("name", MODULE_OF)
def test_the_index_says_where_functions_are(name):
    assert helper(name) is vars(MODULES[MODULE_OF[name]])[name] and helper(name).module == MODULE_OF[name]
    assert helper(name).name == name


@pytest.mark.parametrize("module", MODULES)
def test_a_function_is_read_as_python_reads_it(module):
    whole = ast.parse(inspect.getsource(MODULES[module]))
    found = {f.name: f for f in whole.body if isinstance(f, ast.FunctionDef)}
    own = {h.function.__name__: h for h in HELPERS if h.module == module and h.bits != 32}
    assert set(own) == set(found), "every function is of the language"
    for name, tree in found.items():
        body = written_out(tree, own[name].scope).body[ast.get_docstring(tree) is not None:]
        assert ast.dump(ast.Module(own[name].tree.body, [])) == ast.dump(ast.Module(body, []))
        assert own[name].operands == [a.arg for a in tree.args.args]


NUMBER64, NUMBER32, PI = 0.1, names.f32(0.1), 3.14


@both
def sample(x):
    y = float64_of(bits64(x * PI) << 1)  # noqa: F821
    return f64(y + NUMBER64) * 2.0 if y < -0.5 else sample(y)  # noqa: F821


def test_one_text_serves_both_widths():
    assert ast.unparse(sample.wide.tree).splitlines()[0] == "def _sample64(x):"
    assert ast.unparse(sample.narrow.tree).splitlines() == [
        "def _sample32(x):", "    y = float32_of(i32(bits32(x * f32(PI)) << 1))",
        "    return f32(y + NUMBER32) * f32(2.0) if y < -f32(0.5) else sample(y)"]


def test_polynomials_are_written_out():
    scope = {**vars(names), "TABLE": (4.0, 5.0, 6.0)}
    tree = syntax.function("def f(x):\n    y = horner(x, 1, -2.0, x)\n    return horner(y, 3) + fused_horner(y, TABLE)")
    assert ast.unparse(written_out(tree, scope)).splitlines()[1:] == [
        "    y = (1 * x + -2.0) * x + x", "    return 3 + fma(fma(TABLE[2], y, TABLE[1]), y, TABLE[0])"]


def test_names_of_functions_are_one_thing_each():
    """They are names in C++ and C, where there are no modules."""
    assert len({h.name for h in HELPERS}) == len(HELPERS)


@pytest.mark.parametrize("h", HELPERS, ids=lambda h: h.name)
def test_functions_name_nothing_that_is_unknown(h):
    for name in h.function.__code__.co_names:
        known = name in h.scope or name in vars(builtins) or name in ("real", "imag", "conjugate")
        assert known or hasattr(h.scope["math"], name), name
        x = h.scope.get(name)
        if isinstance(x, names.Primitive):
            assert primitive(name) is not None and x.name == name
        assert x is None or isinstance(x, Helper | Widths | names.Primitive | type) or not callable(x), name


def test_texts_of_ops_call_what_is_known():
    for op in all_ops():
        for kind in ("b", "i", "u", "f", "half", "c"):
            form = template(op.name, kind)
            if form is None or op.facts.custom:
                continue
            attrs = {k: 1 for k in ("order", "power")}
            for node in ast.walk(ast.parse(form.format(*"uvwxyz", **attrs))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    assert primitive(node.func.id) or helper(node.func.id), f"{op.name}: {node.func.id}"


def test_unknown_names_mean_nothing():
    assert meaning("nowhere") is None and helper("INF") is None


def test_a_function_costs_what_it_needs():
    """Its module alone is imported, nothing of it is parsed before it is asked for, and no compiler is there."""
    code = ("import ast, sys; parse, count = ast.parse, []\n"
            "def counted(*given): count.append(1); return parse(*given)\n"
            "ast.parse = counted\n"
            "from symc.runtime.library import helper\n"
            "found = helper('exp'); print(len(count)); found.wide.tree; print(len(count))\n"
            "print(*sorted(m for m in sys.modules if m.startswith('symc.runtime.library.')))\n"
            "print('numba' in sys.modules or 'llvmlite' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1", "symc.runtime.library.math", "False"]


@pytest.mark.parametrize("shared", ["a[0]", "a + 1", "a and b", "not a", "a < b"])
def test_notes_on_nodes_that_all_trees_share_do_not_matter(shared):
    """Tools that show tracebacks give nodes a parent; those without fields (operators, uses of names) are one object in
    all trees, and no part of what is read."""
    tree = syntax.function(f"def f(a, b):\n    return {shared}")
    wanted = syntax.every(tree)
    assert len(wanted) == len([n for n in ast.walk(tree) if n._fields or isinstance(n, ast.arguments | ast.arg)])
    marked = [n for n in ast.walk(tree) if not n._fields]
    assert marked
    for n in marked:
        n.parent = tree
    try:
        assert syntax.every(tree) == wanted
    finally:
        for n in set(marked):
            del n.parent
