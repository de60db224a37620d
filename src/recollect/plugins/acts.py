"""What our own plugins do at a moment: bring the index up to date, recall, capture, flush, summarise.

Each asks the memory and says in an `Effect` what came of it. A session that `memory.scope` does not admit is neither
told anything nor listened to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.assembly import entries_engine
from recollect.plugins.lanes import nobody_waits
from recollect.plugins.moments import Effect, Moment
from recollect.plugins.said import question_of, said_at
from recollect.service import Written
from recollect.sources import turns_of_messages

if TYPE_CHECKING:
    from recollect.records import Remembered
    from recollect.service import MemoryService


@dataclass(frozen=True, slots=True)
class Share:
    """How much of each kind is put before the agent; None: as the settings say."""

    entries: int | None = None
    notes: int | None = None


class Acts:
    """What one plugin does over one memory."""

    def __init__(
        self, service: MemoryService, tools: tuple[str, ...], *, notes: bool, entries: bool, share: Share
    ) -> None:
        self._service = service
        self._memory = service.memory
        self._tools = tools
        self._notes, self._entries = notes, entries
        self._share = share

    def session_start(self, moment: Moment) -> Effect:
        """Take in what changed since the last session."""
        if self._entries:
            self._memory.session_began(moment.session)
        synced = self._service.session_started() if self._notes else None
        without = entries_engine(self._memory.settings)[1]
        found = (synced.error if synced else None, without)
        return Effect(tools=self._tools, warnings=tuple(sentence for sentence in found if sentence))

    def transcript_update(self, moment: Moment) -> Effect | None:
        """A transcript grew."""
        if moment.transcript is not None:
            self._service.transcript_grew(moment.transcript)
        return None

    def recall(self, moment: Moment) -> Effect | None:
        """What is remembered about what the user says now."""
        wanted = self._memory.settings.retrieval
        query = question_of(moment)
        if not query or not wanted.inject_on_query:
            return None
        told = self._memory.recall(
            query,
            session_key=moment.session_key,
            session=moment.session,
            door="hook",
            tokens=_room(moment, wanted.budget_ratio),
            entries=self._most_entries(),
            notes=self._share.notes,
            given_up=nobody_waits,
        )
        warnings = (told.degraded,) if told.degraded else ()
        return Effect(prepend_context=told.text, recall_id=told.id, warnings=warnings)

    def _most_entries(self) -> int | None:
        """The plugin's own number, unless the owner has named one."""
        named = self._memory.settings.origin("retrieval.max_memories") != "default"
        return None if named and self._share.entries != 0 else self._share.entries

    def capture(self, moment: Moment) -> Effect | None:
        """Remember what was said since the last capture of this session."""
        if not self._memory.admits(moment.session_key):
            return None
        return Effect(remembered=tuple(self._captured(moment)))

    def _captured(self, moment: Moment) -> list[Remembered]:
        return self._memory.capture(turns_of_messages(said_at(moment)), session=moment.session)

    def flush(self, moment: Moment) -> Effect | None:
        """Write down what the conversation is about to lose."""
        if not self._memory.admits(moment.session_key):
            return None
        return _effect(
            self._service.maybe_flush_memory(moment.tokens, moment.window, said_at(moment), moment.session)
        )

    def end(self, moment: Moment) -> Effect | None:
        """A session is over: what waited is learned, and its summary is written."""
        if not self._memory.admits(moment.session_key):
            return None
        remembered: list[Remembered] = []
        if self._entries:
            new = [] if moment.heard else self._captured(moment)
            remembered = [*new, *self._memory.session_ended(moment.session)]
        said = said_at(moment) if self._notes else ()
        summary = self._service.save_conversation_memory(said, moment.session) if said else Written()
        return replace(_effect(summary), remembered=tuple(remembered))


def _effect(done: Written) -> Effect:
    new = done.saved is not None and not done.saved.already
    return Effect(
        written=(done.saved,) if done.saved and new else (), warnings=(done.error,) if done.error else ()
    )


def _room(moment: Moment, ratio: float) -> int | None:
    """Tokens that recalled text may take, where the host says how many there are."""
    if moment.window is None:
        return None
    left = moment.window if moment.tokens is None else max(0, moment.window - moment.tokens)
    return min(left, round(moment.window * ratio))
