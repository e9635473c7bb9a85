"""A storage of its own for each test."""

from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from artifacts.shelf import StoredArtifactShelf
from cards.models import Session
from tests.integration.artifacts.shelving import use_storage
from tests.integration.cards.conftest import make_session


@pytest.fixture
def files_dir(tmp_path: Path, settings: LazySettings) -> Path:
    """Where the storage of this test keeps its files."""
    folder = tmp_path / "artifacts"
    use_storage(settings, location=str(folder))
    settings.CARDWIRE_INCOMING_DIR = tmp_path / "incoming"
    return folder


@pytest.fixture
def shelf(files_dir: Path, settings: Any) -> StoredArtifactShelf:
    return StoredArtifactShelf(
        incoming_dir=settings.CARDWIRE_INCOMING_DIR, max_bytes=1000
    )


@pytest.fixture
def session_row(transactional_db: None) -> Session:
    return make_session("sess_1")
