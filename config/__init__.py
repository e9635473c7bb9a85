"""The Django project: settings, wiring and routes."""
