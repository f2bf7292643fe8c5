"""Where sessions live: in the device's memory, in the host's, on disk; each with a budget in bytes.

The least recently used goes one tier down first; whatever is lost on the way is read again. Knows sessions and a store;
knows no prompt.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import Tensor

from remask.contract.errors import StorageError
from remask.engine.models.transformer import Transformer
from remask.engine.session import DEFAULT_BUDGET_BYTES, Session, Sessions
from remask.engine.store import DiskStore, copied, filled

HOST_BUDGET_BYTES = 1024 * 1024 * 1024


class Tiers:
    """The sessions of all documents. A disk that refuses costs what it holds, no more: `warning` is what it said last.

    `store` is the disk, where there is one. host_budget: without one, 0 where the device's memory is the host's own:
    from there sessions go straight to disk.
    """

    def __init__(
        self,
        transformer: Transformer,
        store: DiskStore | None = None,
        *,
        budget: int = DEFAULT_BUDGET_BYTES,
        host_budget: int | None = None,
    ) -> None:
        self.store = store
        self.warning: StorageError | None = None
        self._sessions = Sessions(transformer, budget)
        apart = transformer.device.type != "cpu"
        self._host_budget = HOST_BUDGET_BYTES * apart if host_budget is None else host_budget
        self._host: OrderedDict[str, dict[str, Tensor]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def host_bytes(self) -> int:
        """Bytes that are held in host memory."""
        return sum(tensor.nbytes for held in self._host.values() for tensor in held.values())

    def open(self, document: str) -> Session:
        """The document's session, now the most recently used, with what the highest tier holds of it.

        Raises ModelError where memory is too short for that; the tier below keeps it.
        """
        session = self._sessions.open(document)
        held = self._host.get(document)
        empty = not session.tokens
        found = empty and held is not None and filled(session, held)
        self._host.pop(document, None)  # not before it is filled: memory may be short
        if empty and not found and self.store is not None:
            try:
                self.store.restore(document, session)
            except StorageError as error:
                self.warning = error
        return session

    def trim(self) -> None:
        """Let the least recently used sessions leave the device while its budget is exceeded."""
        for document, session in self._sessions.trim():
            self._down(document, session)

    def leave(self, document: str) -> None:
        """Let a document's session leave the device now, if there is one."""
        if document in self._sessions:
            self._down(document, self._sessions.open(document))
            self._sessions.close(document)

    def save(self, document: str) -> None:
        """Put on disk, where there is one, what the other tiers hold of a document."""
        if document in self._sessions and self.store is not None:
            try:
                self.store.save(document, self._sessions.open(document))
            except StorageError as error:
                self.warning = error
        self._to_disk(document)

    def save_all(self) -> None:
        """As `save`, for every document."""
        for document in [*self._host, *self._sessions.documents()]:
            self.save(document)

    def forget(self, document: str) -> None:
        """Let go of a document; what is on disk stays."""
        self._sessions.close(document)
        self._host.pop(document, None)

    def _down(self, document: str, session: Session) -> None:
        """Into host memory; what that has no room for goes on."""
        held = copied(session) if session.tokens else None
        if held is None:
            return
        self._host[document] = held
        while self.host_bytes > self._host_budget:
            self._to_disk(next(iter(self._host)))

    def _to_disk(self, document: str) -> None:
        """Out of host memory."""
        held = self._host.pop(document, None)
        if held is None or self.store is None:
            return
        try:
            self.store.put(document, held)
        except StorageError as error:
            self.warning = error
