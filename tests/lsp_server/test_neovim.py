"""Ghost text in a real Neovim, driven over its own socket. Skipped where there is no Neovim 0.12.

Set REMASK_TEST_NVIM to the command of one that is not on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from remask.lsp_server.statistics import read_statistics

ROOT = Path(__file__).parents[2]
NVIM = os.environ.get("REMASK_TEST_NVIM") or shutil.which("nvim")
PATIENCE_S = 20.0


def _is_new_enough() -> bool:
    if NVIM is None:
        return False
    version = subprocess.run([NVIM, "--version"], capture_output=True, text=True, check=False).stdout
    return "NVIM v" in version and tuple(map(int, version.split("NVIM v")[1].split(".")[:2])) >= (0, 12)


pytestmark = pytest.mark.skipif(not _is_new_enough(), reason="needs Neovim 0.12 or newer (or REMASK_TEST_NVIM)")


class Neovim:
    """A headless Neovim with our configuration and the real server around a fake engine."""

    def __init__(self, folder: Path, file: Path, answer: str, options: str = "") -> None:
        assert NVIM is not None
        self.address = str(folder / "socket")
        command = [sys.executable, str(Path(__file__).with_name("fake_server.py")), answer]
        keys = "accept_word = '<C-j>', accept_line = '<C-l>', suggest = '<C-s>'"
        call = f"require('remask').setup({{ cmd = {_lua(command)}, {keys}, init_options = {{ {options} }} }})"
        setup = f"lua vim.opt.rtp:append('{ROOT}/editors/nvim'); {call}"
        self.process = subprocess.Popen(
            [NVIM, "--headless", "--clean", "--listen", self.address, "-c", setup, "-c", f"edit {file}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "XDG_STATE_HOME": str(folder), "XDG_DATA_HOME": str(folder)},
        )
        self.until(lambda: Path(self.address).exists() and self.lua("#vim.lsp.get_clients()") == 1)
        self.until(lambda: self.lua("vim.lsp.get_clients()[1].initialized") is True)

    def lua(self, expression: str) -> Any:
        """The value of a Lua expression."""
        call = f"luaeval('vim.json.encode({expression.replace(chr(39), chr(39) * 2)})')"
        answer = self._remote("--remote-expr", call)
        return json.loads(answer) if answer else None

    def press(self, keys: str) -> None:
        self._remote("--remote-send", keys)

    def ghost(self) -> list[str]:
        """The lines of ghost text."""
        marks = self.lua(
            "vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace('nvim.lsp.inline_completion'),"
            " 0, -1, {details = true})"
        )
        if not marks:
            return []
        details = marks[0][3]
        first = "".join(part[0] for part in details.get("virt_text", []))
        return [first, *("".join(part[0] for part in line) for line in details.get("virt_lines") or [])]

    def draft(self) -> list[str]:
        """The lines of a body that is being written."""
        marks = self.lua(
            "vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace('remask.draft'), 0, -1, {details = true})"
        )
        return ["".join(part[0] for part in line) for mark in marks for line in mark[3].get("virt_lines", [])]

    def lines(self) -> list[str]:
        return list(self.lua("vim.api.nvim_buf_get_lines(0, 0, -1, false)"))

    def until(self, condition: Any) -> None:
        """Ask Neovim again and again; nothing else tells when it has drawn."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"ghost {self.ghost()}, lines {self.lines()}"

    def _remote(self, *arguments: str) -> str:
        assert NVIM is not None
        done = subprocess.run(
            [NVIM, "--clean", "--headless", "--server", self.address, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip() or done.stderr.strip() if done.returncode == 0 else ""


def _lua(values: list[str]) -> str:
    return "{" + ", ".join("'" + value.replace("\\", "\\\\").replace("\n", "\\n") + "'" for value in values) + "}"


@pytest.fixture
def neovim(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Neovim]:
    answer, text, *options = request.param
    file = tmp_path / "a.py"
    file.write_bytes(text.encode())
    neovim = Neovim(tmp_path, file, answer, *options)
    yield neovim
    children = psutil.Process(neovim.process.pid).children(recursive=True)
    neovim.press("<Esc>:qa!<CR>")
    neovim.process.wait(PATIENCE_S)
    _, alive = psutil.wait_procs(children, PATIENCE_S)
    assert children
    assert not alive, "no server is left"


@pytest.mark.parametrize("neovim", [("1 + 2\nprint(x)", "x = 0\n")], indirect=True)
def test_ghost_text_is_shown_and_accepted(neovim: Neovim) -> None:
    neovim.press("S")
    neovim.press("x = ")
    neovim.until(lambda: neovim.ghost() == ["1 + 2", "print(x)"])
    neovim.press("<Tab>")
    neovim.until(lambda: neovim.lines() == ["x = 1 + 2", "print(x)"])


@pytest.mark.parametrize("neovim", [("1", "a = '你😀'\r\nb = '😀'\r\n")], indirect=True)
def test_columns_after_wide_characters_in_a_crlf_file(neovim: Neovim) -> None:
    neovim.press("jA + ")
    neovim.until(lambda: neovim.ghost() == ["1"])
    neovim.press("<Tab>")
    neovim.until(lambda: neovim.lines() == ["a = '你😀'", "b = '😀' + 1"])


@pytest.mark.parametrize("neovim", [("12", "x\n")], indirect=True)
def test_the_key_keeps_its_meaning_without_ghost_text(neovim: Neovim) -> None:
    neovim.press("A # wait")
    neovim.press("<Tab>y")
    neovim.until(lambda: neovim.lines() == ["x # wait    y"])
    assert neovim.ghost() == []


@pytest.mark.parametrize("neovim", [("1 + 2", "\n")], indirect=True)
def test_ghost_text_goes_where_there_is_nothing_to_show_any_more(neovim: Neovim) -> None:
    neovim.press("ix = ")
    neovim.until(lambda: neovim.ghost() == ["1 + 2"])
    neovim.press("# nothing")
    neovim.until(lambda: neovim.ghost() == [])


@pytest.mark.parametrize("neovim", [("foobar", "\n")], indirect=True)
def test_what_was_typed_since_the_answer_is_not_doubled(neovim: Neovim) -> None:
    """Report 16."""
    neovim.press("ix = ")
    neovim.until(lambda: neovim.ghost() == ["foobar"])
    neovim.press("foo<Tab>")  # before the next request, which waits for 200 ms
    neovim.until(lambda: neovim.lines() == ["x = foobar"])


@pytest.mark.parametrize("neovim", [("größe + 1\nprint(x)", "\n")], indirect=True)
def test_a_word_and_a_line_are_accepted_and_the_rest_stays(neovim: Neovim) -> None:
    neovim.press("ix = ")
    neovim.until(lambda: neovim.ghost() == ["größe + 1", "print(x)"])
    neovim.press("<C-j>")
    neovim.until(lambda: neovim.lines() == ["x = größe"] and neovim.ghost() == [" + 1", "print(x)"])
    neovim.press("<C-l>")
    neovim.until(lambda: neovim.lines() == ["x = größe + 1"] and neovim.ghost() == ["", "print(x)"])
    neovim.press("<Tab>")
    neovim.until(lambda: neovim.lines() == ["x = größe + 1", "print(x)"])


@pytest.mark.parametrize("neovim", [("return a * b", "def f(a, b):\n    pass\n")], indirect=True)
def test_a_function_is_filled_by_its_code_action(neovim: Neovim) -> None:
    neovim.press("j")
    neovim.press("<Cmd>lua vim.lsp.buf.code_action({ apply = true })<CR>")
    neovim.until(lambda: neovim.lines() == ["def f(a, b):", "    return a * b"])
    neovim.until(lambda: neovim.lua("require('remask').status().kind") == "Normal")


@pytest.mark.parametrize("neovim", [("return a * b", "def f(a, b):\n    # TODO\n")], indirect=True)
def test_a_function_is_filled_by_a_call(neovim: Neovim) -> None:
    neovim.press("<Cmd>lua require('remask').fill()<CR>")
    neovim.until(lambda: neovim.lines() == ["def f(a, b):", "    # TODO", "    return a * b"])
    neovim.until(lambda: neovim.draft() == [])


@pytest.mark.parametrize("neovim", [("return a * b", "def wait(a, b):\n    pass\n")], indirect=True)
def test_the_draft_of_a_body_is_drawn_until_it_is_cancelled(neovim: Neovim) -> None:
    neovim.press("j")
    neovim.press("<Cmd>lua vim.lsp.buf.code_action({ apply = true })<CR>")
    neovim.until(lambda: neovim.draft() == ["    return"])
    neovim.press("<Cmd>lua require('remask').cancel()<CR>")
    neovim.until(lambda: neovim.draft() == [])
    assert neovim.lines() == ["def wait(a, b):", "    pass"]


@pytest.mark.parametrize("neovim", [("return a * b", "def f(a, b):\n    pass\n")], indirect=True)
def test_a_fill_that_fails_says_why(neovim: Neovim) -> None:
    answer = "function(_, _, _, answer) answer({ message = 'The document has changed.' }) end"
    neovim.press(f"<Cmd>lua vim.lsp.get_clients()[1].request = {answer}<CR>")
    neovim.press("<Cmd>lua require('remask').fill()<CR>")
    neovim.until(lambda: "The document has changed." in neovim.lua("vim.fn.execute('messages')"))


@pytest.mark.parametrize("neovim", [("1 + 2", "\n", "automatic = false")], indirect=True)
def test_ghost_text_comes_by_hand_and_is_counted(neovim: Neovim) -> None:
    neovim.press("ix = <C-s>")
    neovim.until(lambda: neovim.ghost() == ["1 + 2"])
    neovim.press("<Tab>")
    neovim.until(lambda: neovim.lines() == ["x = 1 + 2"])
    neovim.press("<Esc>:w<CR>")
    neovim.until(lambda: sum(day["accepted"] for day in read_statistics().values()) == 1)
    (day,) = read_statistics().values()
    assert (day["offered"], day["shown"]) == (1, 1)


@pytest.mark.parametrize("neovim", [("1", "x = 0\n")], indirect=True)
def test_the_health_check_says_how_it_is(neovim: Neovim) -> None:
    neovim.until(lambda: neovim.lua("require('remask').status().message") == "Ready.")
    neovim.press("<Cmd>checkhealth remask<CR>")
    neovim.until(lambda: any("Ready." in line for line in neovim.lines()))
    assert not [line for line in neovim.lines() if "ERROR" in line or "WARNING" in line]
