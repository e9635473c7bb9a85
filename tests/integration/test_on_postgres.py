"""The integration tests once more, with PostgreSQL as Django's database."""

import os
import subprocess
import sys

import pytest

from tests.services import PROJECT


@pytest.mark.postgres
def test_everything_holds_on_postgres(postgres_url: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest"),
            *("tests/integration/cards", "tests/integration/prompts"),
            "tests/integration/artifacts",
            *("-p", "no:cacheprovider", "--create-db"),
        ],
        cwd=PROJECT,
        env={**os.environ, "TEST_DATABASE_URL": postgres_url},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-8000:]
    assert " passed" in done.stdout
