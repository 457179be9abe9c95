"""BLAKE2 as the interpreter has it built in. ``hashlib`` has the same, and loads OpenSSL first, which takes 3 ms."""

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b"]
