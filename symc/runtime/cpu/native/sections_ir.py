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
    kind = i.ir.FunctionType(i.i64, [i.words, i.i64, i.i64, i.i64, i.words])
    function = i.ir.Function(i.module, kind, "sections")
    function.linkage = "internal"
    function.attributes |= {"noinline", "optnone"}  # the interpreter keeps its registers; this runs once in a while
    return function


def write(i: Any, interpret: Any) -> None:
    """The body of what ``declare`` declares, and ``section``, which the pool runs."""
    section = _write_section(i, interpret)
    i.function = i.run_sections
    i.data, first, n, threads, targets = i.function.args
    b = i.b = i.ir.IRBuilder(i.function.append_basic_block("entry"))
    sections = _Sections(i, section, first, b.alloca(i.i64, 4))
    i.each(n, lambda k: b.store(i.load(targets, k), sections.place(k)))
    again, look, pulse, serve, done = (
        i.function.append_basic_block(name) for name in ("again", "look", "pulse", "serve", "done"))
    b.branch(again)
    b.position_at_end(again)
    found = sections.run(n, threads)
    b.cbranch(i.equal(found, i.const(0)), done, look)
    b.position_at_end(look)
    b.cbranch(i.equal(found, i.const(1)), pulse, serve)
    b.position_at_end(pulse)
    i.in_python(i.const(PULSE_STEP))
    b.branch(again)
    b.position_at_end(serve)
    i.each(n, sections.finish)
    b.branch(done)
    b.position_at_end(done)
    b.ret(i.const(0))


class _Sections:
    """Writes parts of the function. ``args``: words that ``section`` is given, see there."""

    code: Any

    def __init__(self, i: Any, section: Any, first: Any, args: Any):
        self.i, self.section, self.first, self.args = i, section, first, args

    def place(self, k: Any) -> Any:
        """Address of where section k is."""
        return self.i.at(self.i.data, self.i.b.add(self.first, k))

    def run(self, n: Any, threads: Any) -> Any:
        """Run all that have not ended until they stop; 0 if all have ended, 1 if those left ask for a look at signals.
        """
        i, b = self.i, self.i.b
        for k, x in enumerate((i.const(0), n, b.ptrtoint(i.data, i.i64), self.first)):
            b.store(x, i.at(self.args, k))
        entry = b.ptrtoint(self.section, i.i64)
        i.of_pool(Pool.PARALLEL, i.void, [entry, self.args, i.const(4), n, i.const(1), threads, n, i.const(0)])
        self.code = i.code_of(i.data)

        def one(k: Any, found: Any) -> Any:
            stopped, python = self.asks(k)
            return b.or_(found, b.or_(b.zext(stopped, i.i64), b.shl(b.zext(python, i.i64), i.const(1))))

        return i.fold(n, i.const(0), one)

    def asks(self, k: Any) -> tuple[Any, Any]:
        """Two flags of a section: it has not ended; it asks for Python, and not for a look at signals."""
        i, b = self.i, self.i.b
        at = b.load(self.place(k), typ=i.i64)
        stopped = b.icmp_signed(">=", at, i.const(0))
        op = i.load(self.code, b.select(stopped, at, i.const(0)))
        return stopped, b.and_(stopped, i.equal(op, i.const(Op.CALLBACK)))

    def finish(self, k: Any) -> None:
        """Serve a section until it has ended."""
        i, b = self.i, self.i.b
        test, serve, ended = (i.function.append_basic_block() for _ in range(3))
        b.branch(test)
        b.position_at_end(test)
        stopped, python = self.asks(k)
        b.cbranch(stopped, serve, ended)
        b.position_at_end(serve)
        at = b.load(self.place(k), typ=i.i64)
        number = i.load(self.code, b.add(at, i.const(1)))
        i.in_python(b.select(python, number, i.const(PULSE_STEP)))
        b.store(b.add(at, b.select(python, i.const(2), i.const(0))), self.place(k))
        for j, x in enumerate((k, b.add(k, i.const(1)))):
            b.store(x, i.at(self.args, j))
        b.call(self.section, [self.args])
        b.branch(test)
        b.position_at_end(ended)


def _write_section(i: Any, interpret: Any) -> Any:
    """``section(args)``: interpret those of a range of sections that have not ended. ``args``: begin, end, data,
    first."""
    i.function = function = i.ir.Function(i.module, i.ir.FunctionType(i.void, [i.words]), "section")
    function.linkage = "internal"
    function.attributes |= {"noinline", "optnone"}  # the interpreter keeps its registers; this runs once in a while
    b = i.b = i.ir.IRBuilder(function.append_basic_block("entry"))
    begin, end, data, first = (i.load(function.args[0], k) for k in range(4))
    data, own = i.pointer(data), b.alloca(i.i64, COUNT)

    def one(k: Any) -> None:
        place = i.at(data, b.add(first, b.add(begin, k)))
        at = b.load(place, typ=i.i64)
        with b.if_then(b.icmp_signed(">=", at, i.const(0))):
            b.store(i.load(data, Word.LEFT), i.at(own, LEFT))
            status = b.call(interpret, [data, at, own])
            ended = i.equal(status, i.const(0))
            b.store(b.select(ended, i.const(ENDED), i.load(own, PLACE)), place)

    i.each(b.sub(end, begin), one)
    b.ret_void()
    return function
