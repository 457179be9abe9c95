"""Native functions of our own with the convention of BLAS and LAPACK: every argument is an address.

Sizes are addresses of 64-bit integers. What the functions do is said in `lapack_ir` and `blas_ir`; here is how they are
written and compiled, through llvmlite, without Numba.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_entries: dict[str, int] = {}
_keep: list[Any] = []  # the machine code


def entry(name: str, module: type[Functions]) -> int:
    """The address of a function of a module. ``module`` is compiled where no module before it had the function."""
    if name not in _entries:
        with _lock:
            if name not in _entries:
                _entries.update(_compile(module))
    return _entries[name]


def _compile(functions: type[Functions]) -> dict[str, int]:
    from llvmlite import binding, ir

    module = ir.Module("symc_native")
    builder = functions(module, ir)
    builder.write()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    parsed = binding.parse_assembly(str(module), binding.create_context())
    target = binding.Target.from_default_triple()
    if functions.vectorized:
        features = binding.get_host_cpu_features().flatten()
        machine = target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=3, jit=True)
        options = binding.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        passes = binding.create_pass_builder(machine, options)
        passes.getModulePassManager().run(parsed, passes)
    else:
        machine = target.create_target_machine(opt=2, jit=True)
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    _keep.append(engine)
    return {name: engine.get_function_address(f"symc_{name}") for name in builder.names}


class Functions(ABC):
    """Writes the functions of a module. Indices are 64 bits wide."""

    vectorized = False  # for loops over many numbers; compiling takes longer

    def __init__(self, module: Any, ir: Any):
        self.module, self.ir, self.i64, self.i32 = module, ir, ir.IntType(64), ir.IntType(32)
        self.names: list[str] = []
        self.b: Any = None
        words = self.i64.as_pointer()
        self.memcpy = ir.Function(module, ir.FunctionType(words, [words, words, self.i64]), "memcpy")

    @abstractmethod
    def write(self) -> None:
        """Write all functions of the module."""

    def const(self, k: int) -> Any:
        return self.ir.Constant(self.i64, k)

    @contextmanager
    def function(self, name: str, count: int) -> Iterator[list[Any]]:
        words = self.i64.as_pointer()
        f = self.ir.Function(self.module, self.ir.FunctionType(self.ir.VoidType(), [words] * count), f"symc_{name}")
        self.names.append(name)
        self.b = self.ir.IRBuilder(f.append_basic_block("entry"))
        yield list(f.args)
        self.b.ret_void()

    def at(self, base: Any, index: Any, type_: Any) -> Any:
        return self.b.gep(self.b.bitcast(base, type_.as_pointer()), [index], source_etype=type_)

    def load(self, base: Any, index: Any, type_: Any) -> Any:
        return self.b.load(self.at(base, index, type_), typ=type_)

    def number(self, pointer: Any) -> Any:
        return self.b.load(pointer, typ=self.i64)

    def count(self, start: Any, stop: Any, body: Callable[[Any], None]) -> None:
        """``body(k)`` for start <= k < stop."""
        b, f = self.b, self.b.function
        before, test, inside, done = b.block, *(f.append_basic_block() for _ in range(3))
        b.branch(test)
        b.position_at_end(test)
        k = b.phi(self.i64)
        k.add_incoming(start, before)
        b.cbranch(b.icmp_signed("<", k, stop), inside, done)
        b.position_at_end(inside)
        body(k)
        k.add_incoming(b.add(k, self.const(1)), b.block)
        b.branch(test)
        b.position_at_end(done)

    def parts(self, letter: str) -> tuple[Any, int]:
        """The type of the real numbers of an element, and how many there are."""
        real = self.ir.FloatType() if letter in "sc" else self.ir.DoubleType()
        return real, 2 if letter in "cz" else 1
