"""A few sudden deaths; `make chaos` has two hundred."""

from pathlib import Path

from tests.acceptance.chaos import run_chaos


async def test_kill_after_kill_loses_nothing(tmp_path: Path) -> None:
    """Spec: Rulings E2, E3, E5, E8, E14."""
    report = await run_chaos(kills=5, sessions=10, seed=7, data_dir=tmp_path)

    assert report.is_clean, report
    assert report.frames > 500
