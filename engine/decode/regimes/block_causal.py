"""Context attends both ways inside aligned blocks of B: the regime of Fast-dLLM v2, SDAR and bd3lm checkpoints.

Only whole blocks are ever cached: an edit at token p leaves floor(p / B) * B of them valid, and the tail
of the prompt stands at the start of the first canvas's block. Sources: the published samplers of these
families (see docs/models.md).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from remask.contract.messages import PromptCounts
from remask.engine.control.penalties import repeated
from remask.engine.decode.canvas import Canvas
from remask.engine.decode.regimes.base import Reader, places
from remask.engine.decode.request import Request
from remask.engine.models.passes import Pass
from remask.engine.models.transfer import picked_rows
from remask.engine.prompt import Prompt


class BlockCausalReader(Reader):
    """`request.pending` is the tail of known tokens in the block being written, fewer than B.

    With shifted logits the first token of a block is predicted by the last row of the block before; the
    pass that writes that block's KV leaves it in `request.following`.
    """

    def prepare(self, request: Request, prompt: Prompt, cancelled: Callable[[], bool]) -> PromptCounts:
        """Read the whole blocks of the prompt; see `Reader.prepare`."""
        size, tokens = self.spec.block_size, prompt.tokens
        whole = len(tokens) // size * size
        request.pending = tokens[whole:]
        # A block that starts right behind the cache needs its predecessor's last row: read that block again.
        reread = size if self.spec.shift and whole == len(tokens) and whole else 0
        kept = request.session.cut_to(tokens[: whole - reread], step=size)

        def forward(chunk: list[int], start: int) -> None:
            step = Pass.block_causal(chunk, start, size, self.transformer.device)
            hidden = self.transformer.forward(step, request.session.cache)
            if reread and start + len(chunk) == whole:
                request.following = self._best(hidden[-1:], request)

        return request.session.extend(tokens[kept:whole], forward, cancelled, step=size)

    def canvas(self, request: Request, size: int) -> Canvas:
        """The rest of the block, whatever size is wished: these checkpoints know blocks of B only."""
        canvas = Canvas(self.spec.block_size - len(request.pending), self.spec.mask_id)
        if request.following is not None and not request.pending:
            first = torch.zeros(len(canvas), dtype=torch.bool)
            first[0] = True
            canvas.commit(torch.full_like(canvas.tokens, request.following), torch.ones(len(canvas)), first)
        return canvas

    def states(self, request: Request, canvas: Canvas, wanted: Tensor | None = None) -> Tensor:
        """The whole block, both ways; the row of a position, or of the one before it where logits are shifted."""
        hidden = self._block(request, canvas)
        return picked_rows(hidden, (places(canvas, wanted) + len(request.pending) - self.spec.shift).tolist())

    def rescored(self, request: Request, canvas: Canvas) -> Tensor:
        """All but a first token that the block before has decided."""
        committed = ~canvas.open
        if self.spec.shift and not request.pending:
            committed[0] = False
        return committed

    def settle(self, request: Request, canvas: Canvas) -> None:
        """One more pass over the finished block writes its KV: that of a pass with masks in it is another."""
        hidden = self._block(request, canvas)
        request.session.keep([*request.pending, *canvas.filled()])
        request.pending = []
        if self.spec.shift:
            request.following = self._best(hidden[-1:], request)

    def _block(self, request: Request, canvas: Canvas) -> Tensor:
        read = [*request.pending, *canvas.filled()]
        return self.forward(request, Pass.canvas(read, request.session.cache.length, self.transformer.device))

    def _best(self, hidden: Tensor, request: Request) -> int:
        scores = self.scores(hidden)
        if request.policy.repetition != 1.0:
            scores = repeated(scores, [request.written], request.policy.repetition)
        return int(scores.argmax(-1))
