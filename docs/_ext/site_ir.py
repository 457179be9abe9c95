"""Colours for IR: a block of text that begins as a function or a plan does is shown as one."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text

IR = re.compile(r"^(func|plan) @|^ *%\w+ = \w+ ", re.M)


class IRLexer(RegexLexer):
    """The text of functions and plans."""

    name = "symc IR"
    tokens = {"root": [
        (r"//.*", Comment.Single),
        (r"%[\w.]+", Name.Variable),
        (r"[@^][\w.]+", Name.Function),
        (r'"[^"\n]*"', String),
        (r"\b(func|plan|yield|return|update|state|alloc|free|arena|launch|call|body|donated)\b", Keyword),
        (r"\b([fiuc]\d+|b1|bool)(?=\[)", Keyword.Type),
        (r"-?\b\d+(\.\d+)?(e[+-]?\d+)?\b", Number),
        (r"(= )([a-z_]\w*)", lambda _, m: iter([(m.start(), Operator, m[1]), (m.start(2), Name.Builtin, m[2])])),
        (r"->|[=:<>*+/-]", Operator),
        (r"\w+|\s+|.", Text),
    ]}  # fmt: skip


def find_ir(app: Any, doctree: nodes.document) -> None:
    """Name the language of blocks of IR."""
    for block in doctree.findall(nodes.literal_block):
        if block.get("language") in ("text", "default") and IR.search(block.astext()):
            block["language"] = "symc-ir"


def setup(app: Any) -> dict[str, bool]:
    app.add_lexer("symc-ir", IRLexer)
    app.connect("doctree-read", find_ir)
    return {"parallel_read_safe": True}
