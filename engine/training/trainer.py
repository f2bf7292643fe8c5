"""The training loop: steps with AdamW, a rate that warms up, holds and decays, and checkpoints on the way.

Knows how often to save and when to end; what is shown on the way is the caller's (`on_step`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from remask.contract.errors import InputError
from remask.engine.training import checkpoints
from remask.engine.training.batches import Batches
from remask.engine.training.checkpoints import Checkpoint
from remask.engine.training.network import Network
from remask.engine.training.objective import Losses, learn, measure
from remask.engine.training.recipe import Recipe

BETAS = (0.9, 0.95)  # the usual ones for language models
MOMENTS = ("exp_avg", "exp_avg_sq")
VALIDATION_SEED_STEP = 0  # always the same batches


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to train and how often to look. A run ends at `steps` or after `minutes`, what comes first; 0 is never.

    Only one of them may be 0. With `minutes` the last part's decay depends on the clock, what comes before it does not.
    """

    steps: int = 0
    minutes: float = 0.0
    save_minutes: float = 5.0
    validate_steps: int = 100
    validate_batches: int = 8

    def __post_init__(self) -> None:
        if self.steps <= 0 and self.minutes <= 0:
            raise InputError("A training run needs an end.", advice="Give --steps or --minutes.")

    def progress(self, step: int, seconds: float) -> float:
        """How much of the run is done, 0 to 1."""
        by_steps = step / self.steps if self.steps else 0.0
        by_time = seconds / (60 * self.minutes) if self.minutes else 0.0
        return min(1.0, max(by_steps, by_time))


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a run's log. `kind` is "train" or "validation"; losses in nats."""

    kind: str
    step: int
    tokens: int
    seconds: float
    lr: float
    losses: Losses

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values, the losses beside the rest."""
        values = asdict(self)
        losses: dict[str, Any] = values.pop("losses")
        return values | losses


def rate(recipe: Recipe, step: int, progress: float) -> float:
    """The learning rate of a step: linear warm-up, then constant, then linear to 0 (WSD, Hu et al. 2024)."""
    warm = min(1.0, (step + 1) / (recipe.warmup + 1))
    left = min(1.0, (1.0 - progress) / recipe.decay) if recipe.decay else 1.0
    return recipe.lr * warm * left


class Trainer:
    """A network being trained on batches; `folder` holds the checkpoints and is resumed where it has one.

    `about`: facts of the run that its checkpoints keep, as JSON values.
    """

    def __init__(
        self,
        network: Network,
        train: Batches,
        validation: Batches | None,
        recipe: Recipe,
        folder: Path,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.network, self.recipe, self.folder = network, recipe, folder
        self._about = dict(about or {})
        self.step = self.tokens = 0
        self.seconds = 0.0
        self._train, self._validation = train, validation
        self._names = list(network.learned)
        self._optimizer = torch.optim.AdamW(
            [network.learned[n] for n in self._names], lr=recipe.lr, betas=BETAS, weight_decay=0.0, fused=True
        )

    def resume(self) -> bool:
        """Go on from the folder's newest checkpoint; whether there was one.

        Raises InputError where it is damaged, or of another recipe or network.
        """
        found = checkpoints.whole(self.folder)
        if not found:
            return False
        state = checkpoints.load(found[-1])
        self._refuse_foreign(state, found[-1])
        for name, tensor in state.learned.items():
            self.network.learned[name].data.copy_(tensor)
        for name, weight in zip(self._names, self._optimizer.param_groups[0]["params"], strict=True):
            moments = {m: state.optimizer[f"{m}.{name}"].to(weight.device) for m in MOMENTS}
            self._optimizer.state[weight] = {"step": state.optimizer["step"].clone(), **moments}
        self.step, self.tokens = state.facts["step"], state.facts["tokens"]
        self.seconds = state.facts["seconds"]
        return True

    def run(self, plan: Plan, on_step: Callable[[Record], None], stopped: Callable[[], bool] = lambda: False) -> None:
        """Train until the plan's end or until `stopped`, which is asked after each step; then save.

        Raises StorageError where a checkpoint cannot be written.
        """
        before, begun = self.seconds, time.monotonic()
        saved = begun
        while True:
            progress = plan.progress(self.step, self.seconds - before)
            if progress >= 1.0 or stopped():
                break
            lr = rate(self.recipe, self.step, progress)
            losses = self._advance(lr)
            self.seconds = before + time.monotonic() - begun
            on_step(Record("train", self.step, self.tokens, self.seconds, lr, losses))
            if self._validation is not None and self.step % plan.validate_steps == 0:
                on_step(self.validate(plan.validate_batches, lr))
            if time.monotonic() - saved >= 60 * plan.save_minutes:
                self.save()
                saved = time.monotonic()
        self.save()

    def validate(self, count: int, lr: float = 0.0) -> Record:
        """Losses over the first `count` batches of the held-out rows, always the same ones."""
        assert self._validation is not None
        found = [measure(self.network, self._validation.batch(i), self.recipe) for i in range(count)]
        return Record("validation", self.step, self.tokens, self.seconds, lr, _mean(found))

    def save(self) -> Path:
        """Write a checkpoint. Raises StorageError."""
        state = self._optimizer.state
        moments = {
            f"{m}.{name}": state[self.network.learned[name]][m]
            for name in self._names
            if self.network.learned[name] in state
            for m in MOMENTS
        }
        facts = {
            "recipe": self.recipe.to_dict(),
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "threads": torch.get_num_threads(),
            **self._about,
        }
        steps = {"step": torch.tensor(float(self.step))}
        return checkpoints.save(self.folder, Checkpoint(self.network.learned, moments | steps, facts))

    def _advance(self, lr: float) -> Losses:
        recipe = self.recipe
        self._optimizer.param_groups[0]["lr"] = lr
        found = []
        for micro in range(recipe.accumulate):
            batch = self._train.batch(self.step, micro)
            found.append(learn(self.network, batch, recipe, 1.0 / recipe.accumulate))
            self.tokens += batch.tokens.size
        torch.nn.utils.clip_grad_norm_(self.network.learned.values(), recipe.clip)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=False)  # kept: fresh memory is costly
        self.step += 1
        return _mean(found)

    def _refuse_foreign(self, state: Checkpoint, path: Path) -> None:
        mine: dict[str, Tensor] = self.network.learned
        if {n: t.shape for n, t in state.learned.items()} != {n: t.shape for n, t in mine.items()}:
            raise InputError(
                f"The checkpoint {path} belongs to another model or rank.", advice="Name another folder for this run."
            )
        if state.facts["recipe"] != self.recipe.to_dict():
            changed = [n for n, v in self.recipe.to_dict().items() if state.facts["recipe"].get(n) != v]
            raise InputError(
                f"The run in {self.folder} was made with another {', '.join(changed)}.",
                advice="Use the same recipe, or name another folder.",
            )


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or a termination was asked for: the step under way is finished and saved first."""
    import signal

    asked: list[int] = []
    before = {s: signal.signal(s, lambda number, _: asked.append(number)) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _mean(losses: list[Losses]) -> Losses:
    values = [asdict(x) for x in losses]
    return Losses(**{name: sum(v[name] for v in values) / len(values) for name in values[0]})
