"""Parts of IR text: tokens, sizes, types, numbers and attributes (the grammar is in ``parse``)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from symc.errors import ParseError
from symc.ir.attrs import Array
from symc.ir.dim import Size, size_name
from symc.ir.literal import nan_from_bits
from symc.ir.size_text import parse_tokens
from symc.ir.types import DTYPES, MAX_AXES, TensorType

#: A comment, a token, or a character that is none; blanks lie between.
_TOKEN = re.compile(
    r'//[^\n]*|("(?:[^"\\\n]|\\.)*"|%\w+|@\w+|#[0-9a-f]+|0x[0-9a-f]+'
    r"|\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+|[^\W\d]\w*|->|\*\*|==|[-+*()\[\]{},:=^])|([^ \t\r\n])"
)
#: What ends a size, but for operators.
_AFTER_SIZE = frozenset({",", "]", ")", "}"})
#: How deep regions and tuples may be nested in text.
_DEEPEST = 64


class Reader:
    """Reads a text token by token: sizes, types, numbers, attributes."""

    def __init__(self, text: str, arrays: Mapping[str, np.ndarray]):
        if not isinstance(text, str):
            raise ParseError(f"IR is text, not {type(text).__name__}")
        self.text, self.arrays, self.depth = text, arrays, 0
        self.types_read: dict[tuple[str, ...], TensorType] = {}
        self.tokens: list[str] = []
        self.offsets: list[int] = []
        for m in _TOKEN.finditer(text):
            if m.lastindex:
                self.offsets.append(m.start())
                if m.lastindex == 2:
                    raise self.error(f"unexpected character {m[2]!r}", len(self.tokens))
                self.tokens.append(m[1])
        self.tokens.append("")
        self.offsets.append(len(text))
        self.at = 0

    # -- tokens

    def error(self, what: str, at: int | None = None) -> ParseError:
        offset = self.offsets[min(self.at if at is None else at, len(self.offsets) - 1)]
        line = self.text.count("\n", 0, offset) + 1
        start = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        shown = self.text[start : len(self.text) if end < 0 else end].strip()
        return ParseError(
            f"line {line}, column {offset - start + 1}: {what}", values=[(shown, None, "")] if shown else []
        )

    def peek(self) -> str:
        return self.tokens[self.at]

    def next(self) -> str:
        token = self.tokens[self.at]
        self.at += token != ""
        return token

    def deeper(self, by: int = 1) -> None:
        self.depth += by
        if self.depth > _DEEPEST:
            raise self.error(f"nested deeper than {_DEEPEST} levels")

    def accept(self, token: str) -> bool:
        if self.tokens[self.at] == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if self.tokens[self.at] != token:
            raise self.error(f"expected {token!r}, found {self.peek()!r}")
        self.at += 1

    def sigil(self, mark: str) -> str:
        token = self.peek()
        if not token.startswith(mark):
            raise self.error(f"expected a name with {mark!r}, found {token!r}")
        self.at += 1
        return token[1:]

    # -- types, numbers, attributes

    def size(self) -> Size:
        token = self.tokens[self.at]
        if token and self.tokens[self.at + 1] in _AFTER_SIZE:  # most are one number or one name
            if token.isdecimal() and len(token) < 19:
                self.at += 1
                return int(token)
            if token.isidentifier():
                self.at += 1
                return size_name(token)
        try:
            value, self.at = parse_tokens(self.tokens, self.at)
        except (ValueError, IndexError) as e:
            raise self.error(str(e)) from None
        return value

    def type(self) -> TensorType:
        """A type: most have been read before."""
        tokens, start = self.tokens, self.at
        key = tuple(tokens[start : tokens.index("]", start) + 1]) if "]" in tokens[start : start + 16] else ()
        found = self.types_read.get(key)
        if found is None:
            found = self.new_type()
            self.types_read[tuple(tokens[start : self.at])] = found
        else:
            self.at += len(key)
        return found

    def new_type(self) -> TensorType:
        name = self.next()
        if name not in DTYPES:
            raise self.error(f"{name!r} is not a dtype", self.at - 1)
        self.expect("[")
        shape: list[Size] = []
        while not self.accept("]"):
            shape.append(self.size())
            if self.peek() != "]":
                self.expect(",")
        known = [s for s in shape if isinstance(s, int)]
        if len(shape) > MAX_AXES or any(s < 0 for s in known) or (
                0 not in known and math.prod(known) * DTYPES[name].itemsize >= 2**63):
            raise self.error(f"there are no arrays of shape ({', '.join(map(str, shape))})", self.at - 1)
        return TensorType(DTYPES[name], shape)

    def types(self) -> list[TensorType]:
        out = [self.type()]
        while self.accept(","):
            out.append(self.type())
        return out

    def number(self, dtype: np.dtype) -> np.ndarray:
        """A number of a known dtype, bit for bit."""
        if self.peek() == "complex" and dtype.kind == "c":
            self.at += 1
            self.expect("(")
            half = DTYPES["f32"] if dtype.itemsize == 8 else DTYPES["f64"]
            re_ = self.number(half)
            self.expect(",")
            im = self.number(half)
            self.expect(")")
            out = np.zeros((), dtype)
            out.real, out.imag = re_, im
            return out
        if self.peek() == "nan" and self.tokens[self.at + 1] == "(":
            self.at += 2
            try:
                found = nan_from_bits(int(self.next(), 16), dtype)
            except (ValueError, OverflowError, TypeError):
                raise self.error(f"there is no such nan of dtype {dtype}", self.at - 1) from None
            self.expect(")")
            return found
        sign = "-" if self.accept("-") else ""
        token = self.next()
        try:
            if dtype.kind == "b":
                return np.array({"true": True, "false": False}[token])
            return np.array(int(sign + token) if dtype.kind in "iu" else float(sign + token), dtype)
        except (ValueError, KeyError, OverflowError):
            raise self.error(f"{sign + token[:40]!r} is not a number of dtype {dtype}", self.at - 1) from None

    def attr(self) -> Any:
        token = self.peek()
        if token == "(":
            return self.attr_tuple()
        if token == "dense":
            return self.dense()
        if token in DTYPES:
            if self.tokens[self.at + 1] == "[":
                return self.type()
            return DTYPES[self.next()]
        if token in ("none", "true", "false"):
            return {"none": None, "true": True, "false": False}[self.next()]
        if token.startswith('"'):
            import json

            return json.loads(self.next())
        body = self.tokens[self.at + 1] if token == "-" else token
        if body in ("inf", "nan") or ("." in body or "e" in body.lower()) and body[:1].isdigit():
            return float(self.number(DTYPES["f64"]))
        return self.size()

    def attr_tuple(self) -> tuple:
        self.expect("(")
        self.deeper()
        out = []
        while not self.accept(")"):
            out.append(self.attr())
            if self.peek() != ")":
                self.expect(",")
        self.deeper(-1)
        return tuple(out)

    def dense(self) -> Array:
        self.at += 1
        self.expect("(")
        t = self.type()
        if self.tokens[self.at + 1].startswith("#"):
            self.expect(",")
            array = self.named_array(self.sigil("#"), t)
            self.expect(")")
            return array
        numbers = []
        while self.accept(","):
            numbers.append(self.number(t.dtype))
        self.expect(")")
        out = np.empty(len(numbers), t.dtype)
        for k, x in enumerate(numbers):
            out[k] = x
        try:
            return Array(out.reshape(t.shape))
        except (ValueError, TypeError):
            raise self.error(f"{len(numbers)} numbers do not fill {t}") from None

    def named_array(self, digest: str, t: TensorType) -> Array:
        if digest in self.arrays:
            found: Array | None = Array(self.arrays[digest])
        else:
            found = Array.by_digest(bytes.fromhex(digest)) if len(digest) == 32 else None
        if found is None or found.digest.hex() != digest or found.type is not t:
            raise self.error(f"the constant #{digest[:8]}... : {t} is not at hand; pass it in arrays=")
        return found

    # -- lines, regions, functions
