"""``python -m symc fuzz``: the command line of the fuzzer."""

from __future__ import annotations

import argparse
import shutil
from functools import partial
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (default: 5)")
    parser.add_argument("--programs", type=int, default=None, help="stop after so many programs")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same programs")
    parser.add_argument("--backend", choices=["reference", "native", "all", "device", "numba"], default="all",
                        help="compile no programs, all of them, or some (default: all, which compiles some); device: "
                        "all of them for a CUDA device, which is emulated with g++; numba: all of them by Numba")
    parser.add_argument("--out", type=Path, default=Path("fuzz-failures"),
                        help="folder for failing programs, as .ir and as tests (default: fuzz-failures)")
    parser.add_argument("--generators", default="",
                        help="of rules, front, mixed, ops, arguments, sized, straight, loops, moved; default: all")
    parser.add_argument("--edges", action="store_true", help="infinities and nans among the inputs, too")
    parser.add_argument("--replay", metavar="NAME", help="run every check on one program, such as mixed:17")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Run; the exit status is 1 when something is wrong."""
    from symc.testing.fuzz.campaign import Campaign

    if args.replay:
        return replay(args.replay, args.edges)
    chosen = tuple(g for g in args.generators.split(",") if g)
    say = partial(print, flush=True)  # what is found is seen at once, in a file too
    summary = Campaign(args.seed, args.minutes, args.programs, args.backend, args.out, say, generators=chosen,
                       edges=args.edges).run()
    print(summary)
    return int(bool(summary.failures))


def replay(name: str, edges: bool = False) -> int:
    """Every check on one program."""
    from symc.testing.fuzz.campaign import Failure
    from symc.testing.fuzz.checks import CHECKS, Trial, run
    from symc.testing.fuzz.programs import make

    program = make(name)
    trial = Trial(program.function, program.data + (program.edges if edges else ()), program.donated)
    print(program.function)
    wrong = 0
    for check in CHECKS:
        if check == "on_device" and shutil.which("g++") is None:
            continue
        blame = run(check, trial)
        wrong += blame is not None
        print(f"{check}: " + ("right" if blame is None else str(Failure(name, check, blame))), flush=True)
    return int(wrong > 0)
