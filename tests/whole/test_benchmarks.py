"""The benchmarks' tables: what the README says is what the committed results give, and symc builds every workload."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import readme, report
from benchmarks.workloads import load_all

ROOT = Path(__file__).resolve().parents[2]
RESULTS = report.load(ROOT / "benchmarks" / "results" / readme.PUBLISHED)


def test_readme_shows_the_committed_results():
    assert RESULTS
    assert readme.published(ROOT / "README.md") == readme.tables(RESULTS)  # python -m benchmarks --readme


def test_no_result_is_left_out():
    shown = readme.tables(RESULTS)
    for document in RESULTS:
        if document["settings"]["threads"] == 1 and len(document["rows"]) > 1:
            assert f"| {document['workload']} {document['case']['name']} |" in shown


def test_losing_and_failed_rows_are_marked():
    row = {"ok": True, "cpu_s": 2.0, "compile_cold_cpu_s": 1.0, "compile_warm_cpu_s": 1.0, "start_warm_cpu_s": 1.0,
           "memory_warm_mib": 1.0, "version": "1"}  # fmt: skip
    document = {"workload": "chain", "case": {"name": "x"}, "settings": {"threads": 1, "huge_pages": False},
                "machine": {"cpu": "", "cores": 1, "system": "", "libc": "", "revision": ""},
                "rows": {"symc": row, "jax": {**row, "cpu_s": 1.0}}}  # fmt: skip
    assert "| chain x | 2 s | jax, 1 s | **2.00** |" in readme.tables([document])
    document["rows"]["symc"] = {"failure": "it died"}
    assert "| chain x | - | jax, 1 s | **failed** |" in readme.tables([document])


@pytest.mark.parametrize("name", sorted(load_all()))
def test_workloads_are_in_the_tables(name):
    workload = load_all()[name]
    assert "symc" in workload.builders and workload.cases
    compared = len(workload.builders) > 1 and min(case.threads for case in workload.cases.values()) == 1
    assert not compared or name in readme.ORDER
