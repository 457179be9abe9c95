"""The native entry of compiled functions: one LLVM function, compiled once in the life of a machine.

It has the signature of a builtin (``METH_FASTCALL | METH_KEYWORDS``) and is the same for every function: what a
function takes and gives is data. ``self`` is a tuple; its first item is an array of 64-bit words, the *block*, which
is named in ``block`` and written in ``symc.runtime.cpu.entry``.

A call takes the locks of states, if there are any, and their arrays, as further arguments; looks at the arguments;
looks for a frame that is not in use; puts array objects into the slots of its code, which computes what depends on
sizes if these are others than before; allocates results and runs it. Whatever is not as expected, whatever fails: the
function ``SLOW`` is called with the same arguments, and makes the result or the error. So the entry itself raises
nothing.
"""

from __future__ import annotations

from typing import Any

from symc.runtime.cpu.native import assembly
from symc.runtime.cpu.native.arguments_ir import Arguments
from symc.runtime.cpu.native.block import ARRAY, HEADER, ITEM, MADE, MOST_ARGUMENTS, MOST_RESULTS, PYTHON, Block
from symc.runtime.cpu.native.instructions import GROW, Word


def text() -> str:
    """The text of the module."""
    module = assembly.Module()
    _Entry(module, assembly, PYTHON, "symc_entry").write()
    return str(module)


class _Entry(Arguments):
    """Writes the function."""

    array_type, can_cast, from_array = Block.ARRAY, Block.CAN_CAST, Block.FROM_ARRAY
    types = {"float": Block.FLOAT, "int": Block.INT, "true": Block.TRUE, "false": Block.FALSE}

    def write(self) -> None:
        b = self.b
        this, self.args, self.nargs, self.names = self.f.args
        self.results, self.arrays, self.own_arrays, self.headers = (
            b.alloca(self.i64, n) for n in (MOST_RESULTS, MOST_ARGUMENTS, MOST_ARGUMENTS, HEADER * MOST_ARGUMENTS))
        self.out, self.owned = b.alloca(self.i64), b.alloca(self.i64)
        self.outs = b.alloca(self.i64, 2)
        self.state = b.alloca(self.i64, 4)  # how many locks are held, how many arrays of states; an argument; a number
        self.slow, self.back = self.f.append_basic_block("slow"), self.f.append_basic_block("back")
        self.block = self.object(self.object(this, ITEM), ARRAY["data"])
        self.store(self.state, 0, 0)
        self.store(self.state, 1, 0)
        b.store(self.const(0), self.owned)
        self.places()
        self.bind(self.count_of_arguments, self.load(self.block, Block.OUT))
        with b.if_then(self.different(self.states, self.const(0))):
            self.take()
        self.look(self.total)
        self.find()
        self.prepare()
        made = self.allocate()
        self.count_changes(made)
        self.run(made)
        self.replace()
        self.let_go()
        self.give()
        b.position_at_end(self.back)
        self.call("PyErr_Clear")
        self.let_go()
        b.branch(self.slow)
        b.position_at_end(self.slow)
        slow = self.object(self.block, Block.SLOW)
        b.ret(self.call("PyObject_Vectorcall", slow, self.args, self.pointer(self.nargs), self.names))

    # -- the parts

    def places(self) -> None:
        """Addresses of the parts of the block."""
        b = self.b
        self.states = self.load(self.block, Block.STATES)
        self.count_of_arguments = self.load(self.block, Block.ARGS)
        self.total = b.add(self.count_of_arguments, self.states)
        self.rows = self.at(self.block, Block.ROWS)
        self.made_rows = self.row(self.total)
        self.locks = self.at(self.made_rows, b.mul(self.load(self.block, Block.MADE), self.const(MADE)))
        self.cells = self.at(self.locks, b.shl(self.load(self.block, Block.LOCKS), self.const(1)))
        self.updates = self.at(self.cells, self.states)
        self.reads = self.at(self.updates, b.shl(self.load(self.block, Block.UPDATED), self.const(1)))

    def take(self) -> None:
        """Take the locks of the states if they are free; put their arrays behind the arguments."""
        b = self.b
        self.need(self.equal(self.load(self.object(self.block, Block.CLOSED), 0), self.const(0)), self.back)
        argument = self.at(self.state, 2)

        def lock(k: Any) -> None:
            b.store(self.load(self.block, Block.FALSE), argument)
            acquire = self.object(self.locks, b.shl(k, self.const(1)))
            found = self.call("PyObject_Vectorcall", acquire, argument, self.pointer(self.const(1)), self.null)
            self.call("Py_DecRef", found)
            self.need(self.equal(b.ptrtoint(found, self.i64), self.load(self.block, Block.TRUE)), self.back)
            b.store(b.add(k, self.const(1)), self.state)

        def array(k: Any) -> None:
            found = self.attribute(self.object(self.cells, k), Block.CELL_ARRAY, self.back)
            b.store(b.ptrtoint(found, self.i64), self.at(self.arrays, b.add(self.count_of_arguments, k)))
            b.store(b.add(k, self.const(1)), self.at(self.state, 1))

        def watched(k: Any) -> None:
            found = self.attribute(self.object(self.cells, k), Block.CELL_WATCHED, self.back)
            self.call("Py_DecRef", found)
            self.need(self.equal(b.ptrtoint(found, self.i64), self.load(self.block, Block.FALSE)), self.back)

        def unchanged(k: Any) -> None:
            row = b.shl(k, self.const(1))
            version = self.attribute(self.object(self.reads, row), Block.CELL_VERSION, self.back)
            self.call("Py_DecRef", version)  # the state keeps it, or it is not the one that is known
            known = self.load(self.reads, b.or_(row, self.const(1)))
            self.need(self.equal(b.ptrtoint(version, self.i64), known), self.back)

        self.each(self.load(self.block, Block.LOCKS), lock)
        self.each(self.load(self.block, Block.READS), unchanged)
        self.each(self.states, array)
        self.each(self.states, watched)

    def let_go(self) -> None:
        """Let go of what ``take`` took."""
        b = self.b
        self.give_back()
        held, own = self.load(self.state, 0), self.load(self.state, 1)
        first = self.at(self.arrays, self.count_of_arguments)
        self.each(own, lambda k: self.call("Py_DecRef", self.object(first, k)))

        def release(k: Any) -> None:
            method = self.object(self.locks, b.or_(b.shl(k, self.const(1)), self.const(1)))
            self.call("Py_DecRef", self.call("PyObject_Vectorcall", method, self.state, self.null, self.null))

        self.each(held, release)

    def count_changes(self, made: Any) -> None:
        """One more version of each state that is updated."""
        b = self.b

        def one(k: Any) -> None:
            state = self.object(self.updates, b.shl(k, self.const(1)))
            self.left.add_incoming(made, b.block)
            version = self.attribute(state, Block.CELL_VERSION, self.failed)
            following = self.call("PyNumber_Add", version, self.object(self.block, Block.ONE))
            self.call("Py_DecRef", version)
            self.left.add_incoming(made, b.block)
            self.need(self.different(following, self.null), self.failed)
            self.call("PyObject_SetAttr", state, self.object(self.block, Block.CELL_VERSION), following)
            self.call("Py_DecRef", following)

        self.each(self.load(self.block, Block.UPDATED), one)

    def replace(self) -> None:
        """The arrays of states that were not written in place."""
        b = self.b

        def one(k: Any) -> None:
            row = b.shl(k, self.const(1))
            index = self.load(self.updates, b.or_(row, self.const(1)))
            with b.if_then(b.icmp_signed(">=", index, self.const(0))):
                array, name = self.object(self.results, index), self.object(self.block, Block.CELL_ARRAY)
                self.call("PyObject_SetAttr", self.object(self.updates, row), name, array)
                self.call("Py_DecRef", array)

        self.each(self.load(self.block, Block.UPDATED), one)

    def find(self) -> None:
        """A frame that no call uses: its words are ``memory``, it is found at ``place`` in the block."""
        b, f = self.b, self.f
        before = b.block
        search, following = f.append_basic_block("search"), f.append_basic_block("following")
        b.branch(search)
        b.position_at_end(search)
        self.place = b.phi(self.i64)
        self.place.add_incoming(self.const(Block.FRAMES), before)
        self.memory = self.object(self.block, self.place)
        self.need(self.different(self.memory, self.null), self.back)
        self.need(self.equal(self.load(self.memory, Word.BUSY), self.const(0)), following)
        found = b.block
        b.position_at_end(following)
        self.place.add_incoming(b.add(self.place, self.const(2)), following)
        b.branch(search)
        b.position_at_end(found)
        self.store(self.memory, Word.BUSY, 1)

    def prepare(self) -> None:
        """Arguments into the slots, and what depends on sizes. A larger arena, if it is needed."""
        b, f = self.b, self.f
        slots = self.at(self.memory, self.load(self.block, Block.FIRST))
        self.free = f.append_basic_block("free")
        here = b.block
        b.position_at_end(self.free)
        self.store(self.memory, Word.BUSY, 0)
        b.branch(self.back)
        b.position_at_end(here)

        def look() -> Any:
            self.each(self.total, lambda k: b.store(self.load(self.arrays, k), self.at(slots, k)))
            kind = self.ir.FunctionType(self.i64, [self.words]).as_pointer()
            return b.call(b.inttoptr(self.load(self.block, Block.PREPARE), kind), [self.memory])

        status = look()
        good, grow = f.append_basic_block("good"), f.append_basic_block("grow")
        b.cbranch(self.equal(status, self.const(0)), good, grow)
        b.position_at_end(grow)
        self.need(self.equal(status, self.const(GROW)), self.free)
        method = self.object(self.block, b.add(self.place, self.const(1)))
        grown = self.call("PyObject_Vectorcall", method, self.state, self.null, self.null)
        self.need(self.different(grown, self.null), self.free)
        self.call("Py_DecRef", grown)
        self.need(self.equal(look(), self.const(0)), self.free)
        b.branch(good)
        b.position_at_end(good)
        self.need(self.equal(self.load(self.memory, Word.LARGE), self.const(0)), self.free)

    def allocate(self) -> Any:
        """New arrays into the slots. The number of these; if there is no memory, the slow way."""
        b = self.b
        empty = self.ir.FunctionType(self.words, [self.i32, self.words, self.words, self.i32])
        make = b.inttoptr(self.load(self.block, Block.EMPTY), empty.as_pointer())
        m = self.load(self.block, Block.MADE)
        self.given_out()
        self.failed = self.f.append_basic_block("failed")
        here = b.block
        b.position_at_end(self.failed)
        self.left = b.phi(self.i64)  # how many there are to give back
        self.call("PyErr_Clear")
        self.each(self.left, lambda k: self.call("Py_DecRef", self.object(self.results, k)))
        b.branch(self.free)
        b.position_at_end(here)
        self.each(m, lambda k: self.result(k, make))
        return m

    def made_row(self, k: Any) -> Any:
        return self.at(self.made_rows, self.b.mul(k, self.const(MADE)))

    def result(self, k: Any, make: Any) -> None:
        """The array that result k is written into: one that the call gives, or a fresh one, which ``make`` makes."""
        b = self.b
        row = self.made_row(k)
        descr, nd = self.object(row, 0), self.load(row, 1)
        dims = self.at(self.memory, self.load(row, 3))
        fresh, given, there, unfit = (self.f.append_basic_block(n) for n in ("fresh", "given", "there", "unfit"))
        b.cbranch(b.icmp_unsigned("<", k, self.load(self.outs, 0)), given, fresh)
        b.position_at_end(given)
        out = self.object(self.object(self.outs, 1), k)
        before = k, lambda j: (self.object(self.results, j), self.load(self.made_row(j), 4))
        self.into(out, dims, row, before, unfit)
        self.call("Py_IncRef", out)
        at_given = b.block
        b.branch(there)
        b.position_at_end(fresh)
        self.call("Py_IncRef", descr)  # the new array takes it
        made = b.call(make, [b.trunc(nd, self.i32), dims, descr, self.ir.Constant(self.i32, 0)])
        self.left.add_incoming(k, b.block)
        self.need(self.different(made, self.null), self.failed)
        at_fresh = b.block
        b.branch(there)
        b.position_at_end(unfit)
        self.left.add_incoming(k, unfit)
        b.branch(self.failed)
        b.position_at_end(there)
        array = b.phi(self.words)
        array.add_incoming(out, at_given)
        array.add_incoming(made, at_fresh)
        word = b.ptrtoint(array, self.i64)
        b.store(word, self.at(self.results, k))
        b.store(word, self.at(self.memory, self.load(row, 2)))

    def given_out(self) -> None:
        """``outs``: how many arrays there are to write results into, and the address of the first: ``out=`` itself, or
        the items of a tuple, one for each result."""
        b = self.b
        out = b.load(self.out, typ=self.i64)
        self.store(self.outs, 0, 0)
        with b.if_then(self.different(out, self.const(0))):
            several = self.different(self.load(self.block, Block.TUPLE), self.const(0))
            with b.if_else(several) as (items, lone):
                with items:
                    array, count = self.pointer(out), self.load(self.block, Block.RESULTS)
                    kind = self.load(array, ARRAY["type"])
                    self.need(self.equal(kind, self.load(self.block, Block.TUPLES)), self.free)
                    self.need(self.equal(self.load(array, ITEM - 1), count), self.free)
                    b.store(count, self.outs)
                    b.store(b.add(out, self.const(8 * ITEM)), self.at(self.outs, 1))
                with lone:
                    self.store(self.outs, 0, 1)
                    b.store(b.ptrtoint(self.out, self.i64), self.at(self.outs, 1))

    def run(self, m: Any) -> None:
        b, f = self.b, self.f
        run = self.ir.FunctionType(self.i64, [self.words]).as_pointer()
        run = b.inttoptr(self.load(self.block, Block.RUN), run)
        memory = self.memory
        open_, done = f.append_basic_block("open"), f.append_basic_block("done")
        hold = f.append_basic_block("hold")
        b.cbranch(self.equal(self.load(memory, Word.LONG), self.const(0)), hold, open_)
        b.position_at_end(hold)
        held = b.call(run, [memory])
        b.branch(done)
        b.position_at_end(open_)
        thread = self.call("PyEval_SaveThread")
        opened = b.call(run, [memory])
        self.call("PyEval_RestoreThread", thread)
        b.branch(done)
        b.position_at_end(done)
        status = b.phi(self.i64)
        status.add_incoming(held, hold)
        status.add_incoming(opened, open_)
        self.left.add_incoming(m, done)
        self.need(self.equal(status, self.const(0)), self.failed)
        self.store(memory, Word.BUSY, 0)

    def give(self) -> None:
        """Return the results, in a tuple unless there is one alone, through ``FILL`` if there is one."""
        b, f = self.b, self.f
        m = self.load(self.block, Block.RESULTS)
        lone, several = f.append_basic_block("lone"), f.append_basic_block("several")
        b.cbranch(self.equal(self.load(self.block, Block.TUPLE), self.const(0)), lone, several)
        b.position_at_end(lone)
        b.ret(self.object(self.results, 0))
        b.position_at_end(several)
        found = self.call("PyTuple_New", self.pointer(m))
        with b.if_then(self.equal(found, self.null), likely=False):
            self.each(m, lambda k: self.call("Py_DecRef", self.object(self.results, k)))
            b.ret(self.null)
        # it takes the reference
        self.each(m, lambda k: self.call("PyTuple_SetItem", found, self.pointer(k), self.object(self.results, k)))
        fill = self.object(self.block, Block.FILL)
        with b.if_then(self.different(fill, self.null)):
            b.store(b.ptrtoint(found, self.i64), self.results)
            filled = self.call("PyObject_Vectorcall", fill, self.results, self.pointer(self.const(1)), self.null)
            self.call("Py_DecRef", found)
            b.ret(filled)
        b.ret(found)

    def attribute(self, owner: Any, name: int, otherwise: Any) -> Any:
        """A new reference; to the block ``otherwise`` if there is none."""
        found = self.call("PyObject_GetAttr", owner, self.object(self.block, name))
        self.need(self.different(found, self.null), otherwise)
        return found
