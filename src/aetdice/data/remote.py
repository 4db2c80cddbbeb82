"""Files of other file systems, through fsspec: found, and copied into the cache."""

import hashlib
import json
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from aetdice.data.cache import make_kept
from aetdice.data.store import ARRAYS, MANIFEST, load_episodes
from aetdice.data.urls import WEB, WRAPPERS, shown, suffix_of, without_secrets
from aetdice.errors import InputError
from aetdice.files import write_whole
from aetdice.locking import alone
from aetdice.progress import tell

AT_ONCE = 4
"""Files that are fetched at the same time."""
SILENCE = 60
"""Seconds after which a web server that says nothing is given up."""
MARKS = (
    "etag", "content-md5", "digest", "md5hash", "md5", "sha256", "checksum", "blob_id", "oid", "generation",
    "version_id", "lastmodified", "last-modified", "last_modified", "updated", "mtime", "modified", "created",
)  # fmt: skip
"""What file systems call that by which a file's content is told from another's."""
LOCK = ".lock"
SUFFIX = re.compile(r"\.[a-z0-9]{1,8}")
STORE = (MANIFEST, *(f"{name}.npy" for name in ARRAYS))


class RemoteFile(NamedTuple):
    """One file, as its file system describes it."""

    path: str
    """As the file system calls it."""
    name: str
    """Its URL without secrets."""
    size: int | None
    mark: str | None
    """What changes with the address, of which secrets are hashed, and with the content; None where nothing
    tells."""

    @property
    def suffix(self) -> str:
        """`.parquet`, say; nothing that could lead elsewhere."""
        found = suffix_of(self.name)
        return found if SUFFIX.fullmatch(found) else ""


class Remote:
    """What a URL names: a file, the files of a folder, or those that a pattern fits."""

    def __init__(self, url: str) -> None:
        if "::" in url or url.partition("://")[0].lower() in WRAPPERS:
            raise InputError(
                f"{shown(url)} wraps or chains file systems; give a URL of one that holds the data"
            )
        self.url, self.name = url, shown(url)
        self.system, self.path = self._open()
        self.stopped = Event()
        with self._speaking():
            self.system.invalidate_cache()
            self.files, self.folder = self._find()

    def choose(self, names: Sequence[str]) -> None:
        """Of the files those with these names, in this order."""
        named = {file.name: file for file in self.files}
        if len(named) < len(self.files):
            raise InputError(
                f"{self.name}: some files cannot be told apart by their names; name them one by one"
            )
        self.files = [named[name] for name in names]

    def fetch(self) -> list[Path]:
        """Copies of the files on this machine, those of the cache where they are there already."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            coming = [threads.submit(self._fetched, file) for file in self.files]
            try:
                for done, each in enumerate(as_completed(coming), start=1):
                    each.result()
                    tell("fetching", done, len(coming))
            except BaseException:
                self.stopped.set()
                threads.shutdown(cancel_futures=True)
                raise
        return [each.result() for each in coming]

    def fetch_store(self) -> Path:
        """A copy of the native store in this folder."""
        files = {file.path.rstrip("/").rpartition("/")[2]: file for file in self.files}
        if lost := [name for name in STORE if name not in files]:
            raise InputError(f"{self.name} is not a whole episode store: it has no {lost[0]}")
        marks = [files[name].mark for name in STORE]
        base = self._folder(None if None in marks else self._key(self.name, marks))
        target = base / "store"
        with alone(base / LOCK):
            if not _is_whole(target):
                shutil.rmtree(target, ignore_errors=True)
                _clear(base)
                unfinished = Path(tempfile.mkdtemp(prefix=".", dir=base))
                try:
                    for done, name in enumerate(STORE, start=1):
                        write_whole(unfinished / name, partial(self._copy, files[name]))
                        tell("fetching", done, len(STORE))
                    os.rename(unfinished, target)
                finally:
                    shutil.rmtree(unfinished, ignore_errors=True)
        return target

    def identity(self) -> list[Any] | None:
        """What tells these files from others; None where one of them may change unseen."""
        if any(file.mark is None for file in self.files):
            return None
        return [self._key(file.name, file.mark) for file in self.files]

    # Finding.

    def _open(self) -> tuple[Any, str]:
        try:
            import fsspec
        except ImportError as error:
            raise InputError(f"{self.name} needs fsspec ({error}); pip install 'aetdice[remote]'") from error
        protocol = self.url.partition("://")[0]
        try:
            system, path = fsspec.core.url_to_fs(self.url, **_options(protocol))
        except ImportError as error:
            raise InputError(f"{protocol}:// needs another package: {error}") from error
        except Exception as error:
            raise self._complaint(error) from None
        return system, path

    def _find(self) -> tuple[list[RemoteFile], bool]:
        """The files, and whether they are those of a folder."""
        web = self.url.partition("://")[0].lower() in WEB
        name = self.name.partition("?")[0] if web else self.path
        pattern = re.search(r"[*\[]" if web else r"[*?\[]", name)
        # As on this machine, a file may be called so; s3://…?versionId=… is one.
        if pattern and ("*" in name or not self.system.isfile(self.path)):
            return self._files(self.system.glob(self.path), None), False
        if web:
            folder = name.endswith("/")
        else:
            folder = self.system.isdir(self.path) and not self.system.isfile(self.path)
        if not folder:
            return [self._described(self.path, self.system.info(self.path))._replace(name=self.name)], False
        inside = self.system.ls(self.path, detail=False)
        return self._files(inside, self.path.rstrip("/") + "/"), True

    def _files(self, paths: Sequence[str], folder: str | None) -> list[RemoteFile]:
        """Those that are files, of a folder those in it: a server may list what it likes."""
        found = []
        for path in paths:
            if folder is not None and (not path.startswith(folder) or "/" in path[len(folder) :].strip("/")):
                continue
            if (
                path.endswith("/")
                or path.rpartition("/")[2].startswith((".", "_"))
                or "?" in path[len(folder or path) :]
            ):
                continue
            info = self.system.info(path)
            if info.get("type") == "file":
                found.append(self._described(path, info))
        return found

    def _described(self, path: str, info: Mapping[str, Any]) -> RemoteFile:
        size = info.get("size")
        said = {key.lower(): value for key, value in info.items()}
        marks = [f"{key}={said[key]}" for key in MARKS if said.get(key)]
        name = shown(self.system.unstrip_protocol(path))
        # A mark tells the contents of one address apart, not those of addresses that are shown alike.
        address = hashlib.sha256(path.encode()).hexdigest()
        return RemoteFile(path, name, size, f"{address};{size};{';'.join(marks)}" if marks else None)

    # Fetching.

    def _fetched(self, file: RemoteFile) -> Path:
        base = self._folder(None if file.mark is None else self._key(file.name, file.mark))
        target = base / f"{hashlib.sha256(file.path.encode()).hexdigest()[:12]}{file.suffix}"
        with alone(base / LOCK):
            if not target.exists():
                _clear(base)
                write_whole(target, partial(self._copy, file))
        return target

    def _copy(self, file: RemoteFile, target: Path) -> None:
        """All of a file, a few megabytes of it in memory."""
        free = shutil.disk_usage(target.parent).free
        if file.size is not None and file.size > free:
            raise InputError(
                f"{file.name} has {file.size / 2**20:,.0f} MiB, but there is room for {free / 2**20:,.0f} in "
                f"{target.parent}: make room, or set AETDICE_CACHE to another folder"
            )
        with self._speaking():
            self.system.get_file(file.path, str(target), callback=self._callback())
        if file.size is not None and target.stat().st_size != file.size:
            raise InputError(
                f"{file.name} came with {target.stat().st_size:,} bytes instead of {file.size:,}: it has "
                "changed meanwhile, or was cut off; try again"
            )

    def _callback(self) -> Any:
        """What is called with every piece of a file: an interrupted program does not wait for the others."""
        from fsspec import Callback

        def check(*_: Any, **__: Any) -> None:
            if self.stopped.is_set():
                raise InputError(f"{self.name} was not fetched to its end")

        return Callback(hooks={"check": check})

    def _key(self, name: str, mark: Any) -> str:
        return json.dumps([urlsplit(self.name)[:2], name, mark])

    def _folder(self, key: str | None) -> Path:
        """Where something with this key is kept; without one, for as long as this object lives."""
        folder = None if key is None else make_kept("files", key)
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="aetdice-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    # Speaking.

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """What goes wrong, in a sentence without secrets."""
        try:
            yield
        except InputError:
            raise
        except FileNotFoundError as error:
            # To fsspec a web server that refuses, or is not reached, has not found the file.
            cause = error.__cause__ if self.url.partition("://")[0].lower() in WEB else None
            if isinstance(cause, Exception) and getattr(cause, "status", None) != 404:
                raise self._complaint(cause) from None
            raise InputError(f"there is no file {self.name}") from None
        except Exception as error:  # of whatever package the protocol needs
            raise self._complaint(error) from None

    def _complaint(self, error: Exception) -> InputError:
        words = without_secrets(str(error).strip().partition("\n")[0], self.url)
        return InputError(
            f"{self.name} cannot be read: {type(error).__name__}{f': {words}' if words else ''}"
        )


def _is_whole(store: Path) -> bool:
    """Whether a store is there, as far as sizes tell: a damaged copy is made again."""
    try:
        load_episodes(store, verify=False)
    except InputError:
        return False
    return True


def _clear(folder: Path) -> None:
    """Delete what a process that was killed has left; the lock is held."""
    for left in folder.glob(".*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        elif left.name != LOCK:
            left.unlink(missing_ok=True)


def _options(protocol: str) -> dict[str, Any]:
    """How a file system is opened: a web server may take its time, as long as something comes."""
    if protocol.lower() not in WEB:
        return {}
    from aiohttp import ClientTimeout

    return {"client_kwargs": {"timeout": ClientTimeout(total=None, sock_connect=SILENCE, sock_read=SILENCE)}}
