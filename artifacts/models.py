"""What is kept of a file beside its bytes.

Spec: EMIT 10.9, 13; interfaces.md, REST; docs/artifacts.md.
"""

from typing import Final

from django.db import models


class Artifact(models.Model):
    """A file of a session; its id stays the same whatever version it has."""

    class Source(models.TextChoices):
        """Who brought it."""

        ASSISTANT = "assistant"
        USER = "user"

    #: Public name, minted.
    artifact_id = models.CharField(max_length=32, unique=True)
    session = models.ForeignKey(
        "cards.Session",
        on_delete=models.CASCADE,
        related_name="artifacts",
        db_index=False,
    )
    #: Safe to be shown, stored and linked; several artifacts may have the same.
    name = models.CharField(max_length=255)
    source = models.CharField(max_length=9, choices=Source)
    created_at = models.DateTimeField()
    #: When the newest version came.
    changed_at = models.DateTimeField()
    #: The highest number that a version got; it is never given again, so that what a
    #: client was told of a version stays true.
    last_version = models.PositiveIntegerField(default=0)

    class Meta:
        indexes = [  # noqa: RUF012
            models.Index(
                fields=["session", "-created_at", "-id"], name="artifact_of_session"
            ),
            models.Index(fields=["session", "name"], name="artifact_named"),
            models.Index(fields=["-created_at", "-id"], name="artifact_newest"),
        ]

    def __str__(self) -> str:
        return self.artifact_id


class ArtifactVersion(models.Model):
    """One version of a file: what its bytes are and where the storage has them."""

    artifact = models.ForeignKey(
        Artifact, on_delete=models.CASCADE, related_name="versions", db_index=False
    )
    #: From 1.
    version = models.PositiveIntegerField()
    #: Under which the storage has the bytes; random, nothing of the user's name.
    storage_name = models.CharField(max_length=100, unique=True)
    #: Under which it has a small picture; "" for none.
    thumbnail_name = models.CharField(max_length=100, blank=True, default="")
    size_bytes = models.PositiveBigIntegerField()
    #: Of the bytes, in hex.
    sha256 = models.CharField(max_length=64)
    #: As the bytes tell.
    mime_type = models.CharField(max_length=127)
    #: What it is to its maker, such as `file`, `data` or `image`.
    type = models.CharField(max_length=64)
    #: Such as `report`; "" for none.
    role = models.CharField(max_length=64, blank=True, default="")
    description = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    #: Since when a clean-up knows that the storage has no such file; None for never.
    missing_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [  # noqa: RUF012
            models.UniqueConstraint(
                fields=["artifact", "version"], name="artifact_version_once"
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.version}"


class CleaningPlace(models.Model):
    """Where the clean-up goes on the next time, so that it comes round to all."""

    INCOMING: Final = "incoming"
    FILES: Final = "files"
    ROWS: Final = "rows"
    MARK: Final = "mark"

    #: Of what is looked through, or `mark`.
    scope = models.CharField(max_length=16, unique=True)
    #: The key of what was looked at last; "" begins anew. Of `mark`: the word by which
    #: the storage is known again.
    place = models.CharField(max_length=128, blank=True, default="")
    #: How often the place was noted.
    runs = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.scope
