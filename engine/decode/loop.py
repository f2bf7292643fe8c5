"""The decode loop: plan a canvas, denoise it, verify it, take what holds; until a stop rule fires.

Knows the model, the session and the rules; knows no file, no editor and no grammar. With exact
verification the tokens equal greedy one-token-a-pass decoding of the same weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from remask.contract.messages import Reason
from remask.engine.decode.canvas import Canvas, accepted, commit_confident
from remask.engine.decode.policy import Verify
from remask.engine.decode.request import Request
from remask.engine.decode.stop import StopRules
from remask.engine.models.model import Model
from remask.engine.models.transformer import Pass


class Decoder:
    """Decodes requests with one model; holds no state between them."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._transformer = model.transformer
        spec = model.spec
        self._never = torch.tensor([spec.mask_id, spec.prefix_id, spec.suffix_id], device=self._transformer.device)

    @torch.inference_mode()
    def decode(self, request: Request, rules: StopRules) -> tuple[str, Reason]:
        """Fill the hole; returns the text and why it ends there. The session stays usable whatever happens."""
        while (spent := request.budget.spent(len(request.written))) is None:
            canvas = self._plan(request)
            draft = self._denoise(request, canvas)
            if request.policy.verify is Verify.EXACT:
                ended = self._take(request, self._verify(request, draft), rules)
            else:
                ended = self._take(request, draft, rules)
                if ended is None:
                    self._write(request, draft)
            if ended is not None:
                return ended
        return self._model.decode(request.written), spent

    def _plan(self, request: Request) -> Canvas:
        """The next canvas: the policy's size, less what the budget leaves over for the verifying pass's own token."""
        own = 1 if request.policy.verify is Verify.EXACT else 0
        size = min(request.policy.canvas, request.room - own)
        return Canvas(max(0, size), self._model.spec.mask_id)

    def _denoise(self, request: Request, canvas: Canvas) -> list[int]:
        """Commit confident predictions pass by pass; returns the draft.

        Where the passes run out, a verified draft ends at the first open position (verifying goes on from
        there anyway); an unverified one takes the best predictions for what is open.
        """
        for number in range(request.policy.passes if len(canvas) else 0):
            predicted, probability = self._predict(request, canvas)
            threshold = request.policy.threshold
            if request.policy.verify is Verify.OFF and number + 1 == request.policy.passes:
                threshold = 0.0
            canvas.commit(predicted, probability, commit_confident(probability, canvas.open, threshold))
            if canvas.resolved:
                break
        return canvas.leading_run()

    def _predict(self, request: Request, canvas: Canvas) -> tuple[Tensor, Tensor]:
        """One denoising pass: the best token and its probability for every open position, [B] each.

        The canvas is read shifted: its row of position i predicts token i + 1, so it starts at the last
        known token and its last position is not read.
        """
        read = [request.last, *(int(t) for t in canvas.tokens[:-1])]
        hidden = self._forward(request, Pass.canvas(read, request.session.cache.length, self._transformer.device))
        rows = canvas.open.nonzero()[:, 0]
        best = self._scores(hidden[rows]).softmax(-1).max(-1)  # [R] each
        predicted, probability = canvas.tokens.clone(), canvas.confidence.clone()
        predicted[rows], probability[rows] = best.indices.cpu(), best.values.cpu()
        return predicted, probability

    def _verify(self, request: Request, draft: list[int]) -> list[int]:
        """One causal pass that writes KV and scores the draft: what it accepts, and its own next token."""
        read = [request.last, *draft]
        hidden = self._forward(request, Pass.causal(read, request.session.cache.length, self._transformer.device))
        own = [int(t) for t in self._scores(hidden).argmax(-1)]  # own[i] follows read[i]
        count = accepted(draft, own)
        request.session.commit(read[: count + 1])
        request.last = own[count]
        return [*draft[:count], own[count]]

    def _write(self, request: Request, draft: list[int]) -> None:
        """The causal pass of an unverified draft: it only writes KV."""
        read = [request.last, *draft[:-1]]
        self._forward(request, Pass.causal(read, request.session.cache.length, self._transformer.device))
        request.session.commit(read)
        request.last = draft[-1]

    def _take(self, request: Request, tokens: list[int], rules: StopRules) -> tuple[str, Reason] | None:
        """Append tokens one by one; returns the finished text as soon as a rule says that it ends."""
        for token in tokens:
            if token in self._model.spec.end_ids:
                return self._model.decode(request.written), Reason.END
            request.written.append(token)
            text = self._model.decode(request.written)
            if (stop := rules.check(text)) is not None:
                return text[: stop.length], stop.reason
            if request.room == 0:
                return text, Reason.BUDGET
        return None

    def _forward(self, request: Request, step: Pass) -> Tensor:
        request.forwards += 1
        return self._transformer.forward(step, request.session.cache)

    def _scores(self, hidden: Tensor) -> Tensor:
        """Logits [R, vocab] float32 with the mask token and the prompt's own marks out of reach."""
        return self._transformer.logits(hidden).index_fill_(-1, self._never, -torch.inf)
