"""The Django app that keeps files."""

from django.apps import AppConfig


class ArtifactsConfig(AppConfig):
    """What assistants make and users bring, with its versions."""

    name = "artifacts"
    verbose_name = "Artifacts"

    def ready(self) -> None:
        """Have files go with their rows, and orphans with the clean-up."""
        # The models are there only now.
        from artifacts.cleaning import ArtifactCleaner  # noqa: PLC0415
        from artifacts.removal import follow_rows  # noqa: PLC0415
        from cards.cleaners import register_cleaner  # noqa: PLC0415

        follow_rows()
        register_cleaner("artifacts", ArtifactCleaner)
