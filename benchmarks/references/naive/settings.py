"""One SQLite database and the in-memory layer."""

import os
from pathlib import Path

SECRET_KEY = "not a secret: the server is local and holds nothing"
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = ["channels", "benchmarks.references.naive"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": Path(os.environ["BENCHMARK_DATA_DIR"]) / "naive.sqlite3",
        # Channels closes old connections with every message; a new one for each
        # frame would flatter us.
        "CONN_MAX_AGE": None,
        # As durable as our log.
        "OPTIONS": {
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
