"""The bench of perception goes on whatever becomes of one of its parts."""

from pathlib import Path

import bench_parts
import pytest

from flows.bench.perception import run_parts


def test_a_part_that_fails_or_dies_takes_no_other_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = run_parts(
        {
            "first": bench_parts.leaves_a_note,
            "wrong": bench_parts.looks_for_what_is_not_there,
            "dead": bench_parts.dies,
            "last": bench_parts.reads_the_note,
        },
        tmp_path,
        tmp_path,
        limit_s=60,
    )
    assert [row.name for row in report.rows] == ["wrong", "dead", "reads"]
    assert [row.holds for row in report.rows] == [False, False, None]
    errors = [str(row.figures.get("error")) for row in report.rows]
    assert "KeyError" in errors[0]
    assert "ProcessExpired" in errors[1]
    assert report.rows[-1].figures == {"said": "from the first part"}
    assert not report.ok
    told = capsys.readouterr().err
    assert told.index("MISSED: wrong") < told.index("dead ...") < told.index("reads: said")


@pytest.mark.slow
def test_a_part_that_hangs_is_ended(tmp_path: Path) -> None:
    report = run_parts({"stuck": bench_parts.hangs}, tmp_path, tmp_path, limit_s=1)
    (row,) = report.rows
    assert (row.name, row.holds) == ("stuck", False)
    assert row.figures == {"error": "killed at its limit of 1 s"}
