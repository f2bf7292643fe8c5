"""How a hole is decoded: one dial from one token a pass to fully parallel, as named sets of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from remask.contract.errors import InputError
from remask.engine.models.spec import ModelSpec

MAX_CANVAS = 256


class Verify(StrEnum):
    """What the causal pass does with a draft."""

    OFF = "off"  # it only writes KV; the canvas has the last word
    EXACT = "exact"  # it keeps what it would have written itself, so the output is greedy decoding's


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A decoding policy. Raises InputError for values outside their bounds.

    canvas: positions a canvas has, 0 for no draft at all. threshold: a prediction of at least this
    probability is committed. passes: denoising passes a canvas gets at most.
    """

    name: str
    canvas: int
    threshold: float
    passes: int
    verify: Verify

    def __post_init__(self) -> None:
        if not 0 <= self.canvas <= MAX_CANVAS:
            raise InputError(f"The policy's canvas is 0 to {MAX_CANVAS} tokens, not {self.canvas}.")
        if not 0.0 <= self.threshold <= 1.0:
            raise InputError(f"The policy's threshold is 0 to 1, not {self.threshold}.")
        if self.passes < 1:
            raise InputError(f"The policy's passes are 1 or more, not {self.passes}.")
        if self.canvas == 0 and self.verify is not Verify.EXACT:
            raise InputError("A policy without a canvas writes by the causal pass, so its verify is 'exact'.")


POLICIES = {
    p.name: p
    for p in (
        # One draft pass, one verifying pass: further denoising would cost what the verification finds out anyway. Two
        # positions are what today's default model draws best on a CPU: larger canvases cost more than they bring.
        Policy(name="default", canvas=2, threshold=0.0, passes=1, verify=Verify.EXACT),
        Policy(name="autoregressive", canvas=0, threshold=1.0, passes=1, verify=Verify.EXACT),
        Policy(name="parallel", canvas=8, threshold=0.9, passes=8, verify=Verify.OFF),
        # For checkpoints that write whole blocks: 0.9 is what Fast-dLLM v2, SDAR and LLaDA 2 publish.
        Policy(name="confident", canvas=64, threshold=0.9, passes=64, verify=Verify.OFF),
        # DiffusionGemma's own sampler; its bound and temperatures come from the checkpoint.
        Policy(name="entropy_bound", canvas=256, threshold=0.0, passes=48, verify=Verify.OFF),
        Policy(name="one_by_one", canvas=64, threshold=1.0, passes=256, verify=Verify.OFF),
    )
}


def policy_named(name: str, spec: ModelSpec) -> Policy:
    """The policy called `name` for a checkpoint, whose own default is called "default".

    Raises InputError for an unknown policy, and for one that verifies with weights that cannot.
    """
    wanted = spec.policy if name == "default" else name
    policy = POLICIES.get(wanted)
    if policy is None:
        raise InputError(f"There is no policy {wanted!r}; there are {', '.join(POLICIES)}.")
    if policy.verify is Verify.EXACT and not spec.verifies:
        unverified = ", ".join(p.name for p in POLICIES.values() if p.verify is Verify.OFF)
        raise InputError(
            f"The policy {policy.name!r} verifies, and {spec.name} was not trained to be read causally.",
            advice=f"Use {unverified}.",
        )
    return policy
