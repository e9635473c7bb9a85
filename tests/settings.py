"""Settings of the test runs: a real SQLite file, or PostgreSQL by TEST_DATABASE_URL."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_data_dir = Path(tempfile.mkdtemp(prefix="cardwire-test-"))
atexit.register(shutil.rmtree, _data_dir, ignore_errors=True)

os.environ["CARDWIRE_DATA_DIR"] = str(_data_dir)
os.environ["CARDWIRE_DEBUG"] = "1"
os.environ.pop("REDIS_URL", None)
os.environ.pop("DATABASE_URL", None)
if os.environ.get("TEST_DATABASE_URL"):
    os.environ["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]

from config.settings import *  # noqa: E402, F403
from config.settings import DATABASES  # noqa: E402

# The log's writer has its own connection, so a database in memory would be another.
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(_data_dir / "test.sqlite3")}

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
