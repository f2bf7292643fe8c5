"""Which files are never read: those that may hold secrets, and those that an ignore file or an option names.

`.gitignore` (and `.git/info/exclude`) keeps a file out of what the model sees of other files; `.remaskignore`, the
option `exclude` and the built-in list keep completions out of the file itself too.
Ignore files count from the repository's folder down, which may lie above the opened one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from remask.lsp_server.folders import Folders, file_behind
from remask.lsp_server.ignore import Rule, read_rules, verdict
from remask.lsp_server.uris import parse

EXCLUDED_NAMES = (
    *(".env", ".env.*", ".envrc", "*.env", ".netrc", "_netrc", ".pgpass", ".pypirc", ".npmrc", ".htpasswd"),
    *(".git-credentials", ".vault-token", ".dockercfg", "*.tfvars", "*.tfvars.json", "*.pem.bak"),
    *("service-account*.json", "service_account*.json"),
    *("*.pem", "*.key", "*.crt", "*.cer", "*.cert", "*.der", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx"),
    *("*.gpg", "*.asc", "*.ppk", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *("secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "credentials", "credentials.json"),
)
"""Names of files that are never completed and never sent, compared without regard to case."""

EXCLUDED_FOLDERS = frozenset({".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker"})
_NOT_OF_A_NAME = " \t\r\n\0"  # at its end
OWN_FILE = ".remaskignore"
MAX_IGNORE_BYTES = 1_000_000
MAX_FOLDERS = 100  # in one another; what lies deeper is kept out, since asking all rules on the way takes too long
_LOOK_AGAIN_AFTER = 4_096  # folders whose rules are kept

_Rules = tuple[tuple[str, tuple[Rule, ...]], ...]


def may_hold_secrets(uri: str) -> bool:
    """Whether the document is of a kind that holds secrets, or lies in a folder that does."""
    parts = parse(uri)
    path = f"{parts.authority}{parts.path}"
    return _is_secret(path) or _is_secret(path + parts.rest)  # some clients do not quote a path's # and ?


def _is_secret(path: str) -> bool:
    parts = [part.rstrip(_NOT_OF_A_NAME) for part in PurePosixPath(path.replace("\\", "/").lower()).parts]
    if any(part in EXCLUDED_FOLDERS for part in parts):
        return True
    return bool(parts) and any(fnmatchcase(parts[-1], pattern) for pattern in EXCLUDED_NAMES)


class Exclusions:
    """The rules of one workspace. `patterns` is the option; call `changed` when an ignore file or a folder changes."""

    def __init__(self, folders: Folders, patterns: Iterable[str] = ()) -> None:
        self._folders = folders
        self._option = read_rules(patterns)
        self._rules: dict[Path, _Rules] = {}
        self._tops: dict[Path, Path] = {}
        self._real: dict[Path, Path] = {}

    def changed(self) -> None:
        """Read the ignore files again when they are next asked for."""
        # New ones: a thread that has read a file before this change keeps its rules in the old ones.
        self._rules, self._tops, self._real = {}, {}, {}

    def forbids(self, uri: str) -> bool:
        """Whether nothing may be completed in this document."""
        if may_hold_secrets(uri):
            return True
        path = file_behind(uri)
        if path is None:
            return verdict(self._option, parse(uri).key.rpartition("/")[2], False) is True
        return (
            _is_too_deep(path)
            or any(_is_secret(str(one)) for one in self._spellings(path))
            or self._is_out(path, (OWN_FILE,))
        )

    def hides(self, path: Path, *, is_folder: bool = False) -> bool:
        """Whether this file, or everything in this folder, is kept from the model when it completes another file."""
        if _is_secret(str(path)) or _is_too_deep(path) or self._leads_away(path):
            return True
        return self._is_out(path, (".gitignore", OWN_FILE), is_folder=is_folder)

    def _leads_away(self, path: Path) -> bool:
        """Whether a link, here or on the way here, leads out of the workspace or to a secret."""
        root = self._folders.holding(path)
        try:
            target = Path(os.path.realpath(path))
            path.lstat()
        except FileNotFoundError:  # a document that was not saved yet
            pass
        except (OSError, ValueError):  # no file can have this name
            return True
        if root is None:
            return _is_secret(str(target))
        for folder in (root, *self._folders):
            real = self._real_folder(folder)
            if target.is_relative_to(real):
                return _is_secret(str(target.relative_to(real)))
        return True

    def _real_folder(self, folder: Path) -> Path:
        """The folder itself where it was opened by a link."""
        kept = self._real
        real = kept.get(folder)
        if real is None:
            real = kept[folder] = Path(os.path.realpath(folder))
        return real

    def _is_out(self, path: Path, names: tuple[str, ...], *, is_folder: bool = False) -> bool:
        return any(self._is_named(one, names, is_folder) for one in self._spellings(path))

    def _spellings(self, path: Path) -> Iterator[Path]:
        """The path, and where it lies if a link (or `..`) leads there: the rules for that hold, too."""
        yield path
        try:
            target = Path(os.path.realpath(path))
        except (OSError, ValueError):  # no file can have this name
            return
        real = [(folder, self._real_folder(folder)) for folder in self._folders]
        inside = [folder / target.relative_to(its) for folder, its in real if target.is_relative_to(its)]
        yield from (one for one in inside or [target] if one != path)

    def _is_named(self, path: Path, names: tuple[str, ...], is_folder: bool) -> bool:
        """Whether the option, or an ignore file of one of these names, takes the path out."""
        roots = self._folders.all_holding(path)
        for root in roots or [Path(path.anchor)]:
            for parts, folder in _steps(path.relative_to(root).parts, is_folder):
                if verdict(self._option, "/".join(parts), folder):
                    return True
        root = roots[-1] if roots else path.parent
        inside = path.relative_to(root)
        bases = {root, self._real_folder(root)} if roots else {root}  # a folder in a repository may be opened by a link
        return any(self._is_ignored(base / inside, self._top(base), names, is_folder) for base in bases)

    def _is_ignored(self, path: Path, top: Path, names: tuple[str, ...], is_folder: bool) -> bool:
        """Whether an ignore file of one of these names, from the folder `top` down, takes the path out."""
        parts = path.relative_to(top).parts
        read = [dict(self._read(top.joinpath(*parts[:depth]))) for depth in range(len(parts))]
        kinds = [[rules.get(name, ()) for rules in read] for name in names]
        return any(_decide(rules, *step) for rules in kinds if any(rules) for step in _steps(parts, is_folder))

    def _top(self, root: Path) -> Path:
        """The folder from which ignore files count: the one of the repository that the opened folder lies in.

        Without a repository it is the outermost that has a file of ours.
        """
        kept = self._tops
        top = kept.get(root)
        if top is None:
            above = (root, *root.parents)
            top = next((folder for folder in above if _exists(folder / ".git")), None)
            top = top or next((folder for folder in reversed(above) if _exists(folder / OWN_FILE)), root)
            kept[root] = top
        return top

    def _read(self, folder: Path) -> _Rules:
        kept = self._rules
        rules = kept.get(folder)
        if rules is None:
            git = _lines(_exclude_file(folder)) + _lines(folder / ".gitignore")
            rules = ((".gitignore", read_rules(git)), (OWN_FILE, read_rules(_lines(folder / OWN_FILE))))
            if len(kept) >= _LOOK_AGAIN_AFTER:
                kept.clear()
            kept[folder] = rules
        return rules


def _decide(rules: Sequence[tuple[Rule, ...]], parts: tuple[str, ...], is_folder: bool) -> bool:
    """What the ignore files of one kind say, the nearest first; `rules` are those of each folder on the way."""
    for depth in range(len(parts) - 1, -1, -1):
        said = verdict(rules[depth], "/".join(parts[depth:]), is_folder) if rules[depth] else None
        if said is not None:
            return said
    return False


def _steps(parts: tuple[str, ...], is_folder: bool) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The folders on the way to a path, then the path; each with whether it is a folder."""
    for depth in range(1, len(parts) + 1):
        yield parts[:depth], is_folder or depth < len(parts)


def _is_too_deep(path: Path) -> bool:
    return len(path.parts) > MAX_FOLDERS


def _exclude_file(folder: Path) -> Path:
    """Where git keeps a repository's own patterns. A worktree and a submodule have a file that says where `.git` is."""
    git = folder / ".git"
    first = _lines(git)[:1]
    if first and first[0].startswith("gitdir: "):
        git = folder / first[0].removeprefix("gitdir: ").strip()
        common = _lines(git / "commondir")[:1]
        git = git / common[0].strip() if common else git
    return git / "info" / "exclude"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _lines(path: Path) -> list[str]:
    try:
        if not path.is_file():  # a pipe never ends, and a link may lead to what the client writes to us (/dev/stdin)
            return []
        with path.open("rb") as file:
            text = file.read(MAX_IGNORE_BYTES).decode("utf-8-sig", "replace")  # git skips the mark, too
            return text.split("\n")  # as git does: no other line end
    except (OSError, ValueError):
        return []
