"""The one schema of what a client may set. Knows no engine and no LSP types.

The docs page, the settings of the VS Code extension and the checks are all made from these fields (see settings_page).
Names are snake_case here and camelCase on the wire. A wrong value never stops the server: it is reported in a sentence
and the default takes its place.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remask.lsp_server.option_kinds import FLAG, FOLDER, TEXT, WORD, WORDS, Kind, about, choice, number

CLIENT_ONLY = frozenset({"command", "trace", "acceptKey"})
"""Settings of our editor plugins that travel along with the server's and mean nothing here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """All options with their defaults."""

    model: Path | None = field(
        default=None, metadata=about(FOLDER, "A checkpoint's folder. Empty: the model that ships with Remask.")
    )
    adapter: Path | None = field(
        default=None, metadata=about(FOLDER, "A folder with a LoRA adapter, which is merged into the model.")
    )
    device: str = field(default="auto", metadata=about(WORD, "Where the model runs: auto, cpu, cuda."))
    dtype: str = field(
        default="auto", metadata=about(WORD, "The model's number format: auto, int8, fp8, float32, bfloat16.")
    )
    steer: tuple[str, ...] = field(
        default=(), metadata=about(WORDS, "Steering vectors, as FILE or FILE:strength (docs/control.md).")
    )
    share_engine: bool = field(
        default=True,
        metadata=about(FLAG, "Let all editors that want the same model on the same device use one engine."),
    )
    unload_after_s: int = field(
        default=1800,
        metadata=about(number(0, 604_800), "After how many idle seconds the engine gives its memory back; 0 is never."),
    )
    automatic: bool = field(
        default=True, metadata=about(FLAG, "Ghost text while typing. false: only when the editor is told to ask.")
    )
    multiline: str = field(
        default="auto", metadata=about(choice("auto", "never"), "auto: several lines where a block was opened.")
    )
    max_tokens: int = field(default=64, metadata=about(number(1, 4096), "How many tokens a completion may have."))
    deadline_ms: int = field(
        default=5_000,
        metadata=about(number(50, 600_000), "How long a completion may take; what is ready by then is shown."),
    )
    candidates: int = field(
        default=3, metadata=about(number(1, 8), "How many completions to offer when the editor was told to ask.")
    )
    automatic_candidates: int = field(
        default=1, metadata=about(number(1, 8), "How many completions to offer while typing.")
    )
    debounce: str = field(
        default="adaptive",
        metadata=about(
            choice("adaptive", "fixed", "off"),
            "How long to wait for a pause while typing. adaptive: from the typing speed and the engine's.",
        ),
    )
    debounce_ms: int = field(
        default=300,
        metadata=about(number(0, 5_000), "The wait where debounce is fixed, the longest one where it is adaptive."),
    )
    guide: str = field(
        default="", metadata=about(TEXT, "A wish in words, which the model reads before all else (docs/control.md).")
    )
    speculate: bool = field(
        default=True, metadata=about(FLAG, "Prepare what follows a shown completion while nothing else is to do.")
    )
    disabled_languages: tuple[str, ...] = field(
        default=(), metadata=about(WORDS, "Language ids in which nothing is completed.")
    )
    exclude: tuple[str, ...] = field(
        default=(),
        metadata=about(WORDS, "Patterns, as in .gitignore, of further files that are never read or completed."),
    )
    context: bool = field(
        default=True, metadata=about(FLAG, "Let the model see pieces of other files of the workspace.")
    )
    context_characters: int = field(
        default=6_000, metadata=about(number(0, 60_000), "How much of other files the model sees at most.")
    )
    fill_candidates: int = field(default=3, metadata=about(number(1, 8), "How many bodies to write for a function."))
    fill_max_tokens: int = field(
        default=256, metadata=about(number(1, 4096), "How many tokens a function's body may have.")
    )
    fill_deadline_ms: int = field(
        default=30_000, metadata=about(number(50, 600_000), "How long filling a function may take in all.")
    )
    fill_preview: bool = field(
        default=True, metadata=about(FLAG, "Let the editor show a filled body for confirmation before it is put in.")
    )
    statistics: bool = field(
        default=True, metadata=about(FLAG, "Count on this machine what is shown and accepted ('remask stats').")
    )
    log_level: str = field(
        default="info", metadata=about(choice("debug", "info", "warning", "error"), "How much the log says.")
    )
    log_text: bool = field(
        default=False, metadata=about(FLAG, "Write completions into the log; otherwise it never holds source text.")
    )

    def updated(self, values: object) -> tuple[ServerOptions, list[str]]:
        """These options with those in `values` (as the client sent them), and a sentence about each that is wrong."""
        if values is None:
            return self, []
        if not isinstance(values, Mapping):
            return self, [f"Remask's options are an object, not {type(values).__name__}; the defaults are used."]
        known = {wire_name(one.name): one for one in dataclasses.fields(self)}
        right: dict[str, Any] = {}
        wrong: list[str] = []
        for name, value in values.items():
            one = known.get(str(name))
            if one is None:
                if name not in CLIENT_ONLY:
                    wrong.append(_unknown(str(name), known))
                continue
            try:
                right[one.name] = kind_of(one).read(value)
            except ValueError as error:
                wrong.append(f"Remask's option '{name}' is {error}, not {value!r:.60}; the default is used.")
        return dataclasses.replace(self, **right), wrong


def _unknown(name: str, known: Iterable[str]) -> str:
    """What a user is told about a name that no option has."""
    right = {option.lower(): option for option in known}
    near = difflib.get_close_matches(name.lower().replace("_", "").replace("-", ""), right, n=2)
    meant = f" Did you mean {' or '.join(right[one] for one in near)}?" if near else ""
    return f"Remask has no option '{name:.60}'.{meant} All are listed in docs/settings.md."


ENGINE_OPTIONS = ("model", "adapter", "device", "dtype", "steer", "share_engine", "unload_after_s")
"""Those that need another engine process when they change."""


def kind_of(one: dataclasses.Field[Any]) -> Kind:
    """The kind of value that a field of the options has."""
    kind = one.metadata["kind"]
    assert isinstance(kind, Kind)
    return kind


def wire_name(name: str) -> str:
    """An option's name as clients write it."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
