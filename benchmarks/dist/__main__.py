"""Functions on Dask, training on several processes, exports: what tasks, workers, sums, starts and libraries cost.

    python -m benchmarks.dist [tasks] [map] [sums] [start] [exported]
                              [--gib 2] [--rounds 3] [--seconds 90] [--pytensor PYTHON] [--notes FILE] [--fresh]

Everything runs on this machine. Kinds take turns, and the best round counts. Each measurement is noted in a file when
it is made: a run that was stopped goes on where it was, and begins nothing new after so many seconds a part.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.dist import parts
from benchmarks.dist.shots import Notes

PARTS = ("tasks", "map", "sums", "start", "exported")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dist", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--gib", type=float, default=2.0, help="size of the map's file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=90.0, help="when a part begins no more rounds")
    parser.add_argument("--pytensor", default="", help="the interpreter of an environment that has PyTensor")
    parser.add_argument("--notes", type=Path, default=Path(tempfile.gettempdir()) / "symc-benchmarks-dist.jsonl",
                        help="the file of what is measured (%(default)s)")
    parser.add_argument("--fresh", action="store_true", help="forget what the file has")
    args = parser.parse_args()
    if wrong := set(args.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(wrong))}")
    if args.fresh:
        args.notes.unlink(missing_ok=True)
    for name in args.parts or PARTS:
        notes = Notes(args.notes, name, args.seconds)
        if name == "map":
            parts.mapped(notes, args.rounds, args.gib)
        elif name == "start":
            parts.start(notes, args.rounds, args.pytensor)
        else:
            getattr(parts, name)(notes, args.rounds)


if __name__ == "__main__":
    main()
