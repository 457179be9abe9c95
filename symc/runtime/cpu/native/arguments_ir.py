"""Arguments in the native entry of a compiled function: by position and by name, arrays of any layout or
of a dtype that casts safely, NumPy's scalars, Python's numbers.

Code of plans reads array objects. For a number there is a *header* in their place: the words of such an object that are
read, and the number. What is copied or cast is an array of NumPy's, given back after the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from symc.runtime.cpu.native.block import ARRAY, HEADER, ITEM, NUMBER, Kind, Row
from symc.runtime.cpu.native.words_ir import Words


class Builtin(Words):
    """A function with the signature of a builtin. ``python``: what it calls by name, see ``block.PYTHON``."""

    def __init__(self, module: Any, ir: Any, python: Mapping[str, str], name: str):
        super().__init__(module, ir)
        word = self.words
        types = {"p": word, "i": self.i32, "l": self.i64, "v": self.void}
        self.python = {
            n: ir.Function(module, ir.FunctionType(types[s[0]], [types[t] for t in s[1:]]), n)
            for n, s in python.items()
        }
        self.f = ir.Function(module, ir.FunctionType(word, [word, word, self.i64, word]), name)
        self.b = ir.IRBuilder(self.f.append_basic_block("entry"))
        self.null = ir.Constant(word, None)

    def object(self, base: Any, index: Any) -> Any:
        return self.pointer(self.load(base, index))

    def half(self, base: Any, index: int) -> Any:
        """The int in the first four bytes of a word."""
        at = self.b.bitcast(self.at(base, index), self.i32.as_pointer())
        return self.b.zext(self.b.load(at, typ=self.i32), self.i64)

    def store(self, base: Any, index: int, word: int) -> None:
        self.b.store(self.const(word), self.at(base, index))

    def call(self, name: str, *arguments: Any) -> Any:
        return self.b.call(self.python[name], arguments)

    def need(self, condition: Any, otherwise: Any) -> None:
        """Go to the block ``otherwise`` unless it holds."""
        further = self.f.append_basic_block()
        self.b.cbranch(condition, further, otherwise)
        self.b.position_at_end(further)

    def first(self, begin: Any, end: Any, holds: Callable[[Any], Any]) -> Any:
        """The first k from ``begin`` on of which it holds; ``end`` if there is none."""
        b = self.b
        return self.fold(end, end, lambda k, found: b.select(
            b.and_(b.icmp_signed(">=", k, begin), b.and_(holds(k), self.equal(found, end))), k, found))


#: What NumPy's functions are told: a C-contiguous and aligned array; no cast that loses something.
LAYOUT, SAFELY = 0x1 | 0x100, 2


class Arguments(Builtin):
    """Writes this part of the function. Its blocks ``slow`` (nothing is held) and ``back`` (what is held is given back)
    hand the call over. ``arrays``: all arguments, then states, as code of plans takes them."""

    block: Any
    rows: Any
    args: Any
    nargs: Any
    names: Any
    total: Any  # how many there are, states included
    slow: Any
    back: Any
    arrays: Any
    own_arrays: Any  # what was copied or cast, ``owned`` of them (a word)
    owned: Any
    headers: Any
    out: Any  # a word: what was given as ``out``, or 0
    state: Any
    #: Words of the block.
    array_type: int
    can_cast: int
    from_array: int
    types: dict[str, Any]

    def bind(self, count: Any, out_name: Any) -> None:
        """Arguments into ``arrays``, in order."""
        b = self.b
        self.need(b.icmp_signed("<=", self.nargs, count), self.slow)
        self.each(self.nargs, lambda k: b.store(self.load(self.args, k), self.at(self.arrays, k)))
        b.store(self.const(0), self.out)
        with b.if_then(self.different(self.names, self.null)):
            self.by_name(count, out_name)
        with b.if_then(self.equal(self.names, self.null)):
            self.need(self.equal(self.nargs, count), self.slow)

    def by_name(self, count: Any, out_name: Any) -> None:
        b = self.b
        given = self.load(self.names, ITEM - 1)
        self.each(b.sub(count, self.nargs),
                  lambda k: b.store(self.const(0), self.at(self.arrays, b.add(self.nargs, k))))

        def one(j: Any) -> None:
            name = self.load(self.names, b.add(j, self.const(ITEM)))
            value = self.load(self.args, b.add(self.nargs, j))
            found = self.named(count, name, out_name)
            with b.if_else(b.icmp_signed("<", found, count)) as (known, unknown):
                with known:
                    b.store(value, self.at(self.arrays, found))
                with unknown:
                    self.need(self.equal(name, out_name), self.slow)
                    b.store(value, self.out)

        self.each(given, one)
        self.each(b.sub(count, self.nargs), lambda k: self.need(
            self.different(self.load(self.arrays, b.add(self.nargs, k)), self.const(0)), self.slow))

    def named(self, count: Any, name: Any, out_name: Any) -> Any:
        """Number of the argument with this name; ``count`` for none. Strings are the same object, or (rarely) equal."""
        b, place = self.b, self.at(self.state, 3)
        b.store(self.first(self.nargs, count, lambda k: self.equal(self.load(self.row(k), Row.NAME), name)), place)
        unknown = b.and_(self.equal(b.load(place, typ=self.i64), count), self.different(name, out_name))
        with b.if_then(unknown, likely=False):
            b.store(self.first(self.nargs, count, lambda k: self.equal(self.call(
                "PyUnicode_Compare", self.object(self.row(k), Row.NAME), self.pointer(name)),
                self.ir.Constant(self.i32, 0))), place)
        return b.load(place, typ=self.i64)

    def row(self, k: Any) -> Any:
        return self.at(self.rows, self.b.mul(k, self.const(Row.WORDS)))

    def look(self, total: Any) -> None:
        """Make all of them arrays of the right dtype, rank and layout, or what code takes for such."""
        b, f = self.b, self.f

        def one(k: Any) -> None:
            row, argument = self.row(k), self.object(self.arrays, k)
            array, other, done = (f.append_basic_block(n) for n in ("array", "other", "done"))
            b.cbranch(self.equal(self.load(argument, ARRAY["type"]), self.load(self.block, self.array_type)), array,
                      other)
            b.position_at_end(array)
            self.need(self.equal(self.half(argument, ARRAY["nd"]), self.load(row, Row.ND)), self.back)
            wanted = self.load(row, Row.FLAGS)
            flags = b.and_(self.half(argument, ARRAY["flags"]), wanted)
            same = b.and_(self.equal(flags, wanted),
                          self.equal(self.load(argument, ARRAY["descr"]), self.load(row, Row.DESCR)))
            convert = f.append_basic_block("convert")
            b.cbranch(same, done, convert)
            b.position_at_end(convert)
            self.cast(k, row, argument)
            b.branch(done)
            b.position_at_end(other)
            self.need(self.equal(self.load(row, Row.ND), self.const(0)), self.back)
            self.number(k, row, argument)
            b.branch(done)
            b.position_at_end(done)

        self.each(total, one)

    def cast(self, k: Any, row: Any, argument: Any) -> None:
        """A contiguous array of the dtype, if that loses nothing. (A state must be as it is.)"""
        b = self.b
        self.need(self.different(self.load(row, Row.NAME), self.const(0)), self.back)
        descr = self.object(row, Row.DESCR)
        can = self.numpy(self.can_cast, self.i8, argument, descr, self.ir.Constant(self.i32, SAFELY))
        self.need(self.different(can, self.ir.Constant(self.i8, 0)), self.back)
        self.call("Py_IncRef", descr)  # it takes it
        made = self.numpy(self.from_array, self.words, argument, descr, self.ir.Constant(self.i32, LAYOUT))
        self.need(self.different(made, self.null), self.back)
        word, own = b.ptrtoint(made, self.i64), b.load(self.owned, typ=self.i64)
        b.store(word, self.at(self.own_arrays, own))
        b.store(b.add(own, self.const(1)), self.owned)
        b.store(word, self.at(self.arrays, k))

    def numpy(self, where: int, result: Any, *arguments: Any) -> Any:
        """Call a function of NumPy's whose address is a word of the block."""
        kind = self.ir.FunctionType(result, [a.type for a in arguments]).as_pointer()
        return self.b.call(self.b.inttoptr(self.load(self.block, where), kind), arguments)

    def number(self, k: Any, row: Any, argument: Any) -> None:
        """A header for a scalar."""
        b, f = self.b, self.f
        header = self.at(self.headers, b.mul(k, self.const(HEADER)))
        place, kind = self.at(header, HEADER - 1), self.load(row, Row.KIND)
        b.store(self.load(self.block, self.array_type), self.at(header, ARRAY["type"]))
        b.store(b.ptrtoint(place, self.i64), self.at(header, ARRAY["data"]))
        self.store(header, ARRAY["nd"], 0)
        b.store(b.ptrtoint(header, self.i64), self.at(self.arrays, k))
        type_, done = self.load(argument, ARRAY["type"]), f.append_basic_block("number")

        def case(condition: Any, write: Any) -> None:
            yes, no = f.append_basic_block("yes"), f.append_basic_block("no")
            b.cbranch(condition, yes, no)
            b.position_at_end(yes)
            write()
            b.branch(done)
            b.position_at_end(no)

        def of_numpy() -> None:
            address = b.ptrtoint(self.at(argument, NUMBER), self.i64)
            b.store(address, self.at(header, ARRAY["data"]))

        case(self.equal(type_, self.load(row, Row.SCALAR)), of_numpy)
        of_float, of_int = (self.equal(type_, self.load(self.block, self.types[n])) for n in ("float", "int"))
        case(of_float, lambda: self.of_float(argument, kind, place))
        case(of_int, lambda: self.of_int(argument, row, kind, place))
        self.need(self.equal(kind, self.const(Kind.BOOL)), self.back)
        true, false = (self.equal(b.ptrtoint(argument, self.i64), self.load(self.block, self.types[n]))
                       for n in ("true", "false"))
        self.need(b.or_(true, false), self.back)
        b.store(b.zext(true, self.i64), place)
        b.branch(done)
        b.position_at_end(done)

    def of_float(self, argument: Any, kind: Any, place: Any) -> None:
        b, double = self.b, self.ir.DoubleType()
        x = b.load(b.bitcast(self.at(argument, NUMBER), double.as_pointer()), typ=double)
        self.real(x, kind, place)

    def real(self, x: Any, kind: Any, place: Any) -> None:
        b, single, double = self.b, self.ir.FloatType(), self.ir.DoubleType()
        known = b.or_(self.equal(kind, self.const(Kind.DOUBLE)), self.equal(kind, self.const(Kind.SINGLE)))
        self.need(known, self.back)
        with b.if_else(self.equal(kind, self.const(Kind.DOUBLE))) as (yes, no):
            with yes:
                b.store(x, b.bitcast(place, double.as_pointer()))
            with no:
                b.store(b.fptrunc(x, single), b.bitcast(place, single.as_pointer()))

    def of_int(self, argument: Any, row: Any, kind: Any, place: Any) -> None:
        b, overflow = self.b, self.at(self.state, 3)
        n = self.call("PyLong_AsLongLongAndOverflow", argument, overflow)
        over = b.trunc(b.load(overflow, typ=self.i64), self.i32)
        self.need(self.equal(over, self.ir.Constant(self.i32, 0)), self.back)
        with b.if_else(self.equal(kind, self.const(Kind.INTEGER))) as (integer, other):
            with integer:
                inside = b.and_(b.icmp_signed(">=", n, self.load(row, Row.LOW)),
                                b.icmp_signed("<=", n, self.load(row, Row.HIGH)))
                self.need(inside, self.back)
                b.store(n, place)
            with other:
                # f32 too by way of f64: what is exact there is rounded once
                exact = b.and_(b.icmp_signed("<=", n, self.const(2**53)), b.icmp_signed(">=", n, self.const(-(2**53))))
                self.need(exact, self.back)
                self.real(b.sitofp(n, self.ir.DoubleType()), kind, place)

    def give_back(self) -> None:
        """Gives back what was copied or cast."""
        own = self.b.load(self.owned, typ=self.i64)
        self.each(own, lambda k: self.call("Py_DecRef", self.object(self.own_arrays, k)))

    # -- ``out=``

    def into(self, out: Any, dims: Any, made: Any, others: Any, otherwise: Any) -> None:
        """``out`` must be an array to write a result into: of the right dtype, rank, layout and shape (``made`` is its
        row), apart from all arguments and ``others``: how many, and the array and bytes of an element of each."""
        b = self.b
        self.need(self.equal(self.load(out, ARRAY["type"]), self.load(self.block, self.array_type)), otherwise)
        self.need(self.equal(self.load(out, ARRAY["descr"]), self.load(made, 0)), otherwise)
        self.need(self.equal(self.half(out, ARRAY["nd"]), self.load(made, 1)), otherwise)
        wanted = self.const(LAYOUT | 0x400)
        self.need(self.equal(b.and_(self.half(out, ARRAY["flags"]), wanted), wanted), otherwise)
        shape = self.object(out, ARRAY["dims"])
        self.each(self.load(made, 1),
                  lambda j: self.need(self.equal(self.load(shape, j), self.load(dims, j)), otherwise))
        start, end = self.extent(out, self.load(made, 4))

        def apart(array: Any, size: Any) -> None:
            first, last = self.extent(array, size)
            before, after = b.icmp_unsigned("<=", last, start), b.icmp_unsigned(">=", first, end)
            self.need(b.or_(before, after), otherwise)

        self.each(self.total, lambda k: apart(self.object(self.arrays, k), self.load(self.row(k), Row.SIZE)))
        count, array = others
        self.each(count, lambda k: apart(*array(k)))

    def extent(self, array: Any, size: Any) -> tuple[Any, Any]:
        """Addresses at which an array (or header) begins and ends."""
        b, data = self.b, self.load(array, ARRAY["data"])
        dims = self.object(array, ARRAY["dims"])
        nbytes = self.fold(self.half(array, ARRAY["nd"]), size, lambda j, n: b.mul(n, self.load(dims, j)))
        return data, b.add(data, nbytes)
