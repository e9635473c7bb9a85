"""What cards tell whoever wants to hear it."""

from django.dispatch import Signal

#: Sent with `session_pk` once a session is deleted for everybody, so that what runs of
#: it ends at once, and its clients are told, instead of at the next look.
session_deleted = Signal()
