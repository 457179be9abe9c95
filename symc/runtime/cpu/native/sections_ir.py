"""Sections: parts of a plan that threads of the pool interpret at the same time.

``i64 sections(data, first, n, threads, targets)`` runs the sections whose code is at the targets, each by one thread,
and returns when all have ended: 0, or what stopped the run. The words from ``first`` on say where each is.

A section knows no Python. At an instruction that may need it (a step that fails, a look at signals) it stops, and when
no thread runs any more, that of the call does what the instruction asks for: looks at signals, after which all go on;
else it takes one section after the other to its end. So what fails first in the sequence of the plan is what is raised,
and nobody waits for a thread that has the GIL.
"""

from __future__ import annotations

from typing import Any

from symc.runtime.cpu.native.instructions import PULSE_STEP, Op, Word
from symc.runtime.cpu.native.pool_words import Pool

#: Words of a section that runs: what LEFT is to it, and the place at which it stopped.
LEFT, PLACE, COUNT = 0, 1, 2
#: The place of a section that has ended.
ENDED = -1


def declare(i: Any) -> Any:
    """The function, without a body. ``i``: who writes the interpreter."""
    words = i.i64.as_pointer()
    kind = i.ir.FunctionType(i.i64, [words, i.i64, i.i64, i.i64, words])
    function = i.ir.Function(i.module, kind, "sections")
    function.linkage = "internal"
    function.attributes.add("noinline")  # the interpreter keeps its registers
    return function


def write(i: Any, interpret: Any) -> None:
    """The body of what ``declare`` declares, and ``section``, which the pool runs."""
    section = _write_section(i, interpret)
    i.function = i.run_sections
    i.data, first, n, threads, targets = i.function.args
    b = i.b = i.ir.IRBuilder(i.function.append_basic_block("entry"))
    args = b.alloca(i.i64, 4)

    def place(k: Any) -> Any:
        return i.at(i.data, b.add(first, k))

    i.each(n, lambda k: b.store(b.load(i.at(targets, k), typ=i.i64), place(k)))
    again, look, serve, done = (i.function.append_basic_block(name) for name in ("again", "look", "serve", "done"))
    b.branch(again)
    b.position_at_end(again)
    for k, x in enumerate((i.const(0), n, b.ptrtoint(i.data, i.i64), first)):
        b.store(x, i.at(args, i.const(k)))
    entry = b.ptrtoint(section, i.i64)
    i.of_pool(Pool.PARALLEL, i.void, [entry, args, i.const(4), n, i.const(1), threads, n, i.const(0)])
    code = i.code_of(i.data)

    def asks(k: Any) -> tuple[Any, Any]:
        """Two flags of a section: it has not ended; it asks for Python, and not for a look at signals."""
        at = b.load(place(k), typ=i.i64)
        stopped = b.icmp_signed(">=", at, i.const(0))
        op = b.load(i.at(code, b.select(stopped, at, i.const(0))), typ=i.i64)
        return stopped, b.and_(stopped, b.icmp_unsigned("==", op, i.const(Op.CALLBACK)))

    def one(k: Any, found: Any) -> Any:
        stopped, python = asks(k)
        return b.or_(found, b.or_(b.zext(stopped, i.i64), b.shl(b.zext(python, i.i64), i.const(1))))

    found = i.count(n, one)
    b.cbranch(b.icmp_unsigned("==", found, i.const(0)), done, look)
    b.position_at_end(look)
    pulse = i.function.append_basic_block("pulse")
    b.cbranch(b.icmp_unsigned("==", found, i.const(1)), pulse, serve)
    b.position_at_end(pulse)
    i.in_python(i.const(PULSE_STEP))
    b.branch(again)
    b.position_at_end(serve)

    def finish(k: Any) -> None:
        """Serve a section until it has ended."""
        test, serve_, ended = (i.function.append_basic_block() for _ in range(3))
        b.branch(test)
        b.position_at_end(test)
        stopped, python = asks(k)
        b.cbranch(stopped, serve_, ended)
        b.position_at_end(serve_)
        at = b.load(place(k), typ=i.i64)
        number = b.load(i.at(code, b.add(at, i.const(1))), typ=i.i64)
        i.in_python(b.select(python, number, i.const(PULSE_STEP)))
        b.store(b.add(at, b.select(python, i.const(2), i.const(0))), place(k))
        for j, x in enumerate((k, b.add(k, i.const(1)))):
            b.store(x, i.at(args, i.const(j)))
        b.call(section, [args])
        b.branch(test)
        b.position_at_end(ended)

    i.each(n, finish)
    b.branch(done)
    b.position_at_end(done)
    b.ret(i.const(0))


def _write_section(i: Any, interpret: Any) -> Any:
    """``section(args)``: interpret those of a range of sections that have not ended. ``args``: begin, end, data,
    first."""
    words = i.i64.as_pointer()
    i.function = function = i.ir.Function(i.module, i.ir.FunctionType(i.void, [words]), "section")
    function.linkage = "internal"
    function.attributes.add("noinline")  # the interpreter keeps its registers
    b = i.b = i.ir.IRBuilder(function.append_basic_block("entry"))
    begin, end, data, first = (b.load(i.at(function.args[0], i.const(k)), typ=i.i64) for k in range(4))
    data, own = b.inttoptr(data, words), b.alloca(i.i64, COUNT)

    def one(k: Any) -> None:
        place = i.at(data, b.add(first, b.add(begin, k)))
        at = b.load(place, typ=i.i64)
        with b.if_then(b.icmp_signed(">=", at, i.const(0))):
            b.store(b.load(i.at(data, i.const(Word.LEFT)), typ=i.i64), i.at(own, i.const(LEFT)))
            status = b.call(interpret, [data, at, own])
            ended = b.icmp_unsigned("==", status, i.const(0))
            b.store(b.select(ended, i.const(ENDED), b.load(i.at(own, i.const(PLACE)), typ=i.i64)), place)

    i.each(b.sub(end, begin), one)
    b.ret_void()
    return function
