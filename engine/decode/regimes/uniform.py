"""A canvas of random tokens instead of masks: DiffusionGemma's denoising inside Remask's loop.

Each step samples a canvas from tempered logits, accepts the surest tokens up to an entropy bound and draws
the rest anew; the output is the argmax canvas once it is stable and confident. Sources: entropy-bounded
sampling (arXiv 2505.24857); the model's published generation settings.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from remask.contract.messages import PromptCounts
from remask.engine.decode.canvas import Canvas
from remask.engine.decode.commit import Stability, commit_entropy
from remask.engine.decode.denoise import Enough
from remask.engine.decode.regimes.base import Reader
from remask.engine.decode.request import Request
from remask.engine.decode.sample import entropy
from remask.engine.models.gemma import GemmaCache, GemmaTransformer
from remask.engine.models.model import Model
from remask.engine.prompt import Prompt


class UniformReader(Reader):
    """`request.pending` are known tokens that the encoder reads before the next canvas."""

    rescores = False
    plain = False

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        assert isinstance(self.transformer, GemmaTransformer)
        assert model.spec.uniform is not None
        self._gemma = self.transformer
        self._noise = model.spec.uniform

    def prepare(self, request: Request, prompt: Prompt, cancelled: Callable[[], bool]) -> PromptCounts:
        """Encode all of the prompt, reusing what the session holds; see `Reader.prepare`."""
        session = request.session
        kept = session.cut_to(prompt.tokens)
        return session.extend(
            prompt.tokens[kept:], lambda chunk, _: self._gemma.encode(chunk, _cache(request)), cancelled
        )

    def canvas(self, request: Request, size: int) -> Canvas:
        """A canvas of the checkpoint's own length; what was written before is encoded first."""
        if request.pending:
            self._gemma.encode(request.pending, _cache(request))
            request.session.keep(request.pending)
            request.pending = []
            request.forwards += 1
        return Canvas(self.spec.block_size, 0)

    def rescored(self, request: Request, canvas: Canvas) -> Tensor:
        """None: this regime draws anew what it doubts."""
        return torch.zeros_like(canvas.open)

    def predict(self, request: Request, canvas: Canvas, wanted: Tensor | None = None) -> Tensor:
        """One pass without self-conditioning: logits [C, vocab] for the canvas as it is."""
        request.forwards += 1
        return self._gemma.denoise(canvas.tokens.to(self._gemma.device), None, _cache(request))[0]

    def denoise(self, request: Request, canvas: Canvas, enough: Enough) -> Canvas:
        """Denoise from random tokens until stable and confident; the canvas is resolved to the last argmax."""
        noise, device, vocab = self._noise, self._gemma.device, self.spec.shape.vocab
        generator = torch.Generator(device=device).manual_seed(request.seed + len(request.written))
        current = torch.randint(0, vocab, (len(canvas),), generator=generator, device=device)
        best, conditioning = current, None
        stable = Stability(noise.stable_steps, noise.confident_below)
        for step in range(noise.steps, 0, -1):
            if request.budget.spent(len(request.written)) is not None:
                return canvas  # not done: nothing of it is text yet
            request.forwards += 1
            logits = self._gemma.denoise(current, conditioning, _cache(request))
            logits = logits / (noise.t_min + (noise.t_max - noise.t_min) * (step / noise.steps))
            probability = logits[0].softmax(-1, dtype=torch.float32)  # [C, vocab]
            sampled = torch.multinomial(probability, 1, generator=generator)[:, 0]
            spread = entropy(logits[0])
            accepted = commit_entropy(spread, torch.ones_like(spread, dtype=torch.bool), noise.entropy_bound)
            fresh = torch.randint(0, vocab, (len(canvas),), generator=generator, device=device)
            current = torch.where(accepted, sampled, fresh)
            best = logits[0].argmax(-1)
            if request.trace is not None:
                sure = probability.amax(-1).cpu()
                request.trace.denoised(len(request.written), canvas, best.cpu(), sure, accepted.cpu())
            if stable.reached(best, float(spread.mean())):
                break
            conditioning = logits.to(self._gemma.embedding_dtype)
        canvas.commit(best.cpu(), torch.ones(len(canvas)), canvas.open.clone())
        return canvas

    def settle(self, request: Request, canvas: Canvas) -> None:
        """The encoder reads the canvas before the next one is denoised."""
        request.pending = canvas.filled()


def _cache(request: Request) -> GemmaCache:
    cache = request.session.cache
    assert isinstance(cache, GemmaCache)
    return cache
