"""The part of ``llvmlite.binding`` that compiling needs, under its names: LLVM called in llvmlite's library directly.

Importing ``llvmlite.binding`` takes 30 ms beside the 8 ms in which its library is loaded (it reads resources of
packages, and has its own objects for LLVM's text), as much as LLVM takes for a small kernel. The library's functions
are llvmlite's own affair and may change from version to version; they are called here for the versions in ``KNOWN``,
and ``llvm()`` gives llvmlite's module for others. ``tests/test_llvm_binding.py`` compares the two.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
from typing import Any

from symc.runtime import machine_code

#: The versions of llvmlite whose library is called here, the first and the last.
KNOWN = ((0, 45), (0, 50))

#: Types of results and arguments: an address, a string, where an address is written, a number.
_KINDS: dict[str, Any] = {"p": ctypes.c_void_p, "s": ctypes.c_char_p, "w": ctypes.POINTER(ctypes.c_void_p),
                          "i": ctypes.c_int, "n": ctypes.c_size_t, "": None}
_FUNCTIONS = {
    "ContextCreate": "p:", "ContextDispose": ":p", "DisposeString": ":p",
    "ParseAssembly": "p:psw", "DisposeModule": ":p", "LinkModules": "i:ppw", "PrintModuleToString": ":pw",
    "SetTarget": ":ps", "SetDataLayout": ":ps",
    "InitializeNativeTarget": "i:", "InitializeNativeAsmPrinter": "i:",
    "GetHostCPUName": ":w", "GetHostCPUFeatures": "i:w", "GetDefaultTargetTriple": ":w",
    "GetTargetFromTriple": "p:sw", "CreateTargetMachine": "p:psssissiis", "DisposeTargetMachine": ":p",
    "GetTargetMachineTriple": ":pw", "CreateTargetMachineData": "p:p", "DisposeTargetData": ":p",
    "CopyStringRepOfTargetData": ":pw", "TargetMachineEmitToMemory": "p:ppiw",
    "GetBufferStart": "p:p", "GetBufferSize": "n:p", "DisposeMemoryBuffer": ":p",
    "CreatePipelineTuningOptions": "p:", "DisposePipelineTuningOptions": ":p", "PTOSetLoopInterleaving": ":pi",
    "PTOSetLoopVectorization": ":pi", "PTOSetSLPVectorization": ":pi", "PTOSetLoopUnrolling": ":pi",
    "CreatePassBuilder": "p:pp", "DisposePassBuilder": ":p", "CreateNewModulePassManager": "p:",
    # the last argument, by how much to save space, is gone from 0.48 on; a number too many is not seen
    "buildPerModuleDefaultPipeline": "p:pii", "DisposeNewModulePassManger": ":p",
    "module_AddAlwaysInlinerPass": ":p", "RunNewModulePassManager": ":ppp",
}  # fmt: skip


def llvm() -> Any:
    """This module if it knows the library, else ``llvmlite.binding``."""
    if machine_code.LINKED:
        try:
            _library()
            return sys.modules[__name__]
        except (LookupError, OSError, AttributeError):
            pass
    from llvmlite import binding

    return binding


@functools.cache
def _library() -> Any:
    """llvmlite's library. Raises LookupError for a version that is not known."""
    import llvmlite

    version = tuple(map(int, re.findall(r"\d+", llvmlite.__version__)[:2]))
    if not KNOWN[0] <= version <= KNOWN[1]:
        raise LookupError(llvmlite.__version__)
    library = ctypes.CDLL(os.path.join(os.path.dirname(llvmlite.__file__), "binding", "libllvmlite.so"))
    for name, kinds in _FUNCTIONS.items():
        result, _, arguments = kinds.partition(":")
        function = library[f"LLVMPY_{name}"]
        function.restype, function.argtypes = _KINDS[result], [_KINDS[k] for k in arguments]
        setattr(library, name, function)
    return library


class _Owned:
    """Something of LLVM's that is disposed of with this object. ``needs``: what must live as long."""

    _dispose = ""

    def __init__(self, address: int, *needs: Any):
        self._as_parameter_, self._needs, self._lib = ctypes.c_void_p(address), needs, _library()

    def __del__(self) -> None:
        if self._as_parameter_:
            getattr(self._lib, self._dispose)(self)

    def _text(self, name: str) -> str:
        """What a function tells of it."""
        return _told(lambda out: getattr(self._lib, name)(self, out))[1]


def _told(call: Any) -> tuple[Any, str]:
    """What ``call(where to write an address)`` returns, and the string that it writes."""
    out = ctypes.c_void_p()
    result = call(ctypes.byref(out))
    text = (ctypes.cast(out, ctypes.c_char_p).value or b"").decode()
    if out:
        _library().DisposeString(out)
    return result, text


def _succeeded(found: tuple[Any, str]) -> Any:
    if found[1]:
        raise RuntimeError(f"LLVM: {found[1]}")
    return found[0]


# --- modules ----------------------------------------------------------------------------------------------------------


class Context(_Owned):
    _dispose = "ContextDispose"


class Module(_Owned):
    _dispose = "DisposeModule"

    triple = property(None, lambda self, triple: self._lib.SetTarget(self, triple.encode()))
    data_layout = property(None, lambda self, layout: self._lib.SetDataLayout(self, layout.encode()))

    def link_in(self, other: Module) -> None:
        """Put what is in another module, which ends, into this one."""
        taken, other._as_parameter_ = other._as_parameter_, ctypes.c_void_p()
        failed, why = _told(lambda out: self._lib.LinkModules(self, taken, out))
        if failed:
            raise RuntimeError(f"LLVM: {why}")

    def __str__(self) -> str:
        return self._text("PrintModuleToString")


def create_context() -> Context:
    return Context(_library().ContextCreate())


def parse_assembly(text: str, context: Context) -> Module:
    return Module(_succeeded(_told(lambda out: _library().ParseAssembly(context, text.encode(), out))), context)


# --- this processor ---------------------------------------------------------------------------------------------------


def initialize_native_target() -> None:
    _library().InitializeNativeTarget()


def initialize_native_asmprinter() -> None:
    _library().InitializeNativeAsmPrinter()


def get_host_cpu_name() -> str:
    return _told(_library().GetHostCPUName)[1]


class Features(dict[str, bool]):
    """What a processor can do."""

    def flatten(self) -> str:
        return ",".join(f"{'+' if there else '-'}{name}" for name, there in sorted(self.items()))


def get_host_cpu_features() -> Features:
    names = _told(_library().GetHostCPUFeatures)[1].split(",")
    return Features((name[1:], name[0] == "+") for name in names if name)


class TargetData(_Owned):
    _dispose = "DisposeTargetData"

    def __str__(self) -> str:
        return self._text("CopyStringRepOfTargetData")


class TargetMachine(_Owned):
    _dispose = "DisposeTargetMachine"

    @property
    def triple(self) -> str:
        return self._text("GetTargetMachineTriple")

    @property
    def target_data(self) -> TargetData:
        return TargetData(self._lib.CreateTargetMachineData(self), self)

    def emit_object(self, module: Module) -> bytes:
        found = _succeeded(_told(lambda out: self._lib.TargetMachineEmitToMemory(self, module, 1, out)))
        try:
            return ctypes.string_at(self._lib.GetBufferStart(found), self._lib.GetBufferSize(found))
        finally:
            self._lib.DisposeMemoryBuffer(found)


class Target:
    """What code is made for."""

    def __init__(self, triple: str):
        self.triple = triple
        self._address = _succeeded(_told(lambda out: _library().GetTargetFromTriple(triple.encode(), out)))

    @classmethod
    def from_default_triple(cls) -> Target:
        return cls(_told(_library().GetDefaultTargetTriple)[1])

    def create_target_machine(self, cpu: str, features: str, opt: int, reloc: str, codemodel: str) -> TargetMachine:
        strings = (s.encode() for s in (self.triple, cpu, features))
        return TargetMachine(_library().CreateTargetMachine(
            self._address, *strings, opt, reloc.encode(), codemodel.encode(), 0, 0, b""))


# --- passes -----------------------------------------------------------------------------------------------------------


class PipelineTuningOptions(_Owned):
    _dispose = "DisposePipelineTuningOptions"
    speed_level = 3

    def __setattr__(self, name: str, value: Any) -> None:
        setter = _OPTIONS.get(name)
        if setter is not None:
            getattr(self._lib, setter)(self, value)
        else:
            super().__setattr__(name, value)


_OPTIONS = {"loop_interleaving": "PTOSetLoopInterleaving", "loop_vectorization": "PTOSetLoopVectorization",
            "slp_vectorization": "PTOSetSLPVectorization", "loop_unrolling": "PTOSetLoopUnrolling"}


def create_pipeline_tuning_options(speed_level: int) -> PipelineTuningOptions:
    options = PipelineTuningOptions(_library().CreatePipelineTuningOptions())
    options.speed_level = speed_level
    return options


class ModulePassManager(_Owned):
    _dispose = "DisposeNewModulePassManger"  # sic

    def add_always_inliner_pass(self) -> None:
        self._lib.module_AddAlwaysInlinerPass(self)

    def run(self, module: Module, builder: PassBuilder) -> None:
        self._lib.RunNewModulePassManager(self, module, builder)


def create_new_module_pass_manager() -> ModulePassManager:
    return ModulePassManager(_library().CreateNewModulePassManager())


class PassBuilder(_Owned):
    _dispose = "DisposePassBuilder"

    def getModulePassManager(self) -> ModulePassManager:
        _, options = self._needs
        return ModulePassManager(self._lib.buildPerModuleDefaultPipeline(self, options.speed_level, 0), self)


def create_pass_builder(machine: TargetMachine, options: PipelineTuningOptions) -> PassBuilder:
    return PassBuilder(_library().CreatePassBuilder(machine, options), machine, options)
