"""File names that are URLs, and which parts of them may be shown."""

from __future__ import annotations

import os
import re
from typing import Any, Final
from urllib.parse import urlsplit

from workbench.errors import InvalidArgumentError
from workbench.io.storage import path_text

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class Url(str):
    """The URL of a file. As text, it has no query, because that may hold a signature; `target` is the whole URL."""

    __slots__ = ()

    @property
    def target(self) -> str:
        """The whole URL."""
        return str.__str__(self)

    def __str__(self) -> str:
        return shown(self.target)

    def __repr__(self) -> str:
        return repr(shown(self.target))

    def __format__(self, spec: str) -> str:
        return format(shown(self.target), spec)


def below(folder: Url, name: str) -> Url:
    """The URL of something in a folder, with the folder's query."""
    parts = urlsplit(folder.target)
    return Url(parts._replace(path=f"{parts.path.rstrip('/')}/{name}" if name else parts.path).geturl())


def is_url(name: str) -> bool:
    """Whether a file's name is a URL."""
    return _URL.match(name) is not None


def file_name(name: str | bytes | os.PathLike[str]) -> str:
    """The name of a file as text, a `Url` if it is one.

    Raises:
      TypeError: if it is not a name.
      InvalidArgumentError: if a URL holds a password or key, which everybody who sees the name would see.
    """
    text = path_text(name)
    if not is_url(text):
        return text
    if "@" in urlsplit(text).netloc:
        raise InvalidArgumentError(
            f"the URL {shown(text)!r} holds a user name or key before its host; leave it out, and put it where fsspec "
            "finds it: in ~/.config/fsspec, or in the environment as the storage's own tools expect it"
        )
    return Url(text)


def shown(name: str) -> str:
    """A file's name for display: a URL without key, query and fragment."""
    if not is_url(name):
        return name
    text = "".join(name)
    parts = urlsplit(text)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def without_secrets(text: Any, url: str) -> str:
    """A library's message about a URL, without the parts that may not be shown."""
    target = "".join(url)
    said = " ".join(str(text).split()).replace(target, shown(target))
    parts = urlsplit(target)
    for secret in (parts.query, parts.fragment, parts.netloc.rpartition("@")[0]):
        if secret:
            said = said.replace(secret, "...")
    return said[:300]
