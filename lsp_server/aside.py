"""A thread for looks at trees, so that a text which takes long to parse holds up nobody else. Knows no text itself.

A parse holds the interpreter, but asks after every piece whether its time is up (grammars/bounded), and there others
may go on: so typing is answered while a broken text is looked at. It is one thread, since looks at the same text use
each other's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Aside:
    """The thread, begun when it is first needed."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="trees")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` returns, or raises. A caller that goes away takes back what has not begun."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **kwargs))

    def close(self) -> None:
        """Begin nothing more; what runs is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
