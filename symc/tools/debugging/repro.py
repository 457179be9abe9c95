"""A self-contained script that shows what is wrong: IR text, arrays as literals, and what is compared. Data only.

It is a test, too: pytest collects it, and ``python FILE`` runs it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from symc.ir.attrs import Array
from symc.ir.dtypes import described
from symc.ir.literal import INLINE_ELEMENTS
from symc.ir.text import print_function
from symc.ir.traverse import every_value
from symc.tools.debugging.sample import Sample

#: Arrays of more elements go into an .npz file beside the script.
MOST_LITERALS = 200

PASS = '''
    program = optimize(function, {pipeline!r}).function
    got = evaluate_function(program, arrays)
    difference = Oracle(function, arrays).difference(got)
'''
NATIVE = '''
    program = Native(function, frozenset({donated!r}))
    got = program.run(arrays)
    again = program.run(arrays)
    difference = Oracle(function, arrays).difference(got) or Oracle(function, arrays).difference(again)
'''
CHECK = '''
    blame = CHECKS[{check!r}](Trial(function, [tuple(arrays)], frozenset({donated!r}), 0.0))
    difference = None if blame is None else blame.difference or blame.error
'''
CALL = '''
    program = Native(optimize(function, {pipeline!r}).function, frozenset({donated!r}))
    got = program.run(arrays)
    print(*got, sep="\\n")
    difference = Oracle(function, arrays).difference(got)
'''
IMPORTS = {
    "call": "from symc.opt import optimize\nfrom symc.tools.debugging.native import Native\n"
            "from symc.tools.debugging.tolerance import Oracle",
    "check": "from symc.testing.fuzz import derivatives  # noqa: F401 - declares checks\n"
             "from symc.testing.fuzz.checks import CHECKS, Trial",
    "pass": "from symc.tools.debugging.tolerance import Oracle\nfrom symc.ir.reference import evaluate_function\n"
            "from symc.opt import optimize",
    "native": "from symc.tools.debugging.native import Native\nfrom symc.tools.debugging.tolerance import Oracle",
}  # fmt: skip
SCRIPT = '''"""{headline}

{details}
"""

{stdlib}import numpy as np

import symc as sc
{imports}

TEXT = """
{text}"""


def arrays_and_constants():
    """What the function is called on, and the constants that its text names."""
{data}


def test_results_are_the_references():
    arrays, constants = arrays_and_constants()
    function = sc.parse(TEXT, constants)
{run}    assert difference is None, difference


if __name__ == "__main__":
    test_results_are_the_references()
    print({end!r})
'''


def write_repro(path: str | os.PathLike[str], s: Sample, headline: str, details: str, *, pipeline: str | None,
                check: str | None = None, call: bool = False) -> Path:
    """Write a script about a function that is wrong after ``pipeline``, or (None) natively; the path written.

    ``check``: the name of a check of the fuzzer that it fails instead. ``call``: nothing is known to be wrong; the
    script calls what the pipeline and the backend make of it.
    """
    path = Path(path)
    constants = _constants(s)
    literal = sum(a.size for a in [*s.arrays, *constants.values()]) <= MOST_LITERALS
    if not literal:
        named = {f"input_{k}": a for k, a in enumerate(s.arrays)} | {f"constant_{d}": a for d, a in constants.items()}
        np.savez(path.with_suffix(".npz"), **{n: described(a) for n, a in named.items()})  # type: ignore[arg-type]
    kind = "call" if call else "check" if check is not None else "native" if pipeline is None else "pass"
    body = {"check": CHECK, "native": NATIVE, "pass": PASS, "call": CALL}[kind]
    run = body.format(donated=sorted(s.donated), pipeline=pipeline, check=check)
    text = SCRIPT.format(
        headline=headline.replace('"""', "'''"), details=details.replace('"""', "'''").replace("\\", "/").strip(),
        imports=IMPORTS[kind] + "\nfrom symc.ir.dtypes import undescribed" * (not literal), run=run.lstrip("\n"),
        text=print_function(s.function, locations=False), stdlib="" if literal else "from pathlib import Path\n\n",
        end="the results are those of the references" if call else "nothing is wrong any more",
        data=_literals(s.arrays, constants) if literal else _from_file(path.with_suffix(".npz").name, len(s.arrays)),
    )
    path.write_text(text, "utf-8")
    return path


def _constants(s: Sample) -> dict[str, np.ndarray]:
    """Constants that the text names by their digest only."""
    found: dict[str, np.ndarray] = {}
    for v in every_value(s.function.body):
        for a in v.attrs.values():
            if isinstance(a, Array) and a.data.size > INLINE_ELEMENTS:
                found[a.digest.hex()] = a.data
    return found


def _literals(arrays: Sequence[np.ndarray], constants: dict[str, np.ndarray]) -> str:
    rows = [f"        {literal(a)}," for a in arrays]
    named = [f"        {d!r}: {literal(a)}," for d, a in constants.items()]
    special = "    inf, nan = np.inf, np.nan\n" if any(a.dtype.kind in "fc" and not np.isfinite(a).all()
                                                      for a in [*arrays, *constants.values()]) else ""
    inputs = "\n".join(["    arrays = [", *rows, "    ]"]) if rows else "    arrays = []"
    table = "\n".join(["    constants = {", *named, "    }"]) if named else "    constants = {}"
    return f"{special}{inputs}\n{table}\n    return arrays, constants"


def literal(a: np.ndarray) -> str:
    """An array as an expression, every bit of it but the payloads of nans."""
    a = np.asarray(a)
    if a.dtype.kind == "c":
        return f"{literal(a.real)} + 1j * {literal(a.imag)}"
    shape = "" if a.ndim == 1 and a.size else f".reshape({a.shape})"
    return f"np.array({a.ravel().tolist()!r}, {a.dtype.name!r}){shape}"


def _from_file(name: str, count: int) -> str:
    return f'''    with np.load(Path(__file__).with_name({name!r}), allow_pickle=False) as file:
        arrays = [undescribed(file[f"input_{{k}}"]) for k in range({count})]
        constants = {{k.removeprefix("constant_"): undescribed(file[k]) for k in file.files
                     if k.startswith("constant_")}}
    return arrays, constants'''
