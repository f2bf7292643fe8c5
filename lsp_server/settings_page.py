"""Makes docs/settings.md, and what the editor plugins say of options and languages, from what the server knows.

`python -m remask.lsp_server.settings_page` writes them; a test fails where they are stale.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from remask.grammars import grammars
from remask.lsp_server.options import ServerOptions, kind_of, wire_name

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "settings.md"
MANIFEST = ROOT / "editors" / "vscode" / "package.json"
NEOVIM = ROOT / "editors" / "nvim" / "lsp" / "remask.lua"
MACHINE_ONLY = frozenset({"model", "adapter", "steer"})
"""Settings that a workspace, which may be somebody else's, must not choose."""

_HEAD = """\
# Settings

<!-- Made by `python -m remask.lsp_server.settings_page` from lsp_server/options.py: change it there. -->

A client gives them as `initializationOptions`, in the section `remask` of its settings (`workspace/configuration`), or
by `workspace/didChangeConfiguration`. A change holds from the next request on; a change of model, adapter, device,
dtype, steer, shareEngine or unloadAfterS starts another engine. A wrong value is reported in one sentence, and its
default is used.

| Option | Default | Value | Meaning |
|---|---|---|---|
"""


def render_page() -> str:
    """The page."""
    rows = []
    for one in dataclasses.fields(ServerOptions):
        meaning = one.metadata["meaning"]
        rows.append(f"| `{wire_name(one.name)}` | {_shown(one.default)} | {kind_of(one).says} | {meaning} |")
    return _HEAD + "\n".join(rows) + "\n"


def render_manifest(text: str) -> str:
    """The extension's manifest with languages and settings made anew; what is its own (`remask.command`) stays."""
    manifest = json.loads(text)
    manifest["activationEvents"] = [f"onLanguage:{one}" for one in language_ids()]
    configuration = manifest["contributes"]["configuration"]
    own = {"remask.command": configuration["properties"]["remask.command"]}
    configuration["properties"] = own | {
        f"remask.{wire_name(one.name)}": _property(one) for one in dataclasses.fields(ServerOptions)
    }
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def render_neovim(text: str) -> str:
    """Neovim's description of the server with the file types made anew; they are named as languages are."""
    lines = "".join(f"    '{one}',\n" for one in language_ids())
    return re.sub(r"(?<=  filetypes = \{\n).*?(?=  \},\n)", lines, text, flags=re.DOTALL)


def language_ids() -> list[str]:
    """The languages of the grammars, as editors name them."""
    return [one for grammar in grammars() for one in grammar.language_ids]


def _property(one: dataclasses.Field[Any]) -> dict[str, Any]:
    default = "" if one.default is None else list(one.default) if isinstance(one.default, tuple) else one.default
    scope = {"scope": "machine"} if one.name in MACHINE_ONLY else {}
    return {**kind_of(one).schema, "default": default, **scope, "description": one.metadata["meaning"]}


def _shown(value: object) -> str:
    if value is None or value == ():
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    PAGE.write_text(render_page(), "utf-8")
    MANIFEST.write_text(render_manifest(MANIFEST.read_text("utf-8")), "utf-8")
    NEOVIM.write_text(render_neovim(NEOVIM.read_text("utf-8")), "utf-8")
