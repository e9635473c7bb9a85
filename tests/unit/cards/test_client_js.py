"""The tests of the page's JavaScript, run by Node."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright._impl import _driver

HERE = Path(__file__).parent
#: The slowest of them takes less than a second; a hang must not block the suite.
TIMEOUT_SECONDS = 120


def _find_node() -> str:
    """Return a Node: the one on the path, else the one that Playwright brings."""
    return shutil.which("node") or str(_driver.compute_driver_executable()[0])


@pytest.mark.parametrize("folder", ["client", "page"])
def test_javascript_rules_hold(folder: str) -> None:
    """Spec: EMIT 2, 15, 16; Rulings E1, E2, E4, E5, E7, E8."""
    files = sorted(str(path) for path in (HERE / folder).glob("*.test.mjs"))
    assert files

    run = subprocess.run(
        [_find_node(), "--test", "--test-reporter=tap", *files],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"^# pass (\d+)$", run.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 0
