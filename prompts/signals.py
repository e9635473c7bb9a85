"""What the prompts tell whoever wants to hear it."""

from django.dispatch import Signal

#: Sent with `session_pk` once something is durable that was settled outside the live
#: sessions, so that the session's owner goes on at once instead of at its next look.
settled = Signal()
