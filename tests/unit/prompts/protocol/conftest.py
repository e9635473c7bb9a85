"""How hypothesis runs here: the same examples each time, and no clock."""

from hypothesis import settings

settings.register_profile("protocol", deadline=None, derandomize=True)
settings.load_profile("protocol")
