"""Compiled functions as files: of one function (``save``), or of a chain of some (``chain_file``)."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

from symc.driver.function import CompiledFunction
from symc.driver.plain_zip import Zip
from symc.driver.read_saved import unpack
from symc.driver.saved_file import JUNK, open_saved
from symc.errors import InputError
from symc.tensors.callsite import at_caller


def save(f: Any, path: Any) -> None:
    """Write ``f`` to ``path``; the file appears whole or not at all."""
    from symc.driver.chain_file import pack_chain
    from symc.driver.measured import MeasuredFunction
    from symc.driver.save import pack

    data = pack_chain(f) if isinstance(f, MeasuredFunction) else pack(f, state=True)
    path = os.fspath(path)
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        with open(beside, "wb") as file:
            file.write(data)
        os.replace(beside, path)
    except OSError as e:
        if os.path.exists(beside):
            os.unlink(beside)
        raise OSError(e.errno, e.strerror, path) from None  # of the path that was given


def load(path: Any) -> CompiledFunction:
    """The function that ``f.save(path)`` wrote. States are new shared variables, in ``f.shared``.

    Raises InputError for what is no saved function, whatever is wrong with it, and what the mode raises that it was
    compiled with. Nothing in the file is run; what it says is looked at before it is used.

    >>> f = sc.compile(2 * sc.vector("x"), name="double")
    >>> f.save("double.symc")
    >>> sc.load("double.symc")([1.0, 2.0])
    array([2., 4.])
    """
    where = repr(os.fspath(path))
    with at_caller(), open_saved(path) as file:
        if not _is_chain(file):
            return unpack(file, where=where)
        from symc.driver.chain_file import unpack_chain

        return unpack_chain(file, where)


def _is_chain(file: BinaryIO) -> bool:
    try:
        return any(m.filename == "part0.symc" for m in Zip(file).members)
    except (*JUNK, InputError):
        return False  # what reads one function says why it is none
    finally:
        file.seek(0)
