# mypy: ignore-errors
"""Sections: parts of a plan that threads of the pool interpret at the same time.

A section knows no Python. At an instruction that may need it (a step that fails, a look at signals) it stops, and when
no thread runs any more, that of the call does what the instruction asks for: looks at signals, after which all go on;
else it takes one section after the other to its end. So what fails first in the sequence of the plan is what is raised,
and nobody waits for a thread that has the GIL.
"""

from __future__ import annotations

from symc.codegen.language.helpers import called, plain
from symc.codegen.language.names import i64
from symc.codegen.language.native import Outside, Texts, address, array, memory, pointer
from symc.runtime.cpu.native.instructions import FAILED, PULSE_STEP, Op, Section, Word
from symc.runtime.cpu.native.pool_words import Pool

#: The place of a section that has ended.
ENDED = -1
in_parallel, interpreter, python_step = Outside("", "vpppllllll"), Outside("", "lplp"), Outside("", "vpl")


def texts(part: str) -> Texts:
    return {"sections": (sections, {})}


@plain
def sections(data: array[i64], first: i64, n: i64, threads: i64, targets: array[i64], interpret: i64, python: i64):
    """Run the n sections whose code is at the targets, each by one thread, until all have ended: 0, or what stopped the
    run. The words from ``first`` on say where each is. ``interpret``, ``python``: functions of the interpreter."""
    places, code, args, pool = data[first:], data[data[0] :], memory(i64, 5), pointer(i64, data[Word.POOL])
    for k in range(n):
        places[k] = targets[k]
    args[2], args[3], args[4] = address(data), address(places), interpret
    asks = 1
    while asks == 1:
        args[0], args[1] = 0, n
        in_parallel(pool[Pool.PARALLEL], pool, run_range, args, 5, n, 1, threads, n, 0)
        asks = 0  # 1: those left ask for a look at signals, more: some ask for Python
        for k in range(n):
            if places[k] >= 0:
                asks |= 3 if code[places[k]] == Op.CALLBACK else 1
        if asks == 1:
            status = in_python(data, python, PULSE_STEP)
            if status != 0:
                return status
    for k in range(n):
        while places[k] >= 0:
            at = places[k]
            callback = code[at] == Op.CALLBACK
            failed = in_python(data, python, code[at + 1] if callback else PULSE_STEP)
            if failed != 0:
                return failed
            places[k] = at + 2 if callback else at
            args[0], args[1] = k, k + 1
            run_range(args)
    return i64(0)


@called
def run_range(args: array[i64]):
    """Interpret those of a range of sections that have not ended. ``args``: begin, end, data, places, interpreter."""
    data, places, own = pointer(i64, args[2]), pointer(i64, args[3]), memory(i64, 2)
    for k in range(args[0], args[1]):
        if places[k] >= 0:
            own[Section.LEFT] = data[Word.LEFT]
            status = interpreter(args[4], data, places[k], own)
            places[k] = ENDED if status == 0 else own[Section.PLACE]


@called
def in_python(data, python, number):
    """Call Python. Whatever goes wrong there, even in the call itself, leaves the word FAILED as it is."""
    data[Word.FAILED] = FAILED
    python_step(python, data, number)
    return data[Word.FAILED]
