"""URLs of data: what of them may be written down."""

import re
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qsl, unquote, urlencode

from aetdice.errors import InputError

URL = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
SOME_URL = re.compile(URL.pattern + r"\S+", re.IGNORECASE)
LOCAL = ("file", "local")
WEB = ("http", "https")
WRAPPERS = (
    "async_wrapper",
    "asyncwrapper",
    "blockcache",
    "cached",
    "dask",
    "dir",
    "filecache",
    "generic",
    "libarchive",
    "reference",
    "simplecache",
    "tar",
    "zip",
)
"""Protocols of fsspec that are no place but a way to another one, or that write files of their own."""
HARMLESS = (
    "version", "versionid", "revision", "rev", "id", "file", "filename", "name", "path", "format", "raw",
    "download", "dl",
)  # fmt: skip
"""What a query may say without being a secret."""
LONGEST = 64
"""Of a harmless word's value: what is longer may be a key."""


def is_url(text: str) -> bool:
    """Whether a file system other than this machine's is meant."""
    found = URL.match(text)
    if found is None:
        return "::" in text and URL.search(text) is not None
    return found[1].lower() not in LOCAL


def local_path(text: str) -> str:
    """The path that `file://…` means; others are left as they are."""
    found = URL.match(text)
    return text if found is None or found[1].lower() not in LOCAL else unquote(text[found.end() :])


def shown(url: str) -> str:
    """A URL without what may be a secret: the user's name and password, and most of what a query says."""
    if not is_url(url):
        return url
    if "::" in url:
        return "::".join(map(shown, url.split("::")))
    scheme, user, place, query = _split(url)
    said = urlencode([(name, value) for name, value in _said(query) if _is_harmless(name, value)])
    return f"{scheme}://{user if _is_place(scheme, user) else ''}{place}{'?' if said else ''}{said}"


def without_secrets(text: str, url: str) -> str:
    """A message about a URL, of others' making, without what `shown` leaves out of it."""
    text = text.replace(url, shown(url))
    scheme, user, _, query = _split(url.rpartition("::")[2])
    secrets = [] if _is_place(scheme, user) else [user.rstrip("@"), *user.rstrip("@").split(":")]
    secrets += [value for name, value in _said(query) if not _is_harmless(name, value)]
    for secret in sorted({*secrets, *map(unquote, secrets)}, key=len, reverse=True):
        text = text.replace(secret, "…") if secret else text
    return SOME_URL.sub(lambda found: shown(found[0]), text)


def suffix_of(name: str) -> str:
    """How the name of a file ends, `.parquet` say, be it a path or a URL."""
    return PurePosixPath(_split(name)[2] if is_url(name) else Path(name).name).suffix.lower()


def cleaned(words: list[str]) -> list[str]:
    """The words of a command, URLs among them without secrets."""
    return [SOME_URL.sub(lambda found: shown(found[0]), word) for word in words]


def check_recordable(url: str) -> None:
    """`InputError` where what is written down of a URL would not find the data again."""
    if is_url(url) and shown(url) != url:
        raise InputError(
            f"{shown(url)} is given with credentials, which are not written down and so are not found "
            "again: put them into the environment, where fsspec's file systems look for them"
        )


def _split(url: str) -> tuple[str, str, str, str]:
    """Scheme, user with its sign, host and path, and query, without the fragment of a web address.

    A question mark of other file systems, which patterns may have, begins a query only before a =.
    """
    scheme, _, rest = url.partition("://")
    authority = re.match(r"[^/?#]*", rest)[0]  # type: ignore[index]
    user, sign, host = authority.rpartition("@")
    web = scheme.lower() in WEB
    path, mark, query = rest[len(authority) :].partition("?")
    if web:
        path, query = path.partition("#")[0], query.partition("#")[0]
    elif "=" not in query:
        path, query = path + mark + query, ""
    return scheme, user + sign, host + path, query


def _is_place(scheme: str, user: str) -> bool:
    """abfs://container@account and github://owner:repository@branch are; a web user may be a token."""
    return scheme.lower() == "github" or (scheme.lower() not in WEB and ":" not in user)


def _said(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def _is_harmless(name: str, value: str) -> bool:
    return name.lower() in HARMLESS and len(value) <= LONGEST
