"""Taking URIs apart. Pure: knows no file and no document, and takes any text that a client may send.

A regular expression does it and not `urlsplit`, which raises for some texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(.*)", re.DOTALL)
_DRIVE = re.compile(r"^(file:///)([A-Za-z]):")


@dataclass(frozen=True, slots=True)
class Uri:
    """The parts of a URI, unquoted. `rest` is what begins with `?` or `#`; `key` names the same thing in all spellings.

    Clients that quote nothing write a path that holds one of these signs as it is, so `path + rest` may be the path.
    """

    scheme: str
    authority: str
    path: str
    rest: str
    key: str


def parse(uri: str) -> Uri:
    """The parts of any text; never raises."""
    found = _PARTS.match(uri)
    scheme, authority, path, rest = found.groups("") if found else ("", "", uri, "")
    key = _DRIVE.sub(lambda drive: f"{drive[1]}{drive[2].lower()}:", unquote(uri))
    return Uri(scheme.lower(), unquote(authority), unquote(path), unquote(rest), key)
