"""Native pieces of the executor: the runner of scripts, in LLVM's language, and kernels in the subset of Python that
the kernel compiler takes. All are compiled once and kept on disk.

The runner takes batches one after the other (forward, or back) and runs the script of each one's block: calls of
kernels, and of compiled functions through the words of their frames. Operands are ``k + base + start * stride``: a
number, a word of the table of bases, a word of the batch's record. So a script is written once, and what changes from
minibatch to minibatch are bases and records.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import hashlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.codegen.cpu.render import Source
from symc.runtime.cache.machine_code import compile_text, load_module
from symc.runtime.cpu.native.executor_ir import executor


class Ctx(enum.IntEnum):
    """The words that the runner is given. ``BATCH`` and ``AT`` say where it stopped, and where it goes on."""

    BATCH = 0  #   the batch that runs now
    END = 1  #     the batch to stop before
    STEP = 2  #    1, or -1
    RECORDS = 3  # the address of the records of batches, of RECORD words each
    SCRIPTS = 4  # the address of a table of scripts, by the block of a batch
    BASES = 5  #   the address of the table of bases; base 0 is 0
    AT = 6  #      where in the script of the batch
    RUN = 7  #     native functions of the interpreter of plans
    PREPARE = 8


class Rec(enum.IntEnum):
    """The words of a batch."""

    BLOCK = 0
    COUNT = 1  #     instances
    ROW = 2  #       of the first in the arena of its type
    PLACE = 3  #     of the first among the instances of the block
    ELEMENT = 4  #   the first value at the ragged port, among all of the block
    ELEMENTS = 5  #  how many
    ZERO = 6
    WORDS = 7


#: What a word of a script means that is no address of a kernel.
STOP, FRAME = 0, 1
#: Words of an operand of a kernel, and of an argument of a frame.
OPERAND, ARGUMENT = 4, 5

_RUNNER = """
define i64 @fold_run(ptr %ctx) {
entry:
  %args = alloca [64 x i64]
  %p.end = getelementptr i64, ptr %ctx, i64 1
  %p.step = getelementptr i64, ptr %ctx, i64 2
  %p.records = getelementptr i64, ptr %ctx, i64 3
  %p.scripts = getelementptr i64, ptr %ctx, i64 4
  %p.bases = getelementptr i64, ptr %ctx, i64 5
  %p.at = getelementptr i64, ptr %ctx, i64 6
  %p.run = getelementptr i64, ptr %ctx, i64 7
  %p.prepare = getelementptr i64, ptr %ctx, i64 8
  %first = load i64, ptr %ctx
  %end = load i64, ptr %p.end
  %step = load i64, ptr %p.step
  %records = load ptr, ptr %p.records
  %scripts = load ptr, ptr %p.scripts
  %bases = load ptr, ptr %p.bases
  %at0 = load i64, ptr %p.at
  %run = load ptr, ptr %p.run
  %prepare = load ptr, ptr %p.prepare
  br label %test
test:
  %i = phi i64 [ %first, %entry ], [ %i.next, %over ]
  %at = phi i64 [ %at0, %entry ], [ 0, %over ]
  %done = icmp eq i64 %i, %end
  br i1 %done, label %finish, label %batch
batch:
  %r.at = mul i64 %i, WORDS
  %rec = getelementptr i64, ptr %records, i64 %r.at
  %block = load i64, ptr %rec
  %p.script = getelementptr ptr, ptr %scripts, i64 %block
  %script = load ptr, ptr %p.script
  br label %op
op:
  %pc = phi i64 [ %at, %batch ], [ %pc.next, %called ], [ %pc.next, %ran ]
  %p.fn = getelementptr i64, ptr %script, i64 %pc
  %fn = load i64, ptr %p.fn
  %stop = icmp eq i64 %fn, 0
  br i1 %stop, label %over, label %some
some:
  %pc1 = add i64 %pc, 1
  %p.length = getelementptr i64, ptr %script, i64 %pc1
  %length = load i64, ptr %p.length
  %pc.next = add i64 %pc, %length
  %pc2 = add i64 %pc, 2
  %p.count = getelementptr i64, ptr %script, i64 %pc2
  %count = load i64, ptr %p.count
  %frames = icmp eq i64 %fn, 1
  br i1 %frames, label %frame, label %kernel
kernel:
  %k = phi i64 [ 0, %some ], [ %k.next, %put ]
  %k.done = icmp eq i64 %k, %count
  br i1 %k.done, label %call, label %put
put:
  %k4 = mul i64 %k, 4
  %k.3 = add i64 %k4, 3
  %k.at = add i64 %pc, %k.3
  %q0 = getelementptr i64, ptr %script, i64 %k.at
  %q1 = getelementptr i64, ptr %q0, i64 1
  %q2 = getelementptr i64, ptr %q0, i64 2
  %q3 = getelementptr i64, ptr %q0, i64 3
  %const = load i64, ptr %q0
  %base.i = load i64, ptr %q1
  %start.i = load i64, ptr %q2
  %stride = load i64, ptr %q3
  %p.base = getelementptr i64, ptr %bases, i64 %base.i
  %base = load i64, ptr %p.base
  %p.start = getelementptr i64, ptr %rec, i64 %start.i
  %start = load i64, ptr %p.start
  %off = mul i64 %start, %stride
  %sum0 = add i64 %const, %base
  %sum = add i64 %sum0, %off
  %p.arg = getelementptr i64, ptr %args, i64 %k
  store i64 %sum, ptr %p.arg
  %k.next = add i64 %k, 1
  br label %kernel
call:
  %entry.p = inttoptr i64 %fn to ptr
  call void %entry.p(ptr %args)
  br label %called
called:
  br label %op
frame:
  %pc3 = add i64 %pc, 3
  %p.frame = getelementptr i64, ptr %script, i64 %pc3
  %words = load ptr, ptr %p.frame
  %pc4 = add i64 %pc, 4
  %p.slot = getelementptr i64, ptr %script, i64 %pc4
  %slot0 = load i64, ptr %p.slot
  br label %fargs
fargs:
  %j = phi i64 [ 0, %frame ], [ %j.next, %given ]
  %j.done = icmp eq i64 %j, %count
  br i1 %j.done, label %go, label %farg
farg:
  %j5 = mul i64 %j, 5
  %j.5 = add i64 %j5, 5
  %j.at = add i64 %pc, %j.5
  %g0 = getelementptr i64, ptr %script, i64 %j.at
  %g1 = getelementptr i64, ptr %g0, i64 1
  %g2 = getelementptr i64, ptr %g0, i64 2
  %g3 = getelementptr i64, ptr %g0, i64 3
  %g4 = getelementptr i64, ptr %g0, i64 4
  %header = load i64, ptr %g0
  %b.i = load i64, ptr %g1
  %s.i = load i64, ptr %g2
  %s.w = load i64, ptr %g3
  %n.i = load i64, ptr %g4
  %p.b = getelementptr i64, ptr %bases, i64 %b.i
  %b = load i64, ptr %p.b
  %p.s = getelementptr i64, ptr %rec, i64 %s.i
  %s = load i64, ptr %p.s
  %s.off = mul i64 %s, %s.w
  %address = add i64 %b, %s.off
  %slot.k = add i64 %slot0, %j
  %p.word = getelementptr i64, ptr %words, i64 %slot.k
  %plain = icmp eq i64 %header, 0
  br i1 %plain, label %object, label %made
object:
  store i64 %address, ptr %p.word
  br label %given
made:
  %h = inttoptr i64 %header to ptr
  %h.data = getelementptr i64, ptr %h, i64 2
  store i64 %address, ptr %h.data
  %h.dims = getelementptr i64, ptr %h, i64 6
  %p.n = getelementptr i64, ptr %rec, i64 %n.i
  %n = load i64, ptr %p.n
  store i64 %n, ptr %h.dims
  store i64 %header, ptr %p.word
  br label %given
given:
  %j.next = add i64 %j, 1
  br label %fargs
go:
  %ready = call i64 %prepare(ptr %words)
  %fits = icmp eq i64 %ready, 0
  br i1 %fits, label %execute, label %fail
execute:
  %status = call i64 %run(ptr %words)
  %well = icmp eq i64 %status, 0
  br i1 %well, label %ran, label %fail
ran:
  br label %op
fail:
  %why = phi i64 [ %ready, %go ], [ %status, %execute ]
  store i64 %i, ptr %ctx
  store i64 %pc, ptr %p.at
  ret i64 %why
over:
  %i.next = add i64 %i, %step
  br label %test
finish:
  store i64 %i, ptr %ctx
  store i64 0, ptr %p.at
  ret i64 0
}
""".replace("WORDS", str(int(Rec.WORDS)))


@functools.cache
def runner() -> tuple[Callable[[int], int], int, int]:
    """``run(address of the words of Ctx)``: 0, or what a frame stopped with; and the interpreter's functions."""
    digest = hashlib.sha256(_RUNNER.encode()).hexdigest()[:16]
    address = load_module(f"symc.fold.{digest}", lambda: _RUNNER, 2)("fold_run")
    run, prepare = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in executor()[:2])  # type: ignore[arg-type]
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address), run, prepare


def address(a: np.ndarray) -> int:
    """Address of the data of an array."""
    return a.__array_interface__["data"][0]


class Kernel:
    """A function in the subset of Python that kernels are written in. Numbers come first, then arrays of ``dtypes``."""

    def __init__(self, fn: Callable[..., Any], numbers: int, dtypes: str):
        text = inspect.getsource(fn)
        text = f"def {fn.__name__}({text.split('(', 1)[1]}" if text.startswith("@") else text
        arrays = tuple(np.dtype(d) for d in dtypes.split())
        self.source = Source(_plain(text), ("",) * numbers, arrays, ())  # type: ignore[arg-type]
        self._words = ctypes.c_int64 * (numbers + len(arrays))

    @functools.cached_property
    def address(self) -> int:
        return int(compile_text(self.source))

    @functools.cached_property
    def _call(self) -> Any:
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)

    def __call__(self, *args: Any) -> None:
        """Run it on numbers, then arrays."""
        self.run(*(a if isinstance(a, int) else address(a) for a in args))

    def run(self, *words: int) -> None:
        """Run it on numbers, then addresses."""
        array = self._words(*words)
        self._call(ctypes.addressof(array))


def _plain(text: str) -> str:
    """The text of a function without annotations and docstring."""
    import ast

    (tree,) = ast.parse(text).body
    assert isinstance(tree, ast.FunctionDef)
    tree.returns, tree.decorator_list = None, []
    for a in tree.args.args:
        a.annotation = None
    if isinstance(tree.body[0], ast.Expr):
        tree.body = tree.body[1:]
    return ast.unparse(tree)
