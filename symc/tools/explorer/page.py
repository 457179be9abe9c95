"""The explorer's page: data, style and scripts in one file, which loads nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

#: Characters that could end a script, or a line of one, as JSON spells them.
_SPELLED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def page(model: Mapping[str, Any]) -> str:
    """The HTML of a model. Names are the user's and anything may be in them: data is spelled so that it ends nothing,
    and the script puts it into the page as text."""
    own = files(__package__)
    parts = {
        "title": escape(f"{model['name']} · symc"), "style": own.joinpath("page.css").read_text("utf-8"),
        "model": json.dumps(model, separators=(",", ":"), allow_nan=False).translate(_SPELLED),
        "dagre": own.joinpath("dagre.min.js").read_text("utf-8"),
        "script": "".join(own.joinpath(n).read_text("utf-8") for n in ("graph.js", "explorer.js")),
    }
    text = own.joinpath("page.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda m: parts[m[1]], text)
