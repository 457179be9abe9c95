"""The native entry of compiled functions: one LLVM function, built once in a process through llvmlite, without Numba.

It has the signature of a builtin (``METH_FASTCALL | METH_KEYWORDS``) and is the same for every function: what a
function takes and gives is data. ``self`` is a tuple; its first item is an array of 64-bit words, the *block*; a
*record* is what was prepared for one combination of shapes. The words of both are named here and written in
``symc.runtime.entry``.

A call looks at the arguments; looks for a record with their shapes that is not in use; allocates results; puts array
objects into the slots of the plan's code and runs it. Whatever is not as expected, whatever fails: the function
``SLOW`` is called with the same arguments, and makes the result or the error. So the entry itself raises nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

#: How many records a block has place for, and how many results a function may have.
MOST_RECORDS, MOST_RESULTS = 8, 64
#: Where the fields of array objects lie, in words of 8 bytes (``nd`` and ``flags`` are the first half of theirs).
ARRAY = {"type": 1, "data": 2, "nd": 3, "dims": 4, "strides": 5, "base": 6, "descr": 7, "flags": 8}
#: Where a tuple has its first item.
ITEM = 3


class Block(enum.IntEnum):
    """Words of a block. After them: (descr, nd, flags) for each argument, (descr, nd) for each result."""

    SLOW = 0  #     what is called where this is not enough
    RUN = 1  #      the address of the interpreter of plans
    ARRAY = 2  #    the type of arrays
    EMPTY = 3  #    NumPy's PyArray_Empty
    ARGS = 4  #     how many arguments
    RESULTS = 5  #  how many results
    TUPLE = 6  #    1: results are returned as a tuple; 0: there is one
    FILL = 7  #     what the tuple is given to, or 0
    RECORDS = 8  #  addresses of records, 0 after the last
    ROWS = RECORDS + MOST_RECORDS + 1


class Record(enum.IntEnum):
    """Words of a record. After them: the dims of all arguments; for each slot that an argument is put into, the index
    of the argument; for each result the index of its slot, and its dims."""

    BUSY = 0  #     1 while a call uses it
    MEMORY = 1  #   what the interpreter runs
    SLOTS = 2  #    the address of the first slot
    RELEASE = 3  #  1: other threads may run meanwhile
    GIVEN = 4  #    how many slots arguments are put into
    ROWS = 5


#: What is called by name: result, then arguments ("p": a pointer or word, "i": an int, "v": nothing).
PYTHON = {
    "Py_IncRef": "vp",
    "Py_DecRef": "vp",
    "PyErr_Clear": "v",
    "PyEval_SaveThread": "p",
    "PyEval_RestoreThread": "vp",
    "PyTuple_New": "pp",
    "PyTuple_SetItem": "ippp",
    "PyObject_Vectorcall": "ppppp",
}


def build() -> tuple[int, Any]:
    """The address of the function, and what keeps it."""
    import ctypes

    from llvmlite import binding, ir

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name in PYTHON:
        binding.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
    module = ir.Module("symc_entry")
    _Entry(module, ir).write()
    parsed = binding.parse_assembly(str(module), binding.create_context())
    machine = binding.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return engine.get_function_address("symc_entry"), engine


class _Entry:
    """Writes the function. Objects and addresses are pointers to words."""

    def __init__(self, module: Any, ir: Any):
        self.ir, self.i64, self.i32 = ir, ir.IntType(64), ir.IntType(32)
        self.word = word = self.i64.as_pointer()
        types = {"p": word, "i": self.i32, "v": ir.VoidType()}
        self.python = {
            name: ir.Function(module, ir.FunctionType(types[s[0]], [types[t] for t in s[1:]]), name)
            for name, s in PYTHON.items()
        }
        self.f = ir.Function(module, ir.FunctionType(word, [word, word, self.i64, word]), "symc_entry")
        self.b = ir.IRBuilder(self.f.append_basic_block("entry"))
        self.null = ir.Constant(word, None)

    def write(self) -> None:
        b = self.b
        this, self.args, self.nargs, self.names = self.f.args
        self.results = b.alloca(self.i64, MOST_RESULTS)
        self.slow = self.f.append_basic_block("slow")
        self.block = self.object(self.object(this, ITEM), ARRAY["data"])
        self.look()
        record = self.find()
        self.store(record, Record.BUSY, 1)
        made = self.allocate(record)
        self.run(record, made)
        b.position_at_end(self.slow)
        slow = self.object(self.block, Block.SLOW)
        b.ret(self.call("PyObject_Vectorcall", slow, self.args, self.pointer(self.nargs), self.names))

    # -- the parts

    def look(self) -> None:
        """Are the arguments arrays of the right dtype, rank and layout?"""
        b = self.b
        self.need(b.icmp_unsigned("==", self.names, self.null), self.slow)
        self.need(self.equal(self.nargs, self.load(self.block, Block.ARGS)), self.slow)
        array = self.load(self.block, Block.ARRAY)
        self.rows = self.at(self.block, self.const(Block.ROWS))

        def one(k: Any, row: Any) -> Any:
            argument = self.object(self.args, k)
            self.need(self.equal(self.load(argument, ARRAY["type"]), array), self.slow)
            self.need(self.equal(self.load(argument, ARRAY["descr"]), self.load(row, 0)), self.slow)
            self.need(self.equal(self.half(argument, ARRAY["nd"]), self.load(row, 1)), self.slow)
            wanted = self.load(row, 2)
            self.need(self.equal(b.and_(self.half(argument, ARRAY["flags"]), wanted), wanted), self.slow)
            return self.at(row, self.const(3))

        self.results_rows = self.count(self.nargs, self.rows, one)

    def find(self) -> Any:
        """The record for the shapes of the arguments."""
        b, f = self.b, self.f
        before = b.block
        search, following = f.append_basic_block("search"), f.append_basic_block("following")
        b.branch(search)
        b.position_at_end(search)
        place = b.phi(self.i64)
        place.add_incoming(self.const(Block.RECORDS), before)
        record = self.object(self.block, place)
        self.need(b.icmp_unsigned("!=", record, self.null), self.slow)
        self.need(self.equal(self.load(record, Record.BUSY), self.const(0)), following)

        def argument(k: Any, state: Any) -> Any:
            array = self.object(self.args, k)
            dims = self.object(array, ARRAY["dims"])

            def axis(j: Any, at: Any) -> Any:
                self.need(self.equal(self.load(dims, j), self.load(at, 0)), following)
                return self.at(at, self.const(1))

            return self.count(self.half(array, ARRAY["nd"]), state, axis)

        self.given = self.count(self.nargs, self.at(record, self.const(Record.ROWS)), argument)
        found = b.block
        b.position_at_end(following)
        place.add_incoming(b.add(place, self.const(1)), following)
        b.branch(search)
        b.position_at_end(found)
        return record

    def allocate(self, record: Any) -> Any:
        """Arguments and new arrays into the slots. The number of results; if there is no memory, the slow way."""
        b = self.b
        slots, n = self.object(record, Record.SLOTS), self.load(record, Record.GIVEN)

        def argument(k: Any, at: Any) -> Any:
            b.store(self.load(self.args, self.load(at, 0)), self.at(slots, k))
            return self.at(at, self.const(1))

        places = self.count(n, self.given, argument)
        empty = self.ir.FunctionType(self.word, [self.i32, self.word, self.word, self.i32])
        make = b.inttoptr(self.load(self.block, Block.EMPTY), empty.as_pointer())
        m = self.load(self.block, Block.RESULTS)
        failed = self.f.append_basic_block("failed")

        def result(k: Any, at: Any) -> Any:
            row = self.at(self.results_rows, b.shl(k, self.const(1)))
            descr, nd = self.object(row, 0), self.load(row, 1)
            self.call("Py_IncRef", descr)  # the new array takes it
            dims = self.at(at, self.const(1))
            array = b.call(make, [b.trunc(nd, self.i32), dims, descr, self.ir.Constant(self.i32, 0)])
            self.left.add_incoming(k, b.block)
            self.need(b.icmp_unsigned("!=", array, self.null), failed)
            word = b.ptrtoint(array, self.i64)
            b.store(word, self.at(self.results, k))
            b.store(word, self.at(slots, self.load(at, 0)))
            return self.at(dims, nd)

        here = b.block
        b.position_at_end(failed)
        self.left = b.phi(self.i64)  # how many there are to give back
        self.count(self.left, self.null, lambda k, _: (self.call("Py_DecRef", self.object(self.results, k)), _)[1])
        self.store(record, Record.BUSY, 0)
        self.call("PyErr_Clear")
        b.branch(self.slow)
        b.position_at_end(here)
        self.failed = failed
        self.count(m, places, result)
        return m

    def run(self, record: Any, m: Any) -> None:
        b, f = self.b, self.f
        run = self.ir.FunctionType(self.i64, [self.word]).as_pointer()
        run = b.inttoptr(self.load(self.block, Block.RUN), run)
        memory = self.object(record, Record.MEMORY)
        open_, done = f.append_basic_block("open"), f.append_basic_block("done")
        hold = f.append_basic_block("hold")
        b.cbranch(self.equal(self.load(record, Record.RELEASE), self.const(0)), hold, open_)
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
        self.store(record, Record.BUSY, 0)
        self.give(m)

    def give(self, m: Any) -> None:
        """Return the results, in a tuple unless there is one alone, through ``FILL`` if there is one."""
        b, f = self.b, self.f
        lone, several = f.append_basic_block("lone"), f.append_basic_block("several")
        b.cbranch(self.equal(self.load(self.block, Block.TUPLE), self.const(0)), lone, several)
        b.position_at_end(lone)
        b.ret(self.object(self.results, 0))
        b.position_at_end(several)
        found = self.call("PyTuple_New", self.pointer(m))
        with b.if_then(b.icmp_unsigned("==", found, self.null), likely=False):
            self.count(m, self.null, lambda k, _: (self.call("Py_DecRef", self.object(self.results, k)), _)[1])
            b.ret(self.null)

        def item(k: Any, nothing: Any) -> Any:
            self.call("PyTuple_SetItem", found, self.pointer(k), self.object(self.results, k))  # takes the reference
            return nothing

        self.count(m, self.null, item)
        fill = self.object(self.block, Block.FILL)
        with b.if_then(b.icmp_unsigned("!=", fill, self.null)):
            b.store(b.ptrtoint(found, self.i64), self.results)
            filled = self.call("PyObject_Vectorcall", fill, self.results, self.pointer(self.const(1)), self.null)
            self.call("Py_DecRef", found)
            b.ret(filled)
        b.ret(found)

    # -- pieces

    def const(self, k: int) -> Any:
        return self.ir.Constant(self.i64, int(k))

    def pointer(self, word: Any) -> Any:
        return self.b.inttoptr(word, self.word)

    def at(self, base: Any, index: Any) -> Any:
        return self.b.gep(base, [index], source_etype=self.i64)

    def load(self, base: Any, index: Any) -> Any:
        return self.b.load(self.at(base, self.const(index) if isinstance(index, int) else index), typ=self.i64)

    def object(self, base: Any, index: Any) -> Any:
        return self.pointer(self.load(base, index))

    def half(self, base: Any, index: int) -> Any:
        """The int in the first four bytes of a word."""
        at = self.b.bitcast(self.at(base, self.const(index)), self.i32.as_pointer())
        return self.b.zext(self.b.load(at, typ=self.i32), self.i64)

    def store(self, base: Any, index: int, word: int) -> None:
        self.b.store(self.const(word), self.at(base, self.const(index)))

    def equal(self, a: Any, c: Any) -> Any:
        return self.b.icmp_unsigned("==", a, c)

    def call(self, name: str, *arguments: Any) -> Any:
        return self.b.call(self.python[name], arguments)

    def need(self, condition: Any, otherwise: Any) -> None:
        """Go to the block ``otherwise`` unless it holds."""
        further = self.f.append_basic_block()
        self.b.cbranch(condition, further, otherwise)
        self.b.position_at_end(further)

    def count(self, n: Any, start: Any, body: Callable[[Any, Any], Any]) -> Any:
        """``found = body(k, found)`` for k < n, from ``start`` on; a pointer."""
        b, f = self.b, self.f
        before, test, inside, done = b.block, *(f.append_basic_block() for _ in range(3))
        b.branch(test)
        b.position_at_end(test)
        k, found = b.phi(self.i64), b.phi(self.word)
        b.cbranch(b.icmp_signed("<", k, n), inside, done)
        b.position_at_end(inside)
        new = body(k, found)
        for phi, first, after in ((k, self.const(0), b.add(k, self.const(1))), (found, start, new)):
            phi.add_incoming(first, before)
            phi.add_incoming(after, b.block)
        b.branch(test)
        b.position_at_end(done)
        return found
