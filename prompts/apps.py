"""The Django app that keeps prompts."""

from django.apps import AppConfig


class PromptsConfig(AppConfig):
    """Waits, answers, and what a session's user allowed."""

    name = "prompts"
    verbose_name = "Prompts"
