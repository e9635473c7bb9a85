"""The cards app: sessions, their event log and the card protocol."""
