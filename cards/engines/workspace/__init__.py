"""The built-in engine: no model, real effects on the workspace of the data dir.

A text goes one way: `phrases` parses it to a command of `commands`, the handler of
that command (`reading`, `writing`, `searching`, `running`, `summarising`, `talking`)
shows the cards and calls the blocking work in `disk` and `programs`.
"""

from cards.engines.workspace.engine import WorkspaceEngine

__all__ = ["WorkspaceEngine"]
