"""Declarations of functions of C: what they take and give, told from ctypes, cffi, or a text."""

from __future__ import annotations

import ctypes
import re
import sys
from typing import Any

from symc.codegen.kernel.c_functions import OF_CTYPES, CFunction
from symc.errors import InputError

#: Types of numbers in C: the letter of NumPy's dtype of the same width.
_INTEGERS = {"char": "b", "short": "h", "int": "i", "long": "l", "long long": "q", "ssize_t": "l", "ptrdiff_t": "l",
             "int8_t": "b", "int16_t": "h", "int32_t": "i", "int64_t": "l", "size_t": "L", "unsigned": "I"}
TYPES = {"double": "d", "float": "f", **_INTEGERS}
_PYTHON = 4  # FUNCFLAG_PYTHONAPI: needs the interpreter's lock


def c_function_of(given: Any, signature: str | None, name: str | None) -> CFunction:
    """Record of a function of C: a ctypes function with ``argtypes`` and ``restype``, a cffi function, or an address
    with its declaration. Raises InputError for what is none."""
    if signature is not None:
        label, takes, gives = _declared(signature)
        return CFunction(name or label or "c_function", _address(given), takes, gives, given)
    if isinstance(given, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return _of_ctypes(given, name)
    if type(given).__module__ == "_cffi_backend":
        return _of_cffi(given, name)
    raise InputError(f"{given!r:.60} is no function of C", help="a function of ctypes or cffi; or an address with a "
                     'signature: sc.c_function(address, "double f(double, int)")')


def _address(given: Any) -> int:
    found = given if isinstance(given, int) and not isinstance(given, bool) else (
        ctypes.cast(given, ctypes.c_void_p).value if isinstance(given, ctypes._CFuncPtr) else  # type: ignore[attr-defined]
        _cffi_address(given) if type(given).__module__ == "_cffi_backend" else None)
    if not found or found < 0:
        raise InputError(f"{given!r:.60} is no address of a function of C")
    return found


def _of_ctypes(f: Any, name: str | None) -> CFunction:
    label = str(name or getattr(f, "__name__", "c_function"))
    if f.argtypes is None:
        raise InputError(f"the ctypes function {label} does not say what it takes",
                         help=f"set {label}.argtypes = [ctypes.c_double, ...] and {label}.restype")
    if f._flags_ & _PYTHON:
        raise InputError(f"{label} is a function of Python's C API, which native code cannot call")
    return CFunction(label, _address(f), tuple(_letter(t, label) for t in f.argtypes),
                     "" if f.restype is None else _letter(f.restype, label), f)


def _letter(t: Any, label: str) -> str:
    if t in OF_CTYPES:
        return OF_CTYPES[t]
    if t is ctypes.c_void_p:
        return "*?"
    inner = getattr(t, "_type_", None)
    if isinstance(t, type) and issubclass(t, ctypes._Pointer) and inner in OF_CTYPES:
        return "*" + OF_CTYPES[inner]
    if getattr(t, "_dtype_", None) is not None:  # np.ctypeslib.ndpointer
        return "*" + t._dtype_.char
    raise InputError(f"{label}: a parameter of the type {getattr(t, '__name__', t)} is neither a number nor an array")


def _of_cffi(f: Any, name: str | None) -> CFunction:
    backend = sys.modules["_cffi_backend"]
    kind = backend.typeof(f)
    kind = kind.item if kind.kind == "pointer" else kind
    if kind.kind != "function":
        raise InputError(f"{f!r:.60} is no function of C", help='of a compiled cffi module: ffi.addressof(lib, "name")')
    if name is None:
        raise InputError("a cffi function does not say its name", help='give it one: sc.c_function(lib.f, name="f")')
    label = name
    takes = tuple(_letter_of(t.cname, label) for t in kind.args)
    return CFunction(label, _cffi_address(f), takes, _letter_of(kind.result.cname, label), f)


def _cffi_address(f: Any) -> int:
    backend = sys.modules["_cffi_backend"]
    return int(backend.cast(backend.new_primitive_type("intptr_t"), f))


def _declared(text: str) -> tuple[str, tuple[str, ...], str]:
    """The name, the parameters and the result of ``double f(double x, const double *a, long)``."""
    found = re.fullmatch(r"([\w\s*]+)\(([^()]*)\)\s*;?\s*", text)
    if found is None:
        raise InputError(f"{text!r} is no declaration in C", help='write it so: "double f(double, int)"')
    words = found[1].replace("*", " * ").split()
    label = words.pop() if len(words) > 1 and words[-1] not in (*TYPES, "*") else ""
    given = [o for o in found[2].split(",") if o.strip() not in ("", "void")]
    return label, tuple(_letter_of(o, text, named=True) for o in given), _letter_of(" ".join(words), text)


def _letter_of(written: str, where: str, named: bool = False) -> str:
    """The letter of a type in C; ``named``: the name of a parameter may follow it."""
    words = written.replace("const", " ").replace("*", " * ").split()
    stars = words.count("*")
    words = [w for w in words if w != "*"]
    if named and len(words) > 1 and words[-1] not in TYPES:
        words = words[:-1]
    unsigned = words[:1] == ["unsigned"] and len(words) > 1
    letter = TYPES.get(" ".join(words[unsigned:]), "")
    if stars > 1 or not letter and words != ["void"]:
        raise InputError(f"{where}: the type {written.strip()!r} is neither a number nor an array of numbers",
                         help=f"known are {', '.join(TYPES)}, unsigned ones and pointers to them")
    letter = letter.upper() if unsigned else letter
    return f"*{letter or '?'}" if stars else letter
