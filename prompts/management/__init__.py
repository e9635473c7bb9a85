"""The operator's commands."""
