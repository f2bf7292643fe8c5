"""When a search ends. Pure functions; what they say is a reason for the trace, None while it goes on."""

from __future__ import annotations

from collections.abc import Sequence

PATIENCE = 2  # steps without a better text


def sure_enough(likely: float, enough: float) -> str | None:
    """The first text is so likely that another one hardly takes its place; likely: log p of all its tokens, in nats."""
    return f"it lacks {-likely:.2f} nats, no more than {enough:g}" if -likely <= enough else None


def converged(best: Sequence[float], new: Sequence[int], patience: int = PATIENCE) -> str | None:
    """Nothing new came, or the best value stayed for `patience` steps.

    best: the best value before the first step and after each one; new: texts that each step brought.
    """
    if new and new[-1] == 0:
        return "no new text"
    if len(best) > patience and best[-1] <= best[-1 - patience]:
        return f"no better text in {patience} steps"
    return None


def spent(steps: int, most_steps: int, tokens: int, most_tokens: int) -> str | None:
    """The budget of steps, or of tokens written in all branches, is used up."""
    if steps >= most_steps:
        return "all steps are done"
    return "the tokens are used up" if tokens >= most_tokens else None
