"""What each `Reason` means to a user and what to do about it, in one place for logs, `remask doctor` and the docs."""

from __future__ import annotations

from remask.contract.messages import Reason

EXPLANATIONS: dict[Reason, tuple[str, str]] = {
    Reason.END: ("The model said that the text is complete.", ""),
    Reason.LINE: ("One line was wanted, and it is complete.", ""),
    Reason.BLOCK: ("The block that was being filled is closed.", ""),
    Reason.SUFFIX: ("What follows the cursor was reached.", ""),
    Reason.BUDGET: ("The token budget is spent.", "Raise maxTokens for longer texts."),
    Reason.DEADLINE: ("The time was up.", "Raise deadlineMs, or run the model on a faster device."),
    Reason.CUT: ("The text was cut back to the last statement that holds.", ""),
    Reason.EMPTY: ("The model has nothing to add.", ""),
    Reason.SYNTAX: ("Every draft would have added a syntax error.", "Ask again: the editor's manual request helps."),
    Reason.DUPLICATE: ("All of the text stands in the file already.", ""),
    Reason.NO_STUB: (
        "There is no empty function here.",
        "Put the cursor on one whose body is empty, a placeholder or a comment.",
    ),
    Reason.CANCELLED: ("A newer request, or the editor, took its place.", ""),
    Reason.STALE: (
        "The document moved on, or one of its changes could not be read.",
        "If it stays so, save the file or open it again.",
    ),
    Reason.UNKNOWN_DOCUMENT: ("The editor never opened this document.", "Open it in a normal editor window."),
    Reason.DISABLED: ("An option turns it off here.", "See automatic and disabledLanguages in docs/settings.md."),
    Reason.EXCLUDED: (
        "The file may hold secrets, or an exclusion names it.",
        "See .remaskignore and the option exclude in docs/settings.md.",
    ),
    Reason.LANGUAGE: ("There is no grammar for this language.", "'remask doctor' lists the languages."),
    Reason.TOO_LARGE: ("The document has more than 2 MB, or the text more than an editor shows.", ""),
    Reason.LOADING: (
        "The model was still being loaded when the time was up; nothing has failed.",
        "Ask again in a moment; a busy machine needs longer.",
    ),
    Reason.ENGINE: ("The engine is not there or failed.", "The log says more; 'remask doctor' looks for the cause."),
}


def explain(reason: Reason) -> str:
    """One line: what it means and what to do."""
    return " ".join(part for part in EXPLANATIONS[reason] if part)
