"""The CUDA C++ of a few kernels, as it is to be read: ``golden/*.cu``. After a change, write them again and read the
difference: ``python -m tests.cuda.test_golden``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import symc as sc
from symc.codegen.cuda.templates import family
from symc.codegen.kernel.source import kernel_form_of
from symc.ir.size_values import evaluate

FOLDER = Path(__file__).parent / "golden"
SIZES = {"n": 4096, "m": 1024, "v": 30_000}

x, y = (sc.input(name, "float32", ("n", "m")) for name in "xy")
b, z = sc.input("b", "float32", ("m",)), sc.input("z", "float32", ("m", "n"))
w, i = sc.input("w", "float32", ("v", "m")), sc.input("i", "int64", ("n",))

PROGRAMS: dict[str, Callable[[], tuple]] = {
    "bias": lambda: (sc.maximum(x + b, 0), [x, b]),
    "bias_gradient": lambda: (sc.grad(sc.sum(sc.tanh(x + b) * y), [x, b]), [x, b, y]),
    "column_sum": lambda: (sc.sum(x * x, axis=0), [x]),
    "embedding_gradient": lambda: (sc.grad(sc.sum(sc.take(w, i, axis=0) * y), w), [w, i, y]),
    "softmax": lambda: (sc.softmax(x, axis=1), [x]),
    "sum": lambda: (sc.sum(x * y), [x, y]),
    "transposed": lambda: (x + z.T, [x, z]),
}


def text_of(name: str) -> str:
    """The last kernel of a program."""
    plan = sc.compile(*PROGRAMS[name]())._compilation.plan
    form = kernel_form_of([s for s in plan.steps if s.kind == "launch"][-1])
    variants = family(form)
    choice = variants.choose(lambda s: evaluate(s, SIZES))
    return f"// {choice}\n{variants.source(choice, name).text}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name):
    assert text_of(name) == (FOLDER / f"{name}.cu").read_text(), "python -m tests.cuda.test_golden writes them again"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for program in PROGRAMS:
        (FOLDER / f"{program}.cu").write_text(text_of(program))
