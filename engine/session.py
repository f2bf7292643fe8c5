"""The KV state of each open file, cut at the first differing token: a keystroke costs its own tokens only.

Knows tokens and the transformer; knows neither text nor editors. One thread uses a session at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from remask.contract.messages import PromptCounts
from remask.engine.models.kv import KVCache
from remask.engine.models.memory import smaller
from remask.engine.models.paged import PagedCache
from remask.engine.models.transformer import Transformer

PREFILL_CHUNK = 256  # tokens a pass: bounds activations, and cancelling waits for no more than one
DEFAULT_BUDGET_BYTES = 512 * 1024 * 1024


class Session:
    """`tokens` are those whose entries in `cache` are valid, in order."""

    def __init__(self, cache: KVCache) -> None:
        self.cache = cache
        self.tokens: list[int] = []
        self._chunk = PREFILL_CHUNK  # less once that was too much for the device's memory

    def cut_to(self, tokens: list[int], step: int = 1) -> int:
        """Forget everything from the first token that differs from `tokens` on; returns how many stay.

        With a `step` only whole blocks of that many tokens stay.
        """
        limit = min(len(self.tokens), len(tokens))
        kept = next((i for i in range(limit) if self.tokens[i] != tokens[i]), limit) // step * step
        kept = self.cache.truncate(kept)  # some caches can only be cut back whole
        del self.tokens[kept:]
        return kept

    def extend(
        self,
        tokens: list[int],
        forward: Callable[[list[int], int], object],
        cancelled: Callable[[], bool] = lambda: False,
        step: int = 1,
    ) -> PromptCounts:
        """Read `tokens` behind what is held, in chunks; `forward` gets a chunk and its first position.

        A chunk is a whole number of steps, halved where memory is short. Stops between chunks when cancelled. Raises
        ModelError where not even one step fits; the session stays usable whatever happens.
        """
        kept, passes, at = len(self.tokens), 0, 0
        while at < len(tokens) and not cancelled():
            chunk = tokens[at : at + max(step, self._chunk // step * step)]
            try:
                forward(chunk, self.cache.length)
            except (RuntimeError, MemoryError) as error:
                self._chunk = smaller(error, len(chunk), step)
                continue
            self.keep(chunk)
            at += len(chunk)
            passes += 1
        return PromptCounts(cached=kept, run=len(self.tokens) - kept, passes=passes)

    def keep(self, tokens: list[int]) -> None:
        """Declare the entries that the last causal pass wrote for `tokens` valid."""
        self.cache.advance(len(tokens))
        self.tokens += tokens

    def fork(self) -> Session:
        """Another session that holds the same, on the same pages until one of them writes: where a cache has pages."""
        assert isinstance(self.cache, PagedCache)
        other = Session(self.cache.fork())
        other.tokens = list(self.tokens)
        return other


class Sessions:
    """Sessions by document, the least recently used forgotten first when their bytes exceed the budget."""

    def __init__(self, transformer: Transformer, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> None:
        self._transformer = transformer
        self._budget = budget_bytes
        self._by_document: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_document)

    def __contains__(self, document: str) -> bool:
        return document in self._by_document

    def documents(self) -> list[str]:
        """The documents that have a session, the least recently used first."""
        return list(self._by_document)

    @property
    def nbytes(self) -> int:
        """Bytes of KV held by all sessions."""
        return sum(s.cache.nbytes for s in self._by_document.values())

    def open(self, document: str) -> Session:
        """The document's session, an empty one where it has none yet; now the most recently used."""
        session = self._by_document.get(document)
        if session is None:
            session = self._by_document[document] = self._begin()
        self._by_document.move_to_end(document)
        return session

    def _begin(self) -> Session:
        """An empty session; where sequences share pages, one that holds what the newest holds, to be cut to fit."""
        newest = next(reversed(self._by_document.values()), None)
        if newest is None or not isinstance(newest.cache, PagedCache):
            return Session(self._transformer.new_cache())
        return newest.fork()

    def close(self, document: str) -> None:
        """Forget the document's session, if there is one."""
        self._by_document.pop(document, None)

    def trim(self) -> list[tuple[str, Session]]:
        """Forget the least recently used while the budget is exceeded; the newest stays, however large it is.

        Returns those that are forgotten, with their documents.
        """
        gone = []
        while self.nbytes > self._budget and len(self._by_document) > 1:
            gone.append(self._by_document.popitem(last=False))
        return gone
