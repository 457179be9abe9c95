"""``python -m symc doctor --device cuda``: checks up to the first that fails, with its text and what to do."""

from __future__ import annotations

import sys

import pytest

from symc.__main__ import main
from symc.errors import InputError
from symc.ir import dtypes
from symc.ir.record import replace
from symc.runtime.cuda.cupy_device import CupyDevice
from symc.runtime.cuda.devices import devices_from
from symc.testing import dry_cuda, emulated_cuda
from symc.tools import first_contact
from symc.tools.first_contact import CHECKS
from tests.cuda.emulated import needs_compiler


def refused(device: str) -> str:
    raise InputError("the GPU is at lunch")


@pytest.fixture
def no_driver(monkeypatch):
    """A machine without a GPU."""
    monkeypatch.delenv("SYMC_CUDA", raising=False)
    monkeypatch.setattr(first_contact, "CHECKS", (replace(CHECKS[0], run=refused), *CHECKS[1:]))


@needs_compiler
def test_an_emulated_device_passes(capsys):
    with emulated_cuda():
        assert main(["doctor", "--device", "cuda"]) == 0
    said = capsys.readouterr().out
    assert [x.name for x in CHECKS] == [line.split()[0] for line in said.split("\ncuda\n")[1].splitlines()]
    assert "replayed 3 of 4 calls" in said and "fails" not in said


@needs_compiler
def test_bfloat16_is_left_out_where_the_host_has_none(monkeypatch):
    monkeypatch.setattr(first_contact, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.setattr(dtypes.bfloat16, "_found", None)
    said: list[str] = []
    with emulated_cuda():
        assert first_contact.first_contact("cuda", said.append) is None
    assert any("right in float32, float16; bfloat16 needs ml_dtypes" in line for line in said)


def test_the_first_failure_ends_it(no_driver, capsys):
    assert main(["doctor", "--device", "cuda"]) == 1
    said = capsys.readouterr().out.split("\ncuda\n")[1]
    assert "driver   fails: the GPU is at lunch" in said and "what to do: a GPU needs NVIDIA's driver" in said
    assert "CuPy" not in said


def test_a_bug_is_shown_whole(capsys):
    with dry_cuda():
        assert "a dry device runs nothing" in (first_contact.first_contact("cuda") or "")
    assert main(["doctor", "--device", "gpu"]) == 2
    assert "unknown device 'gpu'" in capsys.readouterr().out


def test_cupy_and_nvrtc_on_a_fake(monkeypatch):
    from tests.cuda.fake_driver import faked, reason

    if reason():
        pytest.skip(reason())
    said: list[str] = []
    monkeypatch.setattr(first_contact, "is_real", lambda: True)
    monkeypatch.setattr(first_contact, "CHECKS", CHECKS[1:3] + CHECKS[5:])
    with faked(), devices_from(CupyDevice):
        assert first_contact.first_contact("cuda", said.append) is None
    assert said[0].startswith("  CuPy     14.") and "bytes for sm_" in said[1] and len(said) == len(CHECKS) - 3


def test_benchmarks_end_without_a_gpu(no_driver, monkeypatch, capsys):
    from benchmarks.cuda.__main__ import main as benchmarks

    monkeypatch.setattr(sys, "argv", ["benchmarks.cuda"])
    assert benchmarks() == 1
    said = capsys.readouterr().out.strip()
    assert said == ("no benchmark: driver: the GPU is at lunch (python -m symc doctor --device cuda says what to do)")
