"""What is never completed, and what is never shown to the model; folders whose names begin alike."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from remask.lsp_server import exclusions as exclusions_module
from remask.lsp_server.exclusions import Exclusions, may_hold_secrets
from remask.lsp_server.folders import Folders, path_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name in ("a.py", "gen/b.py", "gen/keep.py", "own/c.py", "sub/d.py", "sub/e.py", ".git/info/exclude"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / ".gitignore").write_text("gen/*\n!gen/keep.py\n")
    (root / ".remaskignore").write_text("own/\n")
    (root / "sub/.gitignore").write_text("e.py\n")
    (root / ".git/info/exclude").write_text("a.py\n")
    return root


def of(root: Path, *patterns: str) -> Exclusions:
    folders = Folders()
    folders.add(root.as_uri())
    return Exclusions(folders, patterns)


def test_gitignore_hides_and_remaskignore_forbids(root: Path) -> None:
    exclusions = of(root)
    hidden = {
        name
        for name in ("a.py", "gen/b.py", "gen/keep.py", "own/c.py", "sub/d.py", "sub/e.py")
        if exclusions.hides(root / name)
    }
    assert hidden == {"a.py", "gen/b.py", "own/c.py", "sub/e.py"}
    assert exclusions.forbids((root / "own/c.py").as_uri())
    assert not exclusions.forbids((root / "gen/b.py").as_uri()), "the user may edit what git ignores"


def test_the_option_forbids_too(root: Path) -> None:
    exclusions = of(root, "sub/", "*.min.js")
    assert exclusions.forbids((root / "sub/d.py").as_uri())
    assert exclusions.hides(root / "x.min.js")
    assert exclusions.forbids("untitled:x.min.js")
    assert not exclusions.forbids("untitled:x.js")


def test_secrets_stay_secret_whatever_an_ignore_file_says(root: Path) -> None:
    (root / ".remaskignore").write_text("!.env\n!*.pem\n")
    exclusions = of(root)
    for name in (".env", "x.pem", ".ssh/config", "sub/.env.local", ".git/config"):
        assert exclusions.forbids((root / name).as_uri())
        assert exclusions.hides(root / name)


def test_a_link_to_a_secret_or_out_of_the_workspace_is_hidden(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("")
    (root / ".env").write_text("")
    os.symlink(root / ".env", root / "plain.py")
    os.symlink(tmp_path / "outside.py", root / "out.py")
    os.symlink(root / "sub/d.py", root / "fine.py")
    exclusions = of(root)
    assert exclusions.hides(root / "plain.py")
    assert exclusions.hides(root / "out.py")
    assert not exclusions.hides(root / "fine.py")


@pytest.mark.parametrize("name", ["a" * 300 + ".py", "b" * 300 + "/c.py"])
def test_a_name_that_no_file_can_have_is_no_error(root: Path, name: str) -> None:
    exclusions = of(root)
    assert exclusions.hides(root / name)
    assert not exclusions.forbids(f"file://{root}/{name}")


@pytest.mark.parametrize("uri", ["file://[x/a.py", "http://[::1/a.py", "untitled://[x", "", "\ud800", "%", "a:b:c"])
def test_no_uri_is_an_error(root: Path, uri: str) -> None:
    assert not of(root, "*.md").forbids(uri)


SECRET_URIS = [
    *("file:///p/c#/.env", "file:///p/c%23/.env", "file:///p/x?/.env", "file:///p/.env?a", "file:///p/.env#L1"),
    *(
        "file:///p/.env%20",
        "file:///p/.env/",
        "file:///p/%2Eenv",
        "untitled:.env",
        "git:/p/.env?%7B%7D",
        "untitled://.env",
    ),
    *("FILE:///p/.ENV", "file:///p/.ssh%20/x", "file:///c%3A%5C.aws%5Cx", "file://[x/.env", "//p/.env", ".env"),
    *("file:///p/.git-credentials", "file:///p/.vault-token", "file:///p/a.tfvars", "file:///p/.dockercfg"),
    *("file:///p/service-account-1.json", "file:///p/key.pem.bak"),
]


@pytest.mark.parametrize("uri", SECRET_URIS)
def test_a_secret_is_known_however_its_uri_is_written(root: Path, uri: str) -> None:
    assert may_hold_secrets(uri)
    assert of(root).forbids(uri)


@pytest.mark.parametrize("uri", ["file:///p/c#/a.py", "file:///p/env.py", "untitled:Untitled-1", "file:///p/a.py?.x"])
def test_what_is_no_secret_is_none(uri: str) -> None:
    assert not may_hold_secrets(uri)


def test_ignore_files_above_the_opened_folder_count_up_to_the_repository(root: Path) -> None:
    (root.parent / ".gitignore").write_text("d.py\n")  # outside of the repository
    (root / ".gitignore").write_text("sub/c.py\n/top.py\n")
    (root / ".remaskignore").write_text("sub/own.py\n")
    (root / ".git/info/exclude").write_text("x.py\n")
    exclusions = of(root / "sub", "/only.py")
    hidden = {name for name in ("c", "d", "e", "own", "x", "top", "only") if exclusions.hides(root / f"sub/{name}.py")}
    assert hidden == {"c", "e", "own", "x", "only"}
    assert exclusions.forbids((root / "sub/own.py").as_uri())


def test_the_rules_of_every_open_folder_count(root: Path) -> None:
    folders = Folders()
    for folder in (root / "sub", root):
        folders.add(folder.as_uri())
    (root / ".gitignore").write_text("sub/c.py\n")
    exclusions = Exclusions(folders, ["sub/p.py", "/q.py"])
    assert [name for name in "cdepq" if exclusions.hides(root / f"sub/{name}.py")] == ["c", "e", "p", "q"]


def test_a_linked_folder_lets_nothing_from_outside_in(root: Path, tmp_path: Path) -> None:
    for name in ("outside/a.py", "work/.aws/a.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("")
    os.symlink(tmp_path / "outside", root / "out")
    os.symlink(root / ".aws", root / "plain")
    os.symlink(root / "sub", root / "same")
    exclusions = of(root)
    assert exclusions.hides(root / "out/a.py")
    assert exclusions.hides(root / "out", is_folder=True)
    assert exclusions.hides(root / "plain/a.py")
    assert exclusions.hides(root / "sub/../../outside/a.py")
    assert not exclusions.hides(root / "same/d.py")
    assert not exclusions.hides(root / "sub/new.py"), "a file need not be there"


def test_a_folder_that_was_opened_by_a_link_works(root: Path, tmp_path: Path) -> None:
    os.symlink(root, tmp_path / "link")
    exclusions = of(tmp_path / "link")
    assert not exclusions.hides(tmp_path / "link/sub/d.py")
    assert exclusions.hides(tmp_path / "link/sub/e.py")
    assert not exclusions.hides(tmp_path / "link/sub", is_folder=True)


def test_the_rules_hold_for_what_a_link_leads_to(root: Path, tmp_path: Path) -> None:
    os.symlink(root, tmp_path / "link")
    os.symlink(root / "own/c.py", root / "named.py")
    os.symlink(root / "own", root / "folder")
    os.symlink(root / "sub/e.py", root / "shown.py")
    exclusions = of(root)
    for path in (root / "named.py", root / "folder/c.py", tmp_path / "link/own/c.py", root / "sub/../own/c.py"):
        assert exclusions.hides(path)
        assert exclusions.forbids(f"file://{path}")
    assert exclusions.hides(root / "shown.py")
    assert not exclusions.forbids((root / "shown.py").as_uri()), "git alone ignores it"
    (root / ".env").touch()
    os.symlink(root / ".env", root / "settings.py")
    assert exclusions.forbids((root / "settings.py").as_uri()), "a secret by another name"
    opened_by_link = of(tmp_path / "link")
    assert opened_by_link.hides(root / "own/c.py"), "by its real name"
    assert opened_by_link.forbids((root / "own/c.py").as_uri())


@pytest.mark.parametrize("scheme", ["vscode-notebook-cell:", "vscode-notebook-cell://", "git:", "untitled:"])
def test_the_rules_hold_for_a_document_of_any_scheme(root: Path, scheme: str) -> None:
    exclusions = of(root, "*.ipynb")
    assert exclusions.forbids(f"{scheme}{root}/own/c.py?ref=x#W0")
    assert exclusions.forbids(f"{scheme}{root}/sub/notes.ipynb#W0")
    assert not exclusions.forbids(f"{scheme}{root}/sub/d.py#W0")


def test_ignore_files_count_for_a_file_that_lies_in_no_open_folder(root: Path, tmp_path: Path) -> None:
    exclusions = Exclusions(Folders(), ("sub/",))
    assert exclusions.forbids((root / "own/c.py").as_uri())
    assert exclusions.hides(root / "gen/b.py")
    assert exclusions.forbids((root / "sub/d.py").as_uri()), "the option"
    assert not exclusions.forbids((root / "gen/b.py").as_uri())
    (tmp_path / "loose").mkdir()
    assert not exclusions.hides(tmp_path / "loose/x.py")
    (tmp_path / ".remaskignore").write_text("loose/\n")
    exclusions.changed()
    assert exclusions.forbids((tmp_path / "loose/x.py").as_uri()), "no repository is needed"


def test_an_ignore_file_may_begin_with_a_byte_order_mark(root: Path) -> None:
    (root / ".remaskignore").write_bytes(b"\xef\xbb\xbfsub/\r\n")
    assert of(root).forbids((root / "sub/d.py").as_uri())


def test_rules_are_read_again_when_they_change(root: Path) -> None:
    exclusions = of(root)
    assert not exclusions.hides(root / "sub/d.py")
    (root / ".remaskignore").write_text("d.py\n")
    assert not exclusions.hides(root / "sub/d.py")
    exclusions.changed()
    assert exclusions.hides(root / "sub/d.py")


def test_an_ignore_file_that_cannot_be_read_is_none(root: Path) -> None:
    (root / ".remaskignore").unlink()
    (root / ".remaskignore").mkdir()
    (root / ".gitignore").write_bytes(b"\xff\xfe\nsub/\n")
    assert of(root).hides(root / "sub/d.py")


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b.py", "/a/b.py"),
        ("file:///a%20b/c.py", "/a b/c.py"),
        ("file://localhost/a", "/a"),
        ("file://server/a", None),
        ("file:///", None),
        ("file:///a%00b", None),
        ("file://[/a", None),
        ("untitled:Untitled-1", None),
        ("vscode-notebook-cell:/a.ipynb#x", None),
        ("", None),
    ],
)
def test_the_path_of_a_uri(uri: str, path: str | None) -> None:
    assert path_of(uri) == (Path(path) if path else None)


def test_a_folder_of_a_repository_that_is_opened_by_a_link_keeps_its_rules(root: Path, tmp_path: Path) -> None:
    (root / ".gitignore").write_text("/sub/d.py\n")
    (root / ".remaskignore").write_text("e.py\n")
    link = tmp_path / "link"
    link.symlink_to(root / "sub")
    exclusions = of(link)
    assert exclusions.hides(link / "d.py")
    assert exclusions.forbids((link / "e.py").as_uri())
    assert not exclusions.forbids((link / "d.py").as_uri())


def test_an_ignore_file_that_is_a_pipe_is_not_waited_for(root: Path) -> None:
    """Nor one that is a link to /dev/stdin, where the client's messages come from."""
    for name in (".gitignore", ".remaskignore"):
        (root / name).unlink()
        os.mkfifo(root / name)
    exclusions = of(root)
    assert not exclusions.forbids((root / "sub/d.py").as_uri())
    assert exclusions.hides(root / "sub/e.py"), "the other ones are read"


def test_what_lies_deeper_than_anybody_goes_is_kept_out_at_once(root: Path) -> None:
    deep = root.joinpath(*["a"] * 1_900, "x.py")
    exclusions = of(root)
    assert exclusions.forbids(deep.as_uri())
    assert exclusions.hides(deep)
    assert exclusions.hides(root.joinpath(*["a"] * 200), is_folder=True), "so that nobody walks down there"
    assert not exclusions.hides(root.joinpath(*["a"] * 50, "x.py"))


def test_rules_that_change_while_they_are_read_are_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exclusions = of(root)
    read = exclusions_module._lines

    def change_meanwhile(path: Path) -> list[str]:
        lines = read(path)
        if path == root / ".gitignore":
            path.write_text("d.py\n")
            exclusions.changed()  # as another thread may do
        return lines

    with monkeypatch.context() as patch:
        patch.setattr(exclusions_module, "_lines", change_meanwhile)
        exclusions.hides(root / "sub/d.py")
    assert exclusions.hides(root / "sub/d.py")


def test_a_worktrees_own_patterns_are_those_of_its_repository(root: Path, tmp_path: Path) -> None:
    worktree = tmp_path / "tree"
    folder = root / ".git/worktrees/tree"
    folder.mkdir(parents=True)
    (folder / "commondir").write_text("../..\n")
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: {folder}\n")
    exclusions = of(worktree)
    assert exclusions.hides(worktree / "a.py")
    assert not exclusions.hides(worktree / "b.py")
