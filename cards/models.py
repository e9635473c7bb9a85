"""What is kept of a session: the session, its turns and its event log.

Spec: Rulings E2, E8, E9; docs/architecture.md.
"""

from django.db import models


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

    class Meta:
        indexes = [  # noqa: RUF012
            models.Index(
                fields=["principal", "-last_activity_at", "-id"], name="session_recent"
            ),
            models.Index(
                fields=["-last_activity_at", "-id"], name="session_all_recent"
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
