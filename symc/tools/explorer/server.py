"""``python -m symc view``: the explorer's page of a file or a function, on a port of this machine."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from symc.driver.deferred_function import Specializing
from symc.driver.function import CompiledFunction
from symc.errors import InputError, ParseError, did_you_mean
from symc.tools.explorer.model import model_of_ir
from symc.tools.explorer.page import page


def page_of(what: str, read: Callable[[str], str]) -> str:
    """The page of ``model.py:step`` or ``package.module:step``, of a file that ``f.save`` wrote, or of IR text, which
    goes through the default pipeline. ``read``: the text of a file."""
    place, colon, name = what.rpartition(":")
    if colon and name.isidentifier() and not os.path.exists(what):
        return _function(place, name)
    if what != "-":
        with open(what, "rb") as file:
            if file.read(2) == b"PK":
                from symc.driver.files import load

                return _html(load(what))
    return _text(what, read(what))


def _html(f: Any) -> str:
    from symc.tools.inspection import html

    return html(f)


def _function(place: str, name: str) -> str:
    """The page of a function in a module, which is imported."""
    if place.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(place).stem, place)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, str(Path(place).resolve().parent))
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as e:
            raise InputError(f"view: {e}", help="name a file, or a function as module:name or file.py:name") from None
    f = getattr(module, name, None)
    if not isinstance(f, CompiledFunction | Specializing):
        known = [n for n, x in vars(module).items() if isinstance(x, CompiledFunction | Specializing)]
        said = f"{place} has no {name!r}" if f is None else f"{name} of {place} is no compiled function"
        raise InputError(f"view: {said}", help=did_you_mean(name, known))
    method: Any = f.to_html  # of the types of the last call, where it is compiled for many
    return _html(method.__self__)


def _text(name: str, text: str) -> str:
    """The page of IR text: of its first function, after every pass."""
    from symc.ir.parse import parse_module
    from symc.opt import optimize

    functions = parse_module(text)
    if not functions:
        raise ParseError(f"{name} has no function")
    out = optimize(functions[0])
    return page(model_of_ir(functions[0].name, out.stages, out))


def server_of(html: str, port: int = 0) -> ThreadingHTTPServer:
    """A server of one page, for this machine alone."""
    body = html.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = self.headers.get("Host", "").rpartition(":")[0]
            if self.path != "/" or host not in ("127.0.0.1", "localhost"):  # other names are of other sites
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def view(html: str, port: int, browser: bool) -> None:
    """Show a page until the process is interrupted."""
    with server_of(html, port) as server:
        url = f"http://127.0.0.1:{server.server_port}/"
        print(f"{url}    (Ctrl+C ends it)", flush=True)
        if browser:
            import webbrowser

            webbrowser.open(url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
