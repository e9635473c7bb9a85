"""A storage of its own for each test, and Ann with her session."""

from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client

from artifacts.shelf import StoredArtifactShelf
from cards.models import Session
from cards.principals import user_principal
from tests.integration.artifacts.files import Reader, client_of, reader_of
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


@pytest.fixture
def ann(transactional_db: None, files_dir: Path) -> User:
    return User.objects.create_superuser("ann")


@pytest.fixture
def session(ann: User) -> Session:
    return make_session("sess_ann", user_principal(ann.pk))


@pytest.fixture
def browser(ann: User) -> Client:
    return client_of(ann)


@pytest.fixture
def reader(ann: User) -> Reader:
    return reader_of(ann)
