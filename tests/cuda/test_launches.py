"""What functions launch at the sizes of a GPU: ordinary programs are planned on a dry device, and no kernel of theirs
moves megabytes by few threads, or more than twice what it must, without a reason that stands here."""

from __future__ import annotations

import numpy as np
import pytest

import symc as sc
from symc.errors import DeviceError, InputError
from symc.tools.launches import Launch, launches, occupancy
from tests.cuda.emulated import needs_compiler
from tests.cuda.more_programs import PROGRAMS

#: Bytes from which on a kernel has many threads, how many those are, and how much it may move more than it must.
LARGE, THREADS, TIMES = 1e6, 16_000, 2.0
#: Why a program has a kernel of few threads.
FEW = {
    "running maximum": "a loop over time of a function that nobody knows to be associative",
}
#: Why a template moves more than twice what it must.
AGAIN = {
    "RowKernel": "a row that is longer than the registers of a block is read once in every pass",
    "Sort": "runs of 1,024 are merged in pairs, and every merge reads and writes all of them",
    "Scatter": "each block that owns rows looks at all numbers that pick rows, which come from the L2",
}


def audited(name: str, symbolic: bool = False) -> list[str]:
    """What is wrong with the launches of a program."""
    f = PROGRAMS[name].compiled(symbolic)
    named = {str(s): int(str(s)[1:]) for i in f._built.function.inputs for s in i.type.shape if not isinstance(s, int)}
    found = launches(f._program, named, registers=False)
    kernels = [x for x in found if x.template]
    wrong = [f"{x.name}: {x.threads} threads for {x.moved // x.runs} bytes" for x in kernels
             if x.moved > LARGE * x.runs and x.threads < THREADS and name not in FEW]
    steps: dict[int, list[Launch]] = {}
    for x in kernels:
        steps.setdefault(x.step, []).append(x)
    for own in steps.values():
        moved, minimal = sum(x.moved for x in own), sum(x.minimal for x in own)
        if moved > max(TIMES * minimal, LARGE * own[0].runs) and own[0].template not in AGAIN:
            wrong.append(f"{own[0].name}: moves {moved} bytes, must move {minimal}")
    return wrong


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_ordinary_programs_use_the_whole_device(part):
    with sc.testing.dry_cuda():
        found = {name: audited(name) for name in list(PROGRAMS)[part::4]}
    assert len(found) > 25 and not any(found.values()), {k: v for k, v in found.items() if v}


@pytest.mark.parametrize("name", [
    "mse", "cross entropy", "autoencoder", "softmax 50257", "layer norm gradients 768", "embedding gradients",
    "scatter rows", "weighted histogram", "segment sums", "cumsum of columns", "cumsum of few columns",
    "concatenation of rows", "column sum and maximum", "argmax of columns", "standardized", "batch norm of rows"])
def test_sizes_may_have_names(name):
    with sc.testing.dry_cuda():
        assert not audited(name, symbolic=True)


def test_reasons_are_needed():
    """A reason that no program needs any more goes."""
    with sc.testing.dry_cuda():
        for name in FEW:
            kernels = [x for x in launches(PROGRAMS[name].compiled()._program, {}, registers=False) if x.template]
            assert any(x.moved > LARGE * x.runs and x.threads < THREADS for x in kernels)


def step():
    x, y = sc.input("x", "float32", ("n", 512)), sc.input("y", "float32", ("n", 10))
    w, b = sc.shared(np.ones((512, 10), "float32"), "w"), sc.shared(np.zeros(10, "float32"), "b")
    loss = ((x @ w + b - y) ** 2).mean()
    gw, gb = sc.grad(loss, [w, b])
    return sc.compile(loss, [x, y], updates={w: w - 0.1 * gw, b: b - 0.1 * gb}, device="cuda", name="step")


def test_a_table_of_launches():
    with sc.testing.dry_cuda():
        f = step()
        small, large = f.launches(n=64), f.launches(n=65536)
        assert [x.kind for x in small].count("product") == 2
        assert large.seconds > small.seconds > 0 and large.seconds < 2 * large.least
        kernel = next(x for x in large if x.moved > LARGE and x.kind == "kernel")
        assert kernel.threads == kernel.blocks * kernel.block >= THREADS
        assert {*kernel.occupancy} == {"sm_80", "sm_90", "sm_100"} and kernel.lines
        assert kernel.registers > 0 and kernel.spills == 0
        text = str(large)
        assert kernel.name in text and "occupancy" in text and text.splitlines()[-1].startswith("in all ")
        with pytest.raises(DeviceError, match="a dry device runs nothing"):
            f(np.ones((2, 512), "float32"), np.ones((2, 10), "float32"))


def test_what_cannot_be_asked():
    with sc.testing.dry_cuda():
        f = step()
        with pytest.raises(InputError, match="the size n is needed"):
            f.launches()
        with pytest.raises(InputError, match="step has no size 'm'"):
            f.launches(m=3)
    x = sc.input("x", "float32", (3,))
    with pytest.raises(InputError, match="was compiled for cpu, which launches nothing"):
        sc.compile(x + 1, [x]).launches()


def test_loops_count_their_steps():
    x = sc.input("x", "float32", (64, 64))
    with sc.testing.dry_cuda():
        f = sc.compile(sc.fori_loop(0, 7, lambda i, u: sc.tanh(u @ u), x), [x], device="cuda")
        assert {x.runs for x in f.launches() if x.kind in ("kernel", "product")} == {7}


def test_every_launch_of_a_sort_moves_all():
    """Arrays are those that an entry is given, whatever its text calls them."""
    x = sc.input("x", "float32", (1 << 20,))
    with sc.testing.dry_cuda():
        found = sc.compile(sc.argsort(x), [x], device="cuda").launches()
    assert len(found) == 11 and all(k.moved >= 2 * 8 << 20 for k in found[1:]), [k.moved for k in found]


@pytest.mark.long
@needs_compiler
def test_bytes_are_those_that_move():
    """What is read off the loops is what the emulated device sees moving."""
    from symc.runtime.cuda.devices import context

    x, y = sc.input("x", "float32", (256, 128)), sc.input("y", "float32", (128,))
    a = np.ones((256, 128), "float32")
    for made in (sc.tanh(x) * y + x, x.sum(0), sc.concatenate([x, x * 2], 1), x.sum()):
        with sc.testing.emulated_cuda():
            f = sc.compile(made, [x, y] if made.ndim == 2 and made.shape == x.shape else [x], device="cuda")
            with context("cuda").device.measuring() as seen:
                f(*[a, a[0]][:len(f.inputs)])
            found = [k for k in f.launches() if k.kind == "kernel"]
        for estimate, measured in zip(found, seen, strict=True):
            moved = measured.bytes_read + measured.bytes_written
            assert moved / 2 <= estimate.moved <= 2 * moved, (str(made), estimate.name, moved)


def test_occupancy_by_the_rules():
    assert occupancy(32, 0, 256) == {"sm_80": 1.0, "sm_90": 1.0, "sm_100": 1.0}
    assert occupancy(128, 0, 256)["sm_90"] == 0.25  # 65536 registers for 32768 of each block
    assert occupancy(16, 100 * 1024, 128) == {"sm_80": 1 / 16, "sm_90": 2 / 16, "sm_100": 2 / 16}
    assert occupancy(16, 0, 32)["sm_90"] == 0.5  # 32 blocks of a warp


