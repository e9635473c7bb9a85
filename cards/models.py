"""What is kept of a session: the session, its turns and its event log.

Spec: Rulings E2, E8, E9; docs/architecture.md.
"""

from django.conf import settings
from django.db import models


class Worker(models.Model):
    """A process that runs turns, for as long as its lease lasts.

    All sessions of a worker hang on this one lease, so that renewing costs one row
    however many turns run.

    Spec: Ruling E14; docs/decisions/0004-a-lease-per-worker.md.
    """

    worker_id = models.CharField(max_length=32, unique=True)
    #: The running kernel it lives on, so that a neighbour can tell at once that the
    #: process is gone; "" when unknown.
    kernel_id = models.CharField(max_length=64, blank=True, default="")
    started_at = models.DateTimeField()
    #: Whoever still finds the row unrenewed after this may take its sessions.
    lease_expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.worker_id


class Session(models.Model):
    """A conversation with one durable trace. Spec: Rulings E1, E2, E27."""

    #: Public name, chosen by the client or minted.
    session_id = models.CharField(max_length=128, unique=True)
    #: Name of the numbered event stream; a new one would be a new history.
    trace_id = models.CharField(max_length=32, unique=True)
    #: Who owns the session, such as `user:7`; see cards.principals.
    principal = models.CharField(max_length=80)
    #: Beginning of the first message, or what the engine set; "" before both.
    title = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()
    #: Start or end of the newest turn; creation before the first.
    last_activity_at = models.DateTimeField()
    #: The only worker that may write the log; "" while nobody needs to.
    owner = models.CharField(max_length=32, blank=True, default="")
    #: Counts the owners; who holds an older number writes no more. Spec: Ruling E14.
    fence = models.PositiveBigIntegerField(default=0)

    class Meta:
        indexes = [  # noqa: RUF012
            models.Index(
                fields=["principal", "-last_activity_at", "-id"], name="session_recent"
            ),
            models.Index(
                fields=["-last_activity_at", "-id"], name="session_all_recent"
            ),
            models.Index(
                fields=["owner"], condition=~models.Q(owner=""), name="session_owned"
            ),
        ]

    def __str__(self) -> str:
        return self.session_id


class Turn(models.Model):
    """One accepted user message and what became of it. Spec: Rulings E8, E9."""

    class State(models.TextChoices):
        """How far a turn is. A dead worker's turn stays `running`."""

        QUEUED = "queued"
        RUNNING = "running"
        ENDED = "ended"

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="turns", db_index=False
    )
    #: Position in the session from 1, in order of acceptance.
    turn_no = models.PositiveIntegerField()
    #: The client's id of the message, or one that we minted.
    event_id = models.CharField(max_length=128)
    card_id = models.CharField(max_length=80)
    run_id = models.CharField(max_length=32)
    state = models.CharField(max_length=8, choices=State, default=State.QUEUED)
    #: The message as accepted: text, content blocks and modes.
    message = models.JSONField()
    accepted_at = models.DateTimeField()
    #: Seq of the turn's first frame; None before it started.
    first_seq = models.PositiveBigIntegerField(null=True)
    #: Its user has stopped it, whichever worker heard of it. Spec: Ruling E10.
    is_stopped = models.BooleanField(default=False)

    class Meta:
        constraints = [  # noqa: RUF012
            models.UniqueConstraint(
                fields=["session", "event_id"], name="turn_event_once"
            ),
            models.UniqueConstraint(
                fields=["session", "turn_no"], name="turn_number_once"
            ),
        ]
        indexes = [  # noqa: RUF012
            models.Index(
                fields=["session"],
                condition=~models.Q(state="ended"),
                name="turn_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.card_id} ({self.state})"


class Event(models.Model):
    """One frame of a session's log, as the bytes that clients got.

    Written by cards.log alone, in append order with this one index and no other.

    Spec: Rulings E2, E3.
    """

    pk = models.CompositePrimaryKey("session_id", "seq")
    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="events", db_index=False
    )
    seq = models.PositiveBigIntegerField()
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.session_id}:{self.seq}"


class Injection(models.Model):
    """Words for a running turn, until its worker takes them. Spec: Ruling E23."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="injections")
    text = models.TextField()
    accepted_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"injection {self.pk}"


class LogBase(models.Model):
    """What the pruned beginning of a session's log amounted to.

    The log goes on behind `last_seq`; with the base, a snapshot is still whole.

    Spec: Ruling E5; interfaces.md, prune_events.
    """

    session = models.OneToOneField(
        Session, on_delete=models.CASCADE, primary_key=True, related_name="log_base"
    )
    #: Seq of the last pruned frame.
    last_seq = models.PositiveBigIntegerField()
    #: The folded cards; see cards.protocol.snapshot.
    cards = models.BinaryField()
    pruned_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.session_id} up to {self.last_seq}"


class AccessToken(models.Model):
    """A user's key for clients that have no cookie. Spec: Ruling E27.

    Only the digest is kept; a row that is deleted is a token revoked.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="access_tokens"
    )
    #: SHA-256 of the token, in hex.
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.digest[:8]}…"
