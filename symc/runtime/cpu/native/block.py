"""Words that the native entry (``entry_ir``) reads: of its block, of rows for arguments, of Python's objects."""

from __future__ import annotations

from symc.ir.record import Numbers

#: Where the fields of array objects lie, in words of 8 bytes (``nd`` and ``flags`` are the first half of theirs).
ARRAY = {"type": 1, "data": 2, "nd": 3, "dims": 4, "strides": 5, "base": 6, "descr": 7, "flags": 8}
#: Where a tuple has its first item; where numbers have theirs.
ITEM, NUMBER = 3, 2
#: Words of a header; the last is the number.
HEADER = 5
#: How many frames a block has place for, how many arrays may be made, how many arguments and states there may be.
MOST_FRAMES, MOST_RESULTS, MOST_ARGUMENTS = 8, 64, 128
#: How many words there are for an array that is made: descr, nd, slot and dims (in a frame's words), bytes of an
#: element.
MADE = 5


class Row(metaclass=Numbers):
    """Row of a block for each argument, then for each state."""

    DESCR = 0
    ND = 1
    FLAGS = 2  #   those that an array must have
    SCALAR = 3  #  NumPy's type of scalars of the dtype
    KIND = 4  #    which numbers of Python it takes, a `Kind`
    LOW = 5  #     bounds of integers
    HIGH = 6
    NAME = 7  #    its name, 0 for a state
    SIZE = 8  #    bytes of an element
    WORDS = 9


class Kind(metaclass=Numbers):
    """Numbers of Python that an argument takes."""

    NONE = 0
    DOUBLE = 1
    SINGLE = 2
    INTEGER = 3
    BOOL = 4


class Block(metaclass=Numbers):
    """Words of a block. After them: a `Row` for each argument, then each state; ``MADE`` words for each array that is
    made; (acquire, release), methods of each lock, in the order to take them; each state, in the order of its array;
    (state, k) for each that is updated: by what array k of those made, or in place if k < 0; (state, version) for each
    that must have this version."""

    SLOW = 0  #     what is called where this is not enough
    RUN = 1  #      the address of the interpreter of plans
    ARRAY = 2  #    the type of arrays
    EMPTY = 3  #    NumPy's PyArray_Empty
    ARGS = 4  #     how many arguments
    MADE = 5  #     how many arrays are made: results, then those of states
    RESULTS = 6  #  how many results
    TUPLE = 7  #    1: results are returned as a tuple; 0: there is one
    FILL = 8  #     what the tuple is given to, or 0
    STATES = 9  #   how many states
    UPDATED = 10  # how many of them are updated
    CLOSED = 11  #  the address of a word: 1 while the process is forked, and no call takes locks
    FALSE = 12  #   Python's False, True, 1, and the names of a state's attributes
    TRUE = 13
    ONE = 14
    CELL_ARRAY = 15
    CELL_VERSION = 16
    CELL_WATCHED = 17
    PREPARE = 18  # the address of what looks at arguments
    FIRST = 19  #   the first slot of arguments
    CAN_CAST = 20  # NumPy's PyArray_CanCastArrayTo and PyArray_FromArray
    FROM_ARRAY = 21
    FLOAT = 22  #   Python's types of numbers
    INT = 23
    OUT = 24  #     the name "out", 0 if an input has it or results cannot be written elsewhere
    LOCKS = 25  #   how many locks there are
    READS = 26  #   how many states must have a version
    TUPLES = 27  #  the type of tuples
    FRAMES = 28  #  for each frame the address of its words, and what makes its arena larger; 0 after the last
    ROWS = FRAMES + 2 * MOST_FRAMES + 1


#: What is called by name: result, then arguments ("p": a pointer or word, "i": an int, "l": one of 64 bits, "v":
#: nothing).
PYTHON = {
    "Py_IncRef": "vp",
    "Py_DecRef": "vp",
    "PyErr_Clear": "v",
    "PyEval_SaveThread": "p",
    "PyEval_RestoreThread": "vp",
    "PyTuple_New": "pp",
    "PyTuple_SetItem": "ippp",
    "PyObject_Vectorcall": "ppppp",
    "PyObject_GetAttr": "ppp",
    "PyObject_SetAttr": "ippp",
    "PyNumber_Add": "ppp",
    "PyLong_AsLongLongAndOverflow": "lpp",
    "PyUnicode_Compare": "ipp",
}
