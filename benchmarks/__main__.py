"""``python -m benchmarks``: measure symc beside its peers and print tables. See README.md."""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks import readme, report, venvs
from benchmarks.peers import PEERS, Settings, missing

RESULTS = Path(__file__).resolve().parent / "results"
KEPT = Path(__file__).resolve().parent / ".kept"


def main() -> int:
    arguments = _parse()
    if arguments.setup:
        return 0 if venvs.make_all(arguments.python312) else 1
    if arguments.readme:
        readme.update(venvs.REPOSITORY / "README.md", report.load(RESULTS / readme.PUBLISHED))
        return 0
    folder = RESULTS / arguments.tag
    if not arguments.show:
        if importlib.util.find_spec("numpy") is None:
            sys.exit(f"this Python has no NumPy: run --setup, then use {venvs.interpreter('main')}")
        documents = _measure(arguments, folder)
    else:
        documents = report.load(folder)
        print("\n".join(map(report.case_table, documents)))
    if documents:
        print(report.ratio_table(documents, arguments.subject))
        print(report.machine_line(documents[-1]))
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("-w", "--workloads", type=_names, metavar="NAME,..", help="only these workloads")
    add("-c", "--case", default="", metavar="TEXT", help="only cases with this text in their name")
    add("-p", "--peers", type=_names, metavar="NAME,..", help="only these peers")
    add("-x", "--without", type=_names, default=[], metavar="NAME,..", help="not these peers")
    add("-t", "--threads", type=int, default=1)
    add("--pages", choices=("default", "huge", "both"), default="both",
        help="pages of every peer's allocator (glibc); both, the default, means: for cases with large arrays")
    add("--rounds", type=int, default=5, help="slices of steady calls of each peer (default 5)")
    add("--seconds", type=float, default=0.3, help="length of a slice (default 0.3)")
    add("--timeout", type=float, default=240, help="seconds to wait for a build (default 240)")
    add("--no-warm", action="store_true", help="skip the second process that finds a warm compile cache")
    add("--starts", type=int, default=1, help="cold and warm starts of each peer, the shortest counts (default 1)")
    add("--fresh", action="store_true", help="measure cold starts of slow compilers again")
    add("--tag", default="latest", help="folder under results/ (default latest)")
    add("--subject", default="symc", choices=PEERS, metavar="PEER", help="whose ratios to print (default symc)")
    add("--show", action="store_true", help="print the tables of results/TAG, measure nothing")
    add("--readme", action="store_true", help=f"write the tables of results/{readme.PUBLISHED} into README.md")
    add("--kept-only", action="store_true", help="leave out slow compilers where no earlier run kept their caches")
    add("--setup", action="store_true", help="make the peers' virtual environments")
    add("--python312", metavar="PATH", help="an interpreter 3.12 or newer for --setup, if none is on PATH")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    return text.split(",")


def _measure(arguments: argparse.Namespace, folder: Path) -> list[report.Document]:
    """Run the chosen cases one after the other; each writes its JSON, its log, and its table at once."""
    from benchmarks.runner import Options, run_case
    from benchmarks.workloads import load_all

    if arguments.fresh:
        shutil.rmtree(KEPT, ignore_errors=True)
    compileall.compile_dir(str(venvs.REPOSITORY / "symc"), quiet=1)  # as an installation does
    workloads = load_all()
    chosen = _checked(arguments.workloads, workloads, "workload")
    available = _available(arguments)
    folder.mkdir(parents=True, exist_ok=True)
    documents = []
    for workload, case in ((workloads[name], case) for name in chosen for case in workloads[name].cases.values()):
        names = [name for name in workload.peers(case) if name in available]
        if arguments.case not in case.name or not names or case.threads > arguments.threads:
            continue
        both = [False, True] if case.large else [False]
        for huge_pages in {"default": [False], "huge": [True], "both": both}[arguments.pages]:
            settings = Settings(arguments.threads, huge_pages)
            options = Options(settings, arguments.rounds, arguments.seconds, arguments.timeout, not arguments.no_warm,
                              arguments.starts, KEPT, arguments.kept_only)
            stem = f"{workload.name}.{case.name}.{settings.suffix}"
            with open(folder / f"{stem}.log", "w") as log:
                document = run_case(workload, case, names, options, log)
            (folder / f"{stem}.json").write_text(json.dumps(document, indent=1) + "\n")
            print(report.case_table(document), flush=True)
            documents.append(document)
    return documents


def _checked(wanted: list[str] | None, known: Mapping[str, object], kind: str) -> list[str]:
    """The wanted names, or all; an unknown one ends the program."""
    unknown = sorted(set(wanted or []) - set(known))
    if unknown:
        sys.exit(f"no {kind} {', '.join(unknown)}; there are {', '.join(known)}")
    return wanted or list(known)


def _available(arguments: argparse.Namespace) -> list[str]:
    """The wanted peers whose imports work; the others are named with the reason."""
    _checked(arguments.without, PEERS, "peer")
    found = []
    for name in _checked(arguments.peers, PEERS, "peer"):
        if name in arguments.without:
            continue
        reason = missing(PEERS[name])
        if reason is None:
            found.append(name)
        else:
            print(f"skipped {name}: {reason}", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
