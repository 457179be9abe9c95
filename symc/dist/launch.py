"""``python -m symc launch -n 2 train.py``: a program as several processes of this machine that train together."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from symc.dist.children import share
from symc.dist.comm import FOLDER, RANK, RANKS, job_folder


def launch(ranks: int, program: Sequence[str]) -> int:
    """Run a script (or ``-m module``) once a rank; the exit status: the first that is not 0, which ends the others, and
    as shells have it for a rank that was killed."""
    folder = job_folder()
    running: list[subprocess.Popen[Any]] = []
    env = {**os.environ, **share(ranks), FOLDER: folder, RANKS: str(ranks)}
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        for rank in range(ranks):
            running.append(subprocess.Popen([sys.executable, *program], env={**env, RANK: str(rank)}))
        waiting = dict(enumerate(running))
        while waiting:
            for rank, process in list(waiting.items()):
                status = process.poll()
                if status:
                    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
                    print(f"symc launch: rank {rank} {how}; the others are ended", file=sys.stderr)
                    return status if status > 0 else 128 - status
                if status == 0:
                    del waiting[rank]
            time.sleep(0.02)
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)
        for process in running:
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)
