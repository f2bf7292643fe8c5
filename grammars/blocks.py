"""Where a draft leaves the block, or the line, that it is filling. Pure, and right about strings and open brackets.

Knows no parse, so it can be asked after every token. All offsets are in code points.
"""

from __future__ import annotations

from remask.grammars.language import Grammar
from remask.grammars.lexis import CLOSER, CodeLine, Lexis, scan, scan_prefix, tokens, width


def block_end(grammar: Grammar, prefix: str, draft: str) -> int | None:
    """The offset in `draft` where the block being filled is closed, or None while it is open.

    By indentation: the start of the first line, blank ones apart, that stands left of the line on which the draft
    starts; after a line that opens a block, left of the first line of that block. By braces: the first closer
    without an opener. What stands inside a string, a comment or brackets of the draft closes nothing.
    """
    return _indent_end(grammar, prefix, draft) if grammar.text.offside else _brace_end(grammar, prefix, draft)


def line_end(grammar: Grammar, prefix: str, draft: str) -> int | None:
    """The offset in `draft` of the line end that finishes its first line of code, or None while it is unfinished.

    Brackets and strings that the draft opened must be closed first; those of the prefix may stay open, since a
    list that is being written ends a line with every item. After a line that opens a block, the line end itself
    finishes nothing: the first line of the block does.
    """
    lexis = scan_prefix(grammar, prefix)
    head = prefix[lexis.anchor :]
    begun = bool(prefix[prefix.rfind("\n") + 1 :].strip()) and not ends_open(grammar, prefix, lexis)
    depth = 0
    for match in tokens(grammar).finditer(head + draft):
        at = match.start() - len(head)
        if at < 0:
            continue
        if match.lastgroup == "o":
            depth += 1
        elif match.lastgroup == "x":
            depth = max(0, depth - 1)
        elif match.lastgroup == "n" and depth == 0 and (begun or draft[:at].strip()):
            return at
    return None


def statement_end(grammar: Grammar, prefix: str, draft: str) -> int | None:
    """Like `line_end`, but a header goes on to the end of its block, its clauses included."""
    end = line_end(grammar, prefix, draft)
    if end is None or not grammar.text.offside:
        return end
    head = prefix[scan_prefix(grammar, prefix).anchor :]
    text = head + draft
    first = next((line for line in scan(grammar, text).lines if line.end >= len(head) + end), None)
    if first is None or not opens_block(grammar, text, first):
        return end
    for line in scan(grammar, text).lines:
        word = text[line.start : line.tail].split(maxsplit=1)[0].rstrip(":")
        if line.start > first.start and line.indent <= first.indent and word not in grammar.text.clause_words:
            return len(text[: line.start].rstrip()) - len(head)
    return None


def opens_block(grammar: Grammar, text: str, line: CodeLine) -> bool:
    """Whether the last code character of `line` is the one that a block follows."""
    return text.endswith(grammar.text.block_opener, line.start, line.tail)


def ends_open(grammar: Grammar, prefix: str, lexis: Lexis) -> bool:
    """Whether the logical line that `prefix` ends in is a header, complete up to its block."""
    if not lexis.lines or lexis.inside or (lexis.stack and grammar.text.offside):
        return False
    last = lexis.lines[-1]
    return last.start == lexis.anchor and opens_block(grammar, prefix, last)


def _indent_end(grammar: Grammar, prefix: str, draft: str) -> int | None:
    lexis = scan_prefix(grammar, prefix)
    head = prefix[lexis.anchor :]
    floor, least = _floor(grammar, prefix, draft, lexis)
    text = head + draft
    for start in scan(grammar, text).breaks:
        line = text[start : _stop(text, start)]
        if not line.strip() or (start == 0 and head.strip()):
            continue
        if floor is None:
            floor = max(width(line), least)
        if width(line) < floor:
            return max(0, start - len(head))
    return None


def _floor(grammar: Grammar, prefix: str, draft: str, lexis: Lexis) -> tuple[int | None, int]:
    """The indentation of the block being filled; None where its first line decides, and what that must have."""
    head = prefix[lexis.anchor :]
    starts_below = not draft[: _stop(draft, 0)].strip()
    last = lexis.lines[-1] if lexis.lines else None
    if head.strip():
        if last and starts_below and ends_open(grammar, prefix, lexis):
            return None, last.indent + 1
        return width(head), 0
    if last and opens_block(grammar, prefix, last):
        return None, last.indent + 1
    if not starts_below:
        return None, 0
    return (width(head) if head or not last else last.indent), 0


def _brace_end(grammar: Grammar, prefix: str, draft: str) -> int | None:
    lexis = scan_prefix(grammar, prefix)
    head = prefix[lexis.anchor :]
    stack = [opener for opener, _ in lexis.stack]
    while "{" in stack:
        del stack[: stack.index("{") + 1]
    for match in tokens(grammar).finditer(head + draft):
        at = match.start() - len(head)
        if at < 0:
            continue
        if match.lastgroup == "o":
            stack.append(match.group())
        elif match.lastgroup == "x" and not _closes(stack, match.group()):
            return at
    return None


def _closes(stack: list[str], closer: str) -> bool:
    """Take what `closer` closes off the stack; False where nothing on it does and it closes the block."""
    if stack and CLOSER[stack[-1]] == closer:
        stack.pop()
    elif closer != "}":
        return bool(stack)
    elif "{" in stack:
        while stack.pop() != "{":
            pass
    else:
        return False
    return True


def _stop(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
