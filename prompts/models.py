"""What is kept of prompts: the waits, how they ended, and what was allowed.

Spec: Rulings E15, E17, E18; design.md 5.
"""

from django.db import models


class PendingWait(models.Model):
    """Somebody waits for a user's answer, or for a client's tool.

    The row is gone once the answer was used.

    | state | what is in the log | who may see it |
    |---|---|---|
    | opening | nothing yet | nobody |
    | pending | the prompt | clients may answer |
    | settled | the prompt | the session's owner is to go on with the answer |
    """

    class State(models.TextChoices):
        """How far a wait is."""

        OPENING = "opening"
        PENDING = "pending"
        SETTLED = "settled"

    #: Of the prompt, or the card id of a client's tool; minted, so unique everywhere.
    request_id = models.CharField(max_length=80, unique=True)
    session = models.ForeignKey(
        "cards.Session", on_delete=models.CASCADE, related_name="waits"
    )
    #: The turn that asked.
    turn = models.ForeignKey("cards.Turn", on_delete=models.CASCADE, related_name="+")
    #: A prompt kind, or `client_tool`.
    kind = models.CharField(max_length=16)
    state = models.CharField(max_length=8, choices=State, default=State.OPENING)
    #: The prompt, byte for byte as clients got it; empty for a client's tool.
    frame = models.BinaryField(default=b"")
    #: Of the frame; None before it was sent.
    seq = models.PositiveBigIntegerField(null=True)
    created_at = models.DateTimeField()
    #: From then on it counts as forgotten; None for never. Spec: Ruling E17.
    expires_at = models.DateTimeField(null=True)
    #: From then on it counts as not answered in time; None for no such time.
    deadline_at = models.DateTimeField(null=True)
    #: When an operator last had it sent again; None for never.
    resent_at = models.DateTimeField(null=True)
    #: What was decided; "" before.
    decision = models.CharField(max_length=16, blank=True, default="")
    #: Whether nobody decided in time.
    is_lapsed = models.BooleanField(default=False)
    #: The checked answer; None before.
    answer = models.JSONField(null=True)
    #: Shown to the user with the reply; "" for none.
    reason = models.CharField(max_length=200, blank=True, default="")
    #: Why the answer cannot be carried out; "" when it can.
    rejection = models.TextField(blank=True, default="")
    settled_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "pending wait"
        indexes = [  # noqa: RUF012
            models.Index(
                fields=["expires_at"],
                condition=models.Q(state="pending"),
                name="wait_expiry",
            ),
            models.Index(
                fields=["deadline_at"],
                condition=models.Q(state="pending", deadline_at__isnull=False),
                name="wait_deadline",
            ),
            models.Index(
                fields=["session"],
                condition=models.Q(state="settled"),
                name="wait_settled",
            ),
            models.Index(
                fields=["resent_at"],
                condition=models.Q(resent_at__isnull=False),
                name="wait_resent",
            ),
            models.Index(fields=["-created_at", "-id"], name="wait_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.request_id} ({self.state})"


class SettledPrompt(models.Model):
    """That a prompt was settled, for those who answer it again.

    Spec: Ruling E15; interfaces.md, REST.
    """

    request_id = models.CharField(max_length=80, unique=True)
    session = models.ForeignKey(
        "cards.Session", on_delete=models.CASCADE, related_name="+"
    )
    decision = models.CharField(max_length=16)
    settled_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.request_id}: {self.decision}"


class PermissionGrant(models.Model):
    """What a session's user allowed for the rest of it. Spec: Ruling E18."""

    session = models.ForeignKey(
        "cards.Session",
        on_delete=models.CASCADE,
        related_name="grants",
        db_index=False,
    )
    permission_key = models.TextField()
    granted_at = models.DateTimeField()

    class Meta:
        constraints = [  # noqa: RUF012
            models.UniqueConstraint(
                fields=["session", "permission_key"], name="grant_once"
            ),
        ]

    def __str__(self) -> str:
        return self.permission_key
