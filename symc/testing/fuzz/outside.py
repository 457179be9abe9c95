"""Trouble from outside: signals in the middle of calls, and files, text and pickles that somebody else wrote.

What is done to a program follows from its text, so ``--replay`` does it again.
"""

from __future__ import annotations

import hashlib
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from symc.driver.function import CompiledFunction
from symc.driver.read_saved import unpack
from symc.driver.save import pack
from symc.errors import InputError, ParseError
from symc.ir.function import Function, Input, function
from symc.ir.op import lookup
from symc.ir.parse import parse
from symc.ir.text import print_function
from symc.ir.traverse import every_value, replace
from symc.ir.value import Value, fresh_input
from symc.tensors.state import SharedVariable
from symc.testing.child import ENDLESS, in_child
from symc.testing.damage import edited_array, edited_npz, edited_text, mutated_file, scramble, unzipped, used, zipped
from symc.testing.fuzz.checks import REFUSED, Trial, check, compiled, first_wrong, simple
from symc.testing.interrupts import MANY, Alarm, alarm, check_atomic, count_points, interrupted
from symc.tools.debugging.blame import Blame
from symc.tools.debugging.sample import Sample
from symc.tools.debugging.tolerance import Oracle

#: How many states a program is given, and at how many points its call is interrupted.
MOST_STATES, POINTS = 4, 120
#: How many files, texts and arrays are made of a program; how many of them run natively; how long one may run.
MUTANTS, NATIVE_MUTANTS, SECONDS = 12, 4, 5.0


def _random(what: str, f: Function) -> random.Random:
    return random.Random(what + hashlib.sha256(print_function(f, locations=False).encode()).hexdigest())


# --- signals ----------------------------------------------------------------------------------------------------------


def stateful(s: Sample, rng: random.Random) -> tuple[Function, list[np.ndarray], list[np.ndarray]]:
    """The function where some inputs are states, which results of their types or something near themselves replace;
    what it is called with, and what the states are at first."""
    params = s.function.params
    leaves = [fresh_input(p.type) for p in params]
    results = replace(s.function.body.results, dict(zip(params, leaves, strict=True)))
    chosen = rng.sample(range(len(leaves)), rng.randrange(1, min(len(leaves), MOST_STATES) + 1))
    given = [k for k in range(len(leaves)) if k not in chosen]
    interface = [(leaves[k], Input(f"x{k}", leaves[k].type, "state" if k in chosen else "arg"))
                 for k in (*given, *chosen)]
    updates = [(len(given) + j, _next(leaves[k], results, rng)) for j, k in enumerate(chosen)]
    f = function("fuzz", interface, results[: len(s.function.outputs)], updates)
    arrays = [np.asarray(s.arrays[k]) for k in (*given, *chosen)]
    return f, arrays[: len(given)], arrays[len(given) :]


def _next(x: Value, results: Sequence[Value], rng: random.Random) -> Value:
    """The new value of a state."""
    fits = [r for r in results if r.type is x.type]
    if fits and rng.random() < 0.6:
        return rng.choice(fits)
    return lookup("not")(x) if x.dtype.kind == "b" else x + 1


def _interrupted(s: Sample) -> str:
    """Error after signals during calls, the first of all included."""
    rng = _random("signals", s.function)
    f, arrays, start = stateful(s, rng)
    with np.errstate(all="ignore"):
        for mode in ("default", "reference"):
            g = compiled(f, mode, states=start)
            said = _call_is_torn(partial(g, *arrays), list(g.shared.values()), start, rng)
            if said:
                return f"{mode}: {said}"
    return ""


def _call_is_torn(call: Callable[[], Any], states: list[SharedVariable], start: Sequence[np.ndarray],
                  rng: random.Random) -> str:
    def reset() -> None:  # of other states a call may not be defined
        for w, a in zip(states, start, strict=True):
            w.set_value(a)

    interrupted(call, rng.randrange(2000), rng.choice([alarm, signal.default_int_handler]))
    reset()
    call()  # compiles what the interrupted one did not
    reset()
    n = count_points(call, MANY)
    reset()
    try:
        check_atomic(call, states, sorted(rng.sample(range(n), min(n, POINTS))))
    except AssertionError as e:
        return str(e)
    return ""


@check("signals", native=True)
def signals(t: Trial) -> Blame | None:
    """Wherever a call is interrupted, states are old or all new, and the next call works."""
    return first_wrong("signals", t, _interrupted) if t.function.inputs else None


# --- files, text, pickles ---------------------------------------------------------------------------------------------


@contextmanager
def _limit() -> Iterator[None]:
    """An end to what an edit made long. (To what takes for ever, that is no bug.)"""
    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    except (Alarm, MemoryError):
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _file(s: Sample, rng: random.Random) -> tuple[bytes, list[np.ndarray], list[np.ndarray]]:
    """A program with states as a file, what it is called with, and what it gives."""
    f, arrays, start = stateful(s, rng)
    g = compiled(f, states=start)
    data = pack(g, True)
    with np.errstate(all="ignore"):
        return data, arrays, list(g(*arrays))


def _mutant_is_wrong(s: Sample, turn: int) -> str:
    """Error of a file, text or pickle that is damaged or edited, in turn."""
    rng = _random(f"files {turn}", s.function)
    data, arrays, want = _file(s, rng)
    with np.errstate(all="ignore"), _limit():
        if turn % 4 == 0:
            found = used(scramble(data, rng), lambda g: list(g(*arrays)))
            same = found is None or found[1] is None or all(
                np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(found[1], want, strict=True))
            return "" if same else "a damaged file is read as another function"
        if turn % 4 == 1:
            return _edited_text(print_function(s.function, locations=False).encode(), rng)
        if turn % 4 == 2:
            return _edited_state(data, rng)
        used(mutated_file(data, rng), lambda g: g(*arrays))
    return ""


def _edited_text(text: bytes, rng: random.Random) -> str:
    """IR text is refused, or is read as what it says."""
    try:
        f = parse(edited_text(text, rng).decode())
    except (ParseError, InputError):
        return ""
    said = print_function(f, locations=False)
    return "" if print_function(parse(said), locations=False) == said else "edited text is not read as what it says"


def _edited_state(data: bytes, rng: random.Random) -> str:
    """The array of a state in a pickle is of its type, or refused."""
    cell = rng.choice(unpack(data)._cells)
    make, (array, type_, *rest) = cell.__reduce__()
    try:
        new = make(edited_array(array, rng), type_, *rest).get(False)
    except InputError:
        return ""
    return "" if new.dtype == type_.dtype and new.ndim == type_.ndim else f"a state is {new.dtype}{list(new.shape)}"


@check("outside")
def outside(t: Trial) -> Blame | None:
    """Damaged and edited files, text and pickles are refused with InputError, or behave."""
    return _first(t, "outside", MUTANTS, _mutant_is_wrong)


def _first(t: Trial, name: str, turns: int, wrong: Callable[[Sample, int], str]) -> Blame | None:
    endless = any(v.op.name == "while" for v in every_value(t.function.body))  # an edit makes it so
    for oracle in t.oracles[:1] if t.function.inputs and not endless else ():
        for turn in range(turns):
            said = wrong(Sample(t.function, tuple(oracle.arrays)), turn)
            if said:
                return simple(name, t, oracle.arrays, said,
                              lambda s: any(wrong(s, k) == said for k in range(turns)))  # noqa: B023
    return None


def _native_is_wrong(s: Sample, turn: int) -> str:
    """Error of an edited function that is compiled, in a process of its own."""
    rng = _random(f"native {turn}", s.function)
    data, arrays, _ = _file(s, rng)
    members = unzipped(data)
    which = rng.choice(["function.ir", "function.ir", "state.npz"])
    members[which] = (edited_npz if which == "state.npz" else edited_text)(members[which], rng)
    members["meta.json"] = members["meta.json"].replace(b'"reference"', b'"default"')

    def compare(g: CompiledFunction) -> Any:
        source = g._compilation.source
        try:
            oracle = Oracle(source, [*arrays, *[c.get(False) for c in g._cells]])
        except REFUSED:
            return None
        found = list(g(*arrays))
        return oracle.difference([*found, *[g._cells[k - len(arrays)].get(False) for k in source.updates]])

    def work() -> str:
        with np.errstate(all="ignore"), _limit():
            found = used(zipped(members), compare)
            return str(found[1] or "") if found is not None else ""
        return ""

    said = in_child(work, 4 * SECONDS)
    return "" if said == ENDLESS else said


@check("outside_native", native=True)
def outside_native(t: Trial) -> Blame | None:
    """Edited functions touch no memory of others, and mean natively what they mean to the reference."""
    return _first(t, "outside_native", NATIVE_MUTANTS, _native_is_wrong)
