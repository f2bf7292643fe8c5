"""Where a hole's text ends: at the end of a line, a statement or a block, as the request or its surroundings want it.

Knows grammars and requests; knows no model's tokens.
"""

from __future__ import annotations

from functools import partial

from remask.contract.messages import CompletionRequest, Extent, Reason
from remask.engine.chat import reply_end
from remask.engine.decode.stop import StopRules, first_line_end, fitted, line_before_code
from remask.engine.models.spec import Layout, ModelSpec
from remask.grammars import Grammar
from remask.grammars.blocks import block_end, statement_end
from remask.grammars.regions import completion_extent


def stop_rules(grammar: Grammar | None, request: CompletionRequest, spec: ModelSpec) -> StopRules:
    """The end of the line or of the block, as the request or else the text around the cursor wants it.

    Without a grammar it is the end of the first line that holds something.
    """
    rules = partial(StopRules, suffix=request.suffix, reply_end=reply_end if spec.layout is Layout.CHAT else None)
    extent = request.extent
    if grammar is None:
        return rules(Reason.LINE, end=first_line_end)
    if extent is Extent.AUTO:
        extent = completion_extent(grammar, request.prefix, request.suffix)
    fit = partial(fitted, prefix=request.prefix, suffix=request.suffix)
    if extent is Extent.BLOCK:
        return rules(Reason.BLOCK, end=fit(partial(block_end, grammar, request.prefix)))
    if request.suffix.partition("\n")[0].strip():
        return rules(Reason.LINE, end=partial(line_before_code, request.prefix))
    return rules(Reason.LINE, end=fit(partial(statement_end, grammar, request.prefix)))
