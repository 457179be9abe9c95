"""Compiling kernel texts with Numba: all of ``backend="numba"``, and what the other (``llvm_compile``) does not know: a
user's functions."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from symc.codegen.cpu.render import Source
from symc.codegen.kernel.user_functions import called_in
from symc.errors import ExecutionError, SymcError
from symc.ir.dtypes import DTYPES, RECORDS
from symc.ir.location import Loc
from symc.ir.phases import phase
from symc.runtime.compilers.image import for_good
from symc.runtime.compilers.uninterrupted import uninterrupted
from symc.runtime.cpu.scipy_functions import IN_TEXT


@phase("Numba")
@uninterrupted
def compile_text(source: Source, name: str) -> int:
    """The address of a kernel, whose code stays for good."""
    from numba.core import config, types
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.errors import NumbaError

    if vars(config)["DISABLE_JIT"]:
        raise ExecutionError(f"Numba must compile the kernel {name}, and NUMBA_DISABLE_JIT=1 switches Numba off",
                             help="unset it; mode='reference' and backend='numpy' compile nothing")
    function = _define(source, name)
    arguments = (types.int64,) * source.numbers + tuple(_pointer(d) for d in source.arrays)
    with global_compiler_lock:
        try:
            return _native(function, arguments)
        except NumbaError as e:
            raise _blamed(source, e) or e from e


def _define(source: Source, name: str) -> Callable[..., None]:
    """The Python function of a source. Its text is ours, made from IR; the debugger and tracebacks can show it."""
    from numba import njit

    from symc.runtime.compilers.numba_library import everything, routine

    file = f"<symc kernel {name}>"
    linecache.cache[file] = (len(source.text), None, source.text.splitlines(True), file)
    users = {n: njit(nogil=True, error_model="numpy")(f) for n, f in called_in(source.text).items()}
    routines = {n: routine(n) for n in re.findall(rf"\b{IN_TEXT}\w+(?=\()", source.text)}
    scope = {**everything(), **users, **routines}
    exec(compile(source.text, file, "exec"), scope)
    return scope[name]


def _blamed(source: Source, e: Exception) -> SymcError | None:
    """The error for a user's function that Numba cannot compile; None if the kernel calls none."""
    users = called_in(source.text)
    lines = [Loc(f.__code__.co_filename, f.__code__.co_firstlineno) for f in users.values()]
    what = f"Numba cannot compile {' or '.join(users)}: {str(e).strip().splitlines()[-1]}"
    return (
        ExecutionError(what, where=lines, help="sc.op(numba=) takes a function of scalars that numba.njit compiles")
        if users
        else None
    )


def _pointer(dtype: np.dtype) -> Any:
    from numba.core import types
    from numba.np import numpy_support

    return types.CPointer(numpy_support.from_dtype(DTYPES[RECORDS[dtype].memory]))


def _native(function: Callable[..., None], arguments: tuple[Any, ...]) -> int:
    from llvmlite import ir
    from numba.core import compiler, cpu_options, types
    from numba.core.registry import cpu_target

    flags: Any = compiler.Flags()
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.noalias = True
    flags.error_model = "numpy"
    flags.fastmath = cpu_options.FastMathOptions({"contract"})
    context = cpu_target.target_context
    result = compiler.compile_extra(cpu_target.typing_context, context, function, arguments, types.void, flags, {})
    library = context.codegen().create_library(f"entry of {result.fndesc.mangled_name}")
    module = library.create_ir_module("entry")
    words = ir.IntType(64).as_pointer()
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [words]), f"entry_{result.fndesc.mangled_name}")
    builder = ir.IRBuilder(entry.append_basic_block())
    values = []
    for k, t in enumerate(arguments):
        word = builder.load(builder.gep(entry.args[0], [ir.Constant(ir.IntType(64), k)]))
        values.append(builder.inttoptr(word, context.get_value_type(t)) if isinstance(t, types.CPointer) else word)
    context.call_conv.call_function(
        builder, context.declare_function(module, result.fndesc), types.void, arguments, values
    )
    builder.ret_void()
    library.add_ir_module(module)
    library.add_linking_library(result.library)
    library.finalize()
    for_good(library)
    address: int = library.get_pointer_to_function(entry.name)
    return address
