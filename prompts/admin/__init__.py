"""The operator's view of prompts: what waits, what was allowed, what to do about it.

Spec: Rulings E15, E17, E18; issue "Prompts", admin.
"""

from prompts.admin import grants, waits

__all__ = ["grants", "waits"]
