"""From an open document and a cursor to what the engine is asked. Knows which files are never read."""

from __future__ import annotations

import logging
from fnmatch import fnmatch
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from remask.contract.errors import InputError
from remask.contract.messages import MAX_DOCUMENT_BYTES, CompletionRequest, Reason
from remask.grammars import GrammarError, grammar_for_language
from remask.lsp_server.document import Document, Position
from remask.lsp_server.documents import key_of
from remask.lsp_server.options import ServerOptions

log = logging.getLogger(__name__)

EXCLUDED_NAMES = (
    *(".env", ".env.*", ".envrc", "*.env", ".netrc", "_netrc", ".pgpass", ".pypirc", ".npmrc", ".htpasswd"),
    *("*.pem", "*.key", "*.crt", "*.cer", "*.cert", "*.der", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx"),
    *("*.gpg", "*.asc", "*.ppk", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *("secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "credentials", "credentials.json"),
)
"""Names of files that are never completed and never sent, compared without regard to case."""

EXCLUDED_FOLDERS = frozenset({".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker"})


def build_request(document: Document, position: Position, options: ServerOptions) -> CompletionRequest | Reason:
    """What to ask the engine at a position of the document, or the reason not to."""
    if is_excluded(document.uri):
        return Reason.EXCLUDED
    if not _is_known(document.language):
        return Reason.LANGUAGE
    if not document.in_step:
        return Reason.STALE
    prefix, suffix = document.split_at(position)
    if len(prefix) + len(suffix) > MAX_DOCUMENT_BYTES:
        return Reason.TOO_LARGE
    try:
        return CompletionRequest(
            document=key_of(document.uri),
            language=document.language,
            prefix=prefix,
            suffix=suffix,
            max_tokens=options.max_tokens,
            deadline_ms=options.deadline_ms,
        )
    except InputError:
        return Reason.TOO_LARGE  # its bytes are counted there; all else has been checked


def _is_known(language: str) -> bool:
    try:
        return grammar_for_language(language) is not None
    except GrammarError as error:
        log.error("%s", error)
        return False


def is_excluded(uri: str) -> bool:
    """Whether the document is of a kind that holds secrets, or lies in a folder that does."""
    path = PurePosixPath(unquote(urlsplit(uri).path).replace("\\", "/").lower())
    if any(part in EXCLUDED_FOLDERS for part in path.parts):
        return True
    return any(fnmatch(path.name, pattern) for pattern in EXCLUDED_NAMES)
