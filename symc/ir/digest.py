"""Digests of structure and data: BLAKE2b, in 16 bytes.

Taken from the extension module that ``hashlib`` has it from, where there is one: ``hashlib`` itself loads OpenSSL,
which takes longer than importing most of the IR.
"""

try:
    from _blake2 import blake2b  # type: ignore[import-not-found]
except ImportError:
    from hashlib import blake2b

#: Bytes of a digest.
SIZE = 16

__all__ = ["SIZE", "blake2b"]
