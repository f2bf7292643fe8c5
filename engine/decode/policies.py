"""The policies that have a name, those made of them by parameters, and which checkpoint can be decoded by which.

Knows policies and specs; knows no rule behind a policy's fields.
"""

from __future__ import annotations

from dataclasses import fields, replace
from enum import StrEnum
from typing import Any

from remask.contract.errors import InputError
from remask.engine.decode.policy import MAX_BRANCHES, Commit, Plan, Policy, Schedule, Source, Verify
from remask.engine.decode.search.value import BROKEN_NATS
from remask.engine.models.spec import ModelSpec, Regime

EVERY_SOURCE = "lookup+head+single_pass+canvas"

POLICIES = {
    p.name: p
    for p in (
        # One draft pass, one verifying pass: further denoising would cost what the verification finds out anyway. Two
        # positions are what today's default model drafts best on a CPU: larger canvases cost more than they bring.
        Policy(name="default", canvas=2),
        Policy(name="autoregressive", draft="none"),
        # TiDAR's layout: the pass that verifies drafts as well.
        Policy(name="single_pass", draft="single_pass", canvas=3),
        # What the file itself says, for no pass at all.
        Policy(name="lookup", draft="lookup"),
        Policy(name="lookup_single_pass", draft="lookup+single_pass", canvas=3),
        # A draft head, and before it what is looked up behind a long match.
        Policy(name="head", draft="head"),
        Policy(name="lookup_head", draft="lookup+head"),
        # All of them, as they pay on this machine for this text.
        Policy(name="auto", draft=EVERY_SOURCE, canvas=8, plan=Plan.MEASURED),
        # As auto, then other texts from the weak spans of the first one, all in one pass; the best of them is taken.
        Policy(name="search", draft=EVERY_SOURCE, canvas=8, plan=Plan.MEASURED, branches=8),
        # Others only where the gate would not show the first text.
        Policy(name="retry", draft=EVERY_SOURCE, canvas=8, plan=Plan.MEASURED, branches=8, enough=BROKEN_NATS),
        # Also takes what is half as likely as the best: more tokens a pass, another text.
        Policy(name="bounded", draft="lookup+single_pass", canvas=3, verify=Verify.BOUNDED, ratio=0.5),
        Policy(name="parallel", canvas=8, threshold=0.9, passes=8, verify=Verify.OFF),
        # For checkpoints that write whole blocks: 0.9 is what Fast-dLLM v2, SDAR and LLaDA 2 publish.
        Policy(name="confident", canvas=64, threshold=0.9, passes=64, verify=Verify.OFF),
        # DiffusionGemma's own sampler; its bound and temperatures come from the checkpoint.
        Policy(name="entropy_bound", canvas=256, passes=48, verify=Verify.OFF, commit=Commit.ENTROPY),
        Policy(name="one_by_one", canvas=64, threshold=1.0, passes=256, verify=Verify.OFF),
    )
}

_KINDS = {
    "int": int,
    "float": float,
    "str": str,
    "Verify": Verify,
    "Plan": Plan,
    "Commit": Commit,
    "Schedule": Schedule,
}
_FIELDS = {f.name: _KINDS[str(f.type)] for f in fields(Policy) if f.name != "name"}


def policy_named(name: str, spec: ModelSpec) -> Policy:
    """The policy called `name` for a checkpoint, whose own default is called "default".

    Raises InputError for an unknown policy or parameter, one outside its bounds, and a policy that does what the
    weights cannot.
    """
    wanted, _, parameters = name.partition(":")
    if wanted == "default":
        wanted, _, own = spec.policy.partition(":")
        parameters = ",".join(p for p in (own, parameters) if p)
    policy = POLICIES.get(wanted)
    if policy is None:
        raise InputError(f"There is no policy {wanted!r}; there are {', '.join(POLICIES)}.")
    if parameters:
        policy = replace(policy, name=name, **_parsed(parameters))
    if policy.verifies and not spec.verifies:
        unverified = ", ".join(p.name for p in POLICIES.values() if not p.verifies)
        raise InputError(
            f"The policy {policy.name!r} verifies, and {spec.name} was not trained to be read causally.",
            advice=f"Use {unverified}.",
        )
    if policy.branches > 1 and not searches(spec):
        raise InputError(
            f"The policy {policy.name!r} searches over texts read causally, which {spec.name} was not trained for.",
            advice="Leave the branches out.",
        )
    wants_head = Source.HEAD in policy.sources and not policy.planned
    if wants_head and not spec.draft_head and not name.startswith("default"):
        raise InputError(
            f"The policy {policy.name!r} drafts with a draft head, and {spec.name} has none.",
            advice="'remask train draft-head' makes one; auto does with what there is.",
        )
    if Source.AHEAD in policy.sources and spec.regime is not Regime.CAUSAL:
        raise InputError(
            f"The policy {policy.name!r} reads draft and canvas in one pass, which {spec.name} was not trained for.",
            advice="Use default.",
        )
    if policy.penalised and spec.regime is Regime.UNIFORM:
        raise InputError(f"{spec.name} draws whole canvases anew: there is no repetition or contrast penalty for it.")
    return policy


def searches(spec: ModelSpec) -> bool:
    """Whether a checkpoint's texts can be searched over: their tokens are read causally."""
    return spec.verifies and spec.regime in (Regime.CAUSAL, Regime.STRICT_CAUSAL)


def searching(policy: Policy, candidates: int, spec: ModelSpec) -> Policy:
    """A policy that brings so many different texts, where the checkpoint's can be searched over; else as it is.

    Some of a search's texts turn out equal, so it writes more than are wanted.
    """
    if candidates < 2 or not searches(spec) or not policy.verifies or policy.penalised:
        return policy
    return replace(policy, branches=max(policy.branches, min(2 * candidates, MAX_BRANCHES)))


def _parsed(parameters: str) -> dict[str, Any]:
    """`field=value,...` as a policy's fields."""
    values: dict[str, Any] = {}
    for part in parameters.split(","):
        field, _, value = part.partition("=")
        if field not in _FIELDS:
            raise InputError(f"A policy has no {field!r}; it has {', '.join(_FIELDS)}.")
        try:
            values[field] = _FIELDS[field](value)
        except ValueError:
            kind = _FIELDS[field]
            wanted = f"one of {', '.join(kind)}" if issubclass(kind, StrEnum) else "a number"
            raise InputError(f"The policy's {field} is {wanted}, not {value!r}.") from None
    return values
