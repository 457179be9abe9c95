"""Names in texts of native functions, beside those of ``names``: what lies in memory, and what other libraries have."""

from __future__ import annotations

from typing import Any

from symc.codegen.language.names import Primitive


class array:
    """Type of a parameter at whose address elements of a type lie."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


#: What functions leave open, types among it; types that the letters of BLAS stand for.
T = I = Open = Any
BLAS = {"s": "f32", "d": "f64", "c": "c64", "z": "c128"}
#: Functions of a module by name, each with what the names mean that it leaves open: types (by name), numbers, helpers.
Texts = dict[str, tuple[Any, dict[str, Any]]]


class Outside:
    """A function of another library: its name, and letters of its result and of what it takes ("p": an address, "i": an
    int of 32 bits, "l": one of 64, "v": nothing). Without a name its address is what it is given first."""

    def __init__(self, name: str, letters: str):
        self.name, self.gives, self.takes = name, letters[0], letters[1:]


#: ``memory(T, n)`` is a number n of elements, of a dtype or of that of an array; ``pointer(T, k)`` what lies at an
#: address, ``address(array)`` where it lies, ``word(bytes)`` eight bytes, wherever they lie.
memory, pointer, address, word = map(Primitive, ("memory", "pointer", "address", "word"))
#: Words that several threads read and write: ``atomic_add`` gives what was there; ``atomic_exchange(place, old, new)``
#: whether that was ``old``, and is now ``new``.
atomic_load, atomic_store, atomic_add, atomic_exchange = map(
    Primitive, ("atomic_load", "atomic_store", "atomic_add", "atomic_exchange"))
#: A condition that rarely holds, of an `if`.
unlikely = Primitive("unlikely")
