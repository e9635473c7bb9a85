"""What the live sessions of a process share."""

from dataclasses import dataclass

from cards.clock import Entropy
from cards.database import WriteBatches
from cards.live.membership import Membership
from cards.live.runtime_settings import RuntimeSettings
from cards.live.user_files import UserFiles
from cards.log.committer import Committer
from cards.log.doorbell import Doorbell
from cards.ports import ArtifactShelf, PromptBook


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionServices:
    """What the live sessions of a process share.

    Attributes:
        book: Keeps the prompts.
        shelf: Keeps the files.
        user_files: Takes in those of user messages.
        queue_limit: Messages that may wait in one session. Spec: Ruling E9.
        session_limit: Sessions that one principal may own; 0 for any number.
    """

    committer: Committer
    writes: WriteBatches
    settings: RuntimeSettings
    entropy: Entropy
    membership: Membership
    doorbell: Doorbell
    book: PromptBook
    shelf: ArtifactShelf
    user_files: UserFiles
    queue_limit: int
    session_limit: int
