"""The command line: ``python -m symc opt FILE -p "canonicalize,fold"``, ``show FILE``, ``view FILE``, ``doctor``.

Text in, text out, in the manner of mlir-opt. FILE may be ``-`` for standard input.
"""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
from collections.abc import Sequence
from typing import Any

from symc.errors import InputError, SymcError


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 1 for an error in the input, 2 for a wrong command line."""
    args = _parser().parse_args(_separated(list(sys.argv[1:] if argv is None else argv)))
    try:
        return args.run(args)
    except SymcError as e:
        print(f"symc: {type(e).__name__}: {e}", file=sys.stderr)
    except OSError as e:
        print(f"symc: {e.strerror}: {e.filename}", file=sys.stderr)
    return 1


def _separated(argv: list[str]) -> list[str]:
    """The command line with "--" before a program and its own options."""
    if argv[:1] != ["launch"] or argv[1:2] in (["-h"], ["--help"]):
        return argv
    at = 1 if argv[1:2] != ["-n"] else 3
    return [*argv[:at], "--", *argv[at:]]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="symc", description="Tools for symc's IR.")
    commands = parser.add_subparsers(required=True, metavar="command")
    opt = commands.add_parser("opt", help="run passes on IR text")
    opt.add_argument("file")
    opt.add_argument(
        "-p", "--pipeline", default=None, help='pass names, such as "canonicalize,fold" (default: the default pipeline)'
    )
    opt.add_argument("--stages", action="store_true", help="print the IR after every pass")
    opt.add_argument("--explain", action="store_true", help="print which rules fired, as comments")
    opt.add_argument("--why-not", metavar="RULE", help="say why a rule did not fire")
    opt.set_defaults(run=_opt)
    show = commands.add_parser("show", help="parse, verify and print IR text")
    show.add_argument("file")
    show.set_defaults(run=_show)
    view = commands.add_parser("view", help="show a function in a browser: IR text, what f.save wrote, or module:name")
    view.add_argument("file", metavar="FILE", help="IR text, what f.save wrote, model.py:step, package.model:step")
    view.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: any that is free)")
    view.add_argument("-o", "--output", help="write the page to a file instead")
    view.add_argument("--no-browser", action="store_true", help="print the address and open nothing")
    view.set_defaults(run=_view)
    diff = commands.add_parser("diff", help="say what is different between two IR texts, but for names and order")
    diff.add_argument("left")
    diff.add_argument("right")
    diff.set_defaults(run=_diff)
    from symc.testing.fuzz.command import arguments

    arguments(commands.add_parser("fuzz", help="run random programs every way there is, and compare"))
    commands.add_parser("passes", help="list passes").set_defaults(run=_passes)
    commands.add_parser("rules", help="print the rule catalogue").set_defaults(run=_rules)
    cache = commands.add_parser("cache", help="say what machine code is kept on disk")
    cache.add_argument("--clear", action="store_true", help="remove it")
    cache.set_defaults(run=_cache)
    ranks = commands.add_parser("launch", help="run a script as several processes that train together")
    ranks.add_argument("-n", type=int, default=2, metavar="N", help="how many (default: 2)")
    ranks.add_argument("program", nargs="*", help="a script (or -m module) and its arguments")
    ranks.set_defaults(run=_launch)
    doctor = commands.add_parser("doctor", help="say what is installed and what works")
    doctor.add_argument("--device", default="cpu", help="check a device, such as cuda, step by step")
    doctor.set_defaults(run=_doctor)
    return parser


#: The most bytes of text that are read.
MOST = 1 << 28


def _read(name: str) -> str:
    """The text of a file. Raises InputError for what is none."""
    from symc.driver.saved_file import open_saved

    try:
        if name == "-":
            text = sys.stdin.read(MOST + 1)
        else:
            with open_saved(name) as file:
                text = file.read(MOST + 1).decode()
    except UnicodeDecodeError as e:
        raise InputError(f"{name} is no text: {e}") from None
    if len(text) > MOST:
        raise InputError(f"{name} has more than {MOST:,} characters")
    return text


def _opt(args: argparse.Namespace) -> int:
    from symc.ir.parse import parse_module
    from symc.opt import DEFAULT, optimize, why_not

    for f in parse_module(_read(args.file)):
        out = optimize(f, DEFAULT if args.pipeline is None else args.pipeline, verify=True)
        if args.why_not:
            print(why_not(out, args.why_not))
            continue
        for name, stage in out.stages.items() if args.stages else [("", out.function)]:
            print((f"// after {name}\n" if name else "") + str(stage))
        if args.explain:
            print("\n".join("// " + line for line in out.provenance.explain().splitlines()))
    return 0


def _show(args: argparse.Namespace) -> int:
    from symc.ir.parse import parse_module
    from symc.ir.verify import verify

    for f in parse_module(_read(args.file)):
        verify(f)
        print(f)
    return 0


def _view(args: argparse.Namespace) -> int:
    from symc.tools.explorer.server import page_of, view

    html = page_of(args.file, _read)
    if args.output is None:
        view(html, args.port, not args.no_browser)
    else:
        with open(args.output, "w", encoding="utf-8") as file:
            file.write(html)
    return 0


def _diff(args: argparse.Namespace) -> int:
    from symc.tools.debugging.diff import diff

    found = diff(_read(args.left), _read(args.right))
    print(found)
    return int(not found.same)


def _passes(args: argparse.Namespace) -> int:
    from symc.opt import DEFAULT, all_passes

    order = DEFAULT.split(",")
    passes = {p.name: p for p in all_passes()}
    width = max(map(len, passes)) + 1
    print("The default pipeline, in order:")
    for k, name in enumerate(order, 1):
        p = passes[name]
        again = " (again)" if name in order[: k - 1] else ""
        print(f"{k:4} {name:{width}} {p.doc.splitlines()[0]}{again}")
        if p.families and not again:
            print(f"     {'':{width}} rules: {', '.join(p.families)}")
        if p.why and not again:
            print(f"     {'':{width}} after {p.after[0]}: {p.why}")
        if p.undone_by and not again:
            print(f"     {'':{width}} not after it: {', '.join(p.undone_by)}")
    print("\nOn request:")
    for name in sorted(set(passes) - set(order)):
        print(f"     {name:{width}} {passes[name].doc.splitlines()[0] if passes[name].doc else ''}")
    print(f"\ndefault: {DEFAULT}")
    return 0


def _rules(args: argparse.Namespace) -> int:
    from symc.opt.why import catalogue

    sys.stdout.write(catalogue.markdown())
    return 0


def _cache(args: argparse.Namespace) -> int:
    from symc.runtime.cache import object_cache

    place = object_cache.folder()
    if place is None:
        print(f"nothing is kept: {object_cache.FOLDER}={object_cache.OFF}")
    elif args.clear:
        print(f"removed {object_cache.clear()} entries from {place}")
    else:
        sizes = [s.st_size for _, s in object_cache.entries()]
        print(f"{len(sizes)} entries, {sum(sizes):,} bytes of at most {object_cache.LIMIT:,}, in {place}")
    return 0


def _launch(args: argparse.Namespace) -> int:
    from symc.dist.launch import launch

    if args.n < 1 or not args.program:
        raise InputError("launch: how many processes of which script?",
                         help="python -m symc launch -n 2 train.py --its-own options")
    return launch(args.n, args.program)


def _doctor(args: argparse.Namespace) -> int:
    """Versions, and one small compiled function."""
    symc: Any = importlib.import_module("symc")

    system = f"{platform.machine()} {platform.system()}"
    print(f"symc {getattr(symc, '__version__', '')}, Python {platform.python_version()}, {system}")
    for name in ("numpy", "scipy", "numba", "llvmlite", "networkx", "cupy"):
        try:
            print(f"  {name:10} {importlib.import_module(name).__version__}")
        except ImportError:
            print(f"  {name:10} not installed" + (" (needed for GPUs only)" if name == "cupy" else ""))
    try:
        x = symc.vector("x")
        f = symc.compile(symc.exp(x) * 2 + 1)
        chosen = importlib.import_module("symc.runtime.cpu.blas_library").library()
        print(f"  BLAS       of {chosen.name}, integers of {8 * chosen.integer.itemsize} bits")
        llvm = importlib.import_module("symc.runtime.compilers.llvm")
        wide = "512 bits where kernels call functions or look for extremes, else " if llvm.wide_vectors() else ""
        print(f"  vectors    {wide}LLVM's choice, on {llvm.llvm().get_host_cpu_name()}")
        print(f"  compile    works: exp(0) * 2 + 1 = {f([0.0])[0]}")
    except Exception as e:  # the doctor reports whatever is wrong
        print(f"  compile    fails: {type(e).__name__}: {e}")
        return 1
    if args.device == "cpu":
        return 0
    devices = importlib.import_module("symc.runtime.cuda.devices")
    try:
        devices.parse(args.device)
    except symc.InputError as e:
        print(e)
        return 2
    print(args.device)
    return int(importlib.import_module("symc.tools.first_contact").first_contact(args.device) is not None)


if __name__ == "__main__":
    sys.exit(main())
