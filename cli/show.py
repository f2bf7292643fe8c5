"""A completion as a person reads it: the code around the cursor with the new text as ghost text, and what it cost."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from remask.contract.messages import CompletionRequest, CompletionResult

LINES_ABOVE = 8
LINES_BELOW = 4
GHOST = "bold italic cyan"


def show(request: CompletionRequest, result: CompletionResult, console: Console | None = None) -> None:
    """Print the completion in its place, the others numbered below, and a line with tokens, passes, milliseconds."""
    console = console or Console(highlight=False)
    console.print(picture(request, result))
    for number, other in enumerate(result.others, start=2):
        console.print(further(number, other.text))
    console.print(Text(summary(result), style="dim"))


def picture(request: CompletionRequest, result: CompletionResult) -> Text:
    """The lines round the cursor, numbered, ghost text coloured."""
    above = request.prefix.split("\n")
    below = request.suffix.split("\n")
    first = max(0, len(above) - 1 - LINES_ABOVE)
    code = Text("\n".join(above[first:]))
    code.append(result.text or "▏", style=GHOST)  # a mark where there is nothing
    code.append("\n".join(below[: LINES_BELOW + 1]))
    out = Text()
    for number, line in enumerate(code.split("\n", allow_blank=True), start=first + 1):
        out.append(f"{number:>5} │ ", style="dim")
        out.append_text(line)
        out.append("\n")
    return out


def further(number: int, text: str) -> Text:
    """A text besides the one in its place: its number, and its lines below each other."""
    first, *rest = text.split("\n")
    out = Text()
    out.append(f"{number:>5}. ", style="dim")
    out.append("\n".join([first, *(f"{'':7}{line}" for line in rest)]), style=GHOST)
    return out


def summary(result: CompletionResult) -> str:
    """Tokens, passes, time, and why the text ends where it does."""
    why = f"Ended by: {result.reason}." if result.text else f"Nothing to show ({result.reason}). {result.detail}"
    if result.text and result.names.unknown:
        why += f" Nothing defines {', '.join(result.names.unknown)}."
    return (
        f"{result.tokens} tokens in {result.forwards} passes, {result.ms.total:.0f} ms "
        f"(prompt {result.ms.prompt:.0f}, decode {result.ms.decode:.0f}).\n"
        f"{result.prompt.cached} of {result.prompt.total} prompt tokens cached. "
        f"{result.model}, policy {result.policy}. {why}"
    )
