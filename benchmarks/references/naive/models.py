"""The log of the naive reference."""

from typing import ClassVar

from django.db import models


class Event(models.Model):
    """One frame, one row."""

    trace = models.CharField(max_length=40)
    seq = models.PositiveBigIntegerField()
    text = models.TextField()

    objects: ClassVar["models.Manager[Event]"] = models.Manager()

    class Meta:
        app_label = "naive"
        constraints = [  # noqa: RUF012
            models.UniqueConstraint(fields=["trace", "seq"], name="naive_seq_once")
        ]

    def __str__(self) -> str:
        return f"{self.trace}:{self.seq}"
