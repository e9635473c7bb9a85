"""The Django app that speaks the card protocol."""

from django.apps import AppConfig


class CardsConfig(AppConfig):
    """Sessions, turns and their event log."""

    name = "cards"
    verbose_name = "Cards"
