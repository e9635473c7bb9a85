#!/usr/bin/env python
"""Django's command line for Cardwire."""

import os
import sys


def main() -> None:
    """Run the management command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.conf import settings  # noqa: PLC0415
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    from config.environment import one_line_when_wrong  # noqa: PLC0415

    with one_line_when_wrong():
        # Django itself would only say that it does not know the command.
        settings.DEBUG  # noqa: B018 - has all of them read
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
