"""``python -m benchmarks.cuda --estimate``: what ordinary programs would take on an H200, against the least that the
same steps could take. It needs no GPU: they are planned on a dry device (``f.launches``)."""

from __future__ import annotations

import symc as sc
from symc.tools.profiling.tables import Column, duration, table
from tests.cuda.more_programs import PROGRAMS

#: The programs of the table, by the name that it gives them.
ROWS = {
    "MLP 784-1024-1024-10 and gradients, 16,384 rows, float32": "mlp classifier",
    "two layers of 1,024, 16,384 rows, float16": "mlp half",
    "CNN, two layers and gradients, 64 images of 64 x 64": "cnn classifier",
    "transformer block of 1,024 and gradients, 8 x 512": "transformer block gradients",
    "LSTM of 512 and gradients, 128 steps of 256": "lstm gradients",
    "layer norm and gradients, 8,192 x 4,096": "layer norm gradients 4096",
    "softmax, 8,192 x 4,096": "softmax 4096",
    "scatter of 131,072 rows of 64 into 262,144": "scatter rows",
    "running sum of 16,777,216": "cumsum",
    "eigenvalues of 1,024 x 1,024": "eigh",
}


def estimates() -> str:
    """The table: estimated time, the least, and launches of each program."""
    with sc.testing.dry_cuda():
        found = [PROGRAMS[name].compiled().launches() for name in ROWS.values()]
    return table([Column("workload", list(ROWS), left=True), Column("time", [duration(x.seconds) for x in found]),
                  Column("least", [duration(x.least) for x in found]),
                  Column("launches", [str(sum(k.runs for k in x)) for x in found])])


if __name__ == "__main__":
    print(estimates())
