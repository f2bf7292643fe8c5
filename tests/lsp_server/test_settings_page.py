"""What is made from the schema is not stale."""

import json
from typing import Any

from remask.lsp_server.options import ServerOptions
from remask.lsp_server.settings_page import MANIFEST, NEOVIM, PAGE, render_manifest, render_neovim, render_page


def test_the_page_is_made_from_the_schema() -> None:
    assert PAGE.read_text("utf-8") == render_page(), "run: python -m remask.lsp_server.settings_page"


def test_the_extensions_settings_and_languages_are_made_from_what_the_server_knows() -> None:
    text = MANIFEST.read_text("utf-8")
    assert text == render_manifest(text), "run: python -m remask.lsp_server.settings_page"


def test_the_extensions_defaults_are_the_servers() -> None:
    properties: dict[str, Any] = json.loads(MANIFEST.read_text("utf-8"))["contributes"]["configuration"]["properties"]
    sent = {name.removeprefix("remask."): value["default"] for name, value in properties.items()}
    assert ServerOptions().updated(sent) == (ServerOptions(), [])


def test_neovim_knows_the_servers_languages() -> None:
    text = NEOVIM.read_text("utf-8")
    assert text == render_neovim(text), "run: python -m remask.lsp_server.settings_page"
    assert "'python',\n" in text
