"""Where data are makes no difference: files, parts and URLs give the same episodes."""

import functools
import http.server
import json
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from support.logs import COLUMNS, log_columns, log_episodes
from support.refusals import complaint

from aetdice import InputError, load_dataset
from aetdice.cli import main
from aetdice.data import FORMATS
from aetdice.data.doctor import examine
from aetdice.data.urls import cleaned, is_url, shown, without_secrets
from aetdice.datasets import dataset_of

WRITERS = {
    "csv": lambda table, path: csv.write_csv(table, path),
    "parquet": lambda table, path: parquet.write_table(table, path),
    "feather": lambda table, path: feather.write_feather(table, str(path)),
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AETDICE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write_parts(folder: Path, kind: str, sizes: tuple[int, ...] = (1, 40, 7, 60)) -> Path:
    """The log of `support.logs` in files, whatever episodes they cut."""
    folder.mkdir()
    table = pa.table(log_columns())
    for index, size in enumerate(sizes):
        part = table if index == len(sizes) - 1 else table.slice(0, size)
        table = table.slice(size)
        WRITERS[kind](part, folder / f"part-{index + 8}.{kind}")  # 8, 9, 10, 11
    (folder / "_SUCCESS").touch()
    (folder / f".part-1.{kind}.crc").touch()
    return folder


@pytest.mark.parametrize("kind", WRITERS)
def test_parts_are_one_table_in_the_order_of_their_names(kind, tmp_path):
    folder = write_parts(tmp_path / "log", kind)
    wanted = log_episodes()
    for data in (folder, str(folder / f"part-*.{kind}"), f"file://{folder}"):
        found = load_dataset(data, columns=COLUMNS)
        assert (found.sha256, found.coding, found.ends) == (wanted.sha256, wanted.coding, wanted.ends)
        assert dataset_of(json.loads(json.dumps(found.origin))).sha256 == wanted.sha256


def test_patterns_are_found_again_from_elsewhere(tmp_path, monkeypatch):
    write_parts(tmp_path / "log", "parquet")
    monkeypatch.chdir(tmp_path)
    found = load_dataset("log/*.parquet", columns=COLUMNS)
    monkeypatch.chdir("/")
    assert dataset_of(found.origin).sha256 == found.sha256


def test_columns_that_change_their_type_between_parts_are_what_all_of_them_are(tmp_path):
    (tmp_path / "a.csv").write_text("episode,obs,action,reward\n0,1,2,\n0,2,1,1\n")
    (tmp_path / "b.csv").write_text("action,episode,obs,reward\nx,0,2.5,1\n")
    with pytest.raises(InputError, match=r"a\.csv, line 2: reward column 'reward' is missing"):
        load_dataset(str(tmp_path / "*.csv"))
    (tmp_path / "a.csv").write_text("episode,obs,action,reward\n0,1,2,3\n0,2,1,1\n")
    found = load_dataset(str(tmp_path / "*.csv"))
    assert found.coding.actions == (("1",), ("2",), ("x",))
    np.testing.assert_array_equal(found.observations[:, 0], np.float32([1, 2, 2.5, 2.5]))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"a.csv": "x,y\n1,2\n", "b.csv": "x\n1\n"},
            r"b\.csv has not the columns of .*a\.csv: they differ in y",
        ),
        ({"a.csv": "x,y\n1,2\n", "b.parquet": ""}, r"b\.parquet is parquet, but .*a\.csv csv"),
        ({"a.csv": "x,y\n1,2\n", "b.csv.gz": ""}, r"b\.csv\.gz is compressed"),
        ({"notes.txt": "x"}, "holds no table: none of its files ends in"),
        ({"a.csv.gz": ""}, r"a\.csv\.gz is compressed"),
        ({"a.csv": "x,y\n1,2\n", "b.csv": "x,y\n1\n"}, r"b\.csv, line 2: not a table"),
        ({"a.csv": "x,x\n1,2\n", "b.csv": "x,x\n1,2\n"}, "two columns are called 'x'"),
    ],
)
def test_parts_that_do_not_fit_are_refused(files, message, tmp_path):
    (tmp_path / "log").mkdir()
    for name, text in files.items():
        (tmp_path / "log" / name).write_text(text)
    with pytest.raises(InputError, match=message):
        load_dataset(tmp_path / "log")


def test_a_folder_that_is_called_like_a_table_may_hold_none(tmp_path):
    (tmp_path / "log.parquet" / "day=1").mkdir(parents=True)
    with pytest.raises(InputError, match=r"log\.parquet holds no table: none of its files ends in"):
        load_dataset(tmp_path / "log.parquet")


def test_a_part_that_is_a_link_to_nothing_is_missed(tmp_path):
    folder = write_parts(tmp_path / "log", "parquet")
    (folder / "part-12.parquet").symlink_to("not-fetched")
    for data in (folder, str(folder / "part-*.parquet")):
        with pytest.raises(InputError, match=r"there is no file .*part-12\.parquet, or it is a link"):
            load_dataset(data, columns=COLUMNS)


def test_a_file_that_a_pattern_fits_twice_is_read_once(tmp_path):
    write_parts(tmp_path / "log", "parquet")
    found = load_dataset(str(tmp_path / "**" / "**" / "part-*.parquet"), columns=COLUMNS)
    assert found.sha256 == log_episodes().sha256


def test_messages_name_the_part_and_its_line(tmp_path):
    folder = write_parts(tmp_path / "log", "csv")
    lines = (folder / "part-10.csv").read_text().splitlines()
    (folder / "part-10.csv").write_text(
        "\n".join([*lines[:3], lines[3].replace(".25", ".75x", 1), *lines[4:]])
    )
    with pytest.raises(InputError, match=r"part-10\.csv, line 4.* reward column"):
        load_dataset(folder, columns=COLUMNS)


# URLs.


@pytest.fixture
def memory():
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    return system


def put(system, folder: Path, place: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            system.pipe(f"{place}/{path.relative_to(folder).as_posix()}", path.read_bytes())


@pytest.mark.parametrize("kind", WRITERS)
def test_urls_are_read_as_files_are(kind, memory, tmp_path, monkeypatch):
    put(memory, write_parts(tmp_path / "log", kind), "/bucket/log")
    wanted = log_episodes()
    for url in ("memory://bucket/log", "memory://bucket/log/", f"memory://bucket/log/part-*.{kind}"):
        found = load_dataset(url, columns=COLUMNS)
        assert (found.sha256, found.origin["file"]) == (wanted.sha256, url)
        with monkeypatch.context() as without:
            without.setattr(type(memory), "get_file", None)  # what is in the cache is not fetched
            assert dataset_of(found.origin).sha256 == wanted.sha256
    monkeypatch.setenv("AETDICE_CACHE", "off")
    assert load_dataset(url, columns=COLUMNS).sha256 == wanted.sha256


@pytest.mark.parametrize("name", ["npz", "store"])
def test_whole_arrays_may_be_at_a_url(name, memory, tmp_path):
    log = log_episodes()
    FORMATS[name].write(tmp_path / f"log.{name}", log)
    if name == "store":
        put(memory, tmp_path / "log.store", "/bucket/log")
    else:
        memory.pipe("/bucket/log.npz", (tmp_path / "log.npz").read_bytes())
    for _ in range(2):
        assert load_dataset(f"memory://bucket/log{'' if name == 'store' else '.npz'}").sha256 == log.sha256


def test_files_may_be_called_like_patterns(memory):
    for name in ("a[1].csv", "b.csv?versionId=c1"):
        memory.pipe(f"/logs/{name}", b"episode,obs,action,reward\n0,1,2,3\n")
        assert load_dataset(f"memory://logs/{name}").steps == 1


def test_a_damaged_copy_of_a_store_is_made_again(memory, tmp_path, cache):
    FORMATS["store"].write(tmp_path / "log.store", log_episodes())
    put(memory, tmp_path / "log.store", "/log.store")
    for _ in range(2):
        assert load_dataset("memory://log.store").sha256 == log_episodes().sha256
        (copy,) = cache.rglob("rewards.npy")
        copy.write_bytes(b"")


def test_what_has_changed_is_fetched_again(memory, tmp_path):
    for seed in (0, 1):
        csv.write_csv(pa.table(log_columns(seed=seed)), tmp_path / "log.csv")
        memory.pipe("/log.csv", (tmp_path / "log.csv").read_bytes())
        assert load_dataset("memory://log.csv", columns=COLUMNS).sha256 == log_episodes(seed=seed).sha256


def test_messages_name_the_url(memory, tmp_path):
    memory.pipe("/log.csv", b"episode,obs,action,reward\n0,1,2,x\n")
    with pytest.raises(InputError, match=r"^memory://log\.csv, line 2: reward column 'reward' is 'x'"):
        load_dataset("memory://log.csv")
    memory.pipe("/log.parquet", b"nothing")
    with pytest.raises(InputError, match=r"^memory://.*log\.parquet is not a Parquet file"):
        load_dataset("memory://log.parquet")
    assert examine("memory://log.csv").source == "memory://log.csv"
    with pytest.raises(InputError, match=r"there is no file memory://none\.csv"):
        load_dataset("memory://none.csv")


def test_a_copy_that_is_cut_off_is_not_kept_and_not_tried_twice(memory, monkeypatch, cache):
    memory.pipe("/log.csv", b"episode,obs,action,reward\n0,1,2,3\n")
    tried = []

    def half(self, path, target, **_):
        tried.append(path)
        Path(target).write_bytes(memory.cat(path)[:20])

    with monkeypatch.context() as cut:
        cut.setattr(type(memory), "get_file", half)
        with pytest.raises(InputError, match="came with 20 bytes instead of 34"):
            load_dataset("memory://log.csv")
    assert len(tried) == 1
    assert not list(cache.rglob("*.csv"))
    assert load_dataset("memory://log.csv").steps == 1


@pytest.mark.parametrize("name", ["csv", "store"])
def test_what_a_killed_process_left_of_a_copy_is_deleted(name, memory, tmp_path, monkeypatch, cache):
    FORMATS[name].write(tmp_path / f"log.{name}", log_episodes())
    if name == "store":
        put(memory, tmp_path / "log.store", "/log.store")
    else:
        memory.pipe("/log.csv", (tmp_path / "log.csv").read_bytes())

    def die(self, path, target, **_):
        Path(target).write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        cut.setattr(type(memory), "get_file", die)
        cut.setattr(Path, "unlink", lambda *_, **__: None)
        cut.setattr("shutil.rmtree", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            load_dataset(f"memory://log.{name}")
    assert any(path.is_file() and path.read_bytes() == b"half" for path in cache.rglob("*"))
    assert load_dataset(f"memory://log.{name}").steps == log_episodes().steps
    assert not any(path.is_file() and path.read_bytes() == b"half" for path in cache.rglob("*"))


def test_a_url_takes_what_it_needs(monkeypatch):
    pytest.importorskip("fsspec")
    with pytest.raises(InputError, match=r"s3:// needs another package: .*s3fs"):
        load_dataset("s3://bucket/log.csv")
    with pytest.raises(InputError, match="nothing://x cannot be read: ValueError: Protocol not known"):
        load_dataset("nothing://x")
    for url in ("simplecache::memory://log.csv", "filecache://log.csv", "zip://log.csv", "reference://x"):
        with pytest.raises(InputError, match="wraps or chains file systems"):
            load_dataset(url)
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(InputError, match=r"pip install 'aetdice\[remote\]'"):
        load_dataset("memory://log.csv")


def test_an_interruption_does_not_wait_for_the_files_that_are_coming(memory, monkeypatch):
    for name in "ab":
        memory.pipe(f"/logs/{name}.csv", b"episode,obs,action,reward\n0,1,2,3\n")
    begun, pieces = threading.Event(), []

    def fetch(self, path, target, callback, **_):
        if path.endswith("a.csv"):
            begun.wait(10)
            raise KeyboardInterrupt
        for _ in range(1000):
            pieces.append(path)
            begun.set()
            callback.relative_update(1)
            time.sleep(0.01)

    monkeypatch.setattr(type(memory), "get_file", fetch)
    with pytest.raises(KeyboardInterrupt):
        load_dataset("memory://logs")
    assert 0 < len(pieces) < 500


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path):
    """A folder at a URL."""
    pytest.importorskip("aiohttp")
    (tmp_path / "served").mkdir()
    handler = functools.partial(Quiet, directory=tmp_path / "served")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield tmp_path / "served", f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_web_servers_are_read_without_ranges(served):
    folder, url = served
    write_parts(folder / "log", "parquet")
    for data in (f"{url}/log/", f"{url}/log/part-*.parquet"):
        assert load_dataset(data, columns=COLUMNS).sha256 == log_episodes().sha256
    with pytest.raises(InputError, match=r"there is no file http://127\.0\.0\.1:\d+/none\.csv"):
        load_dataset(f"{url}/none.csv")


@pytest.mark.parametrize("status", [403, 500])
def test_servers_that_refuse_are_not_said_to_have_no_file(status, served, monkeypatch):
    _, url = served
    monkeypatch.setattr(Quiet, "send_head", lambda self: self.send_error(status))
    with pytest.raises(InputError, match=rf"log\.csv cannot be read: ClientResponseError: {status}"):
        load_dataset(f"{url}/log.csv?token=secret")


def test_servers_that_are_not_there_are_not_said_to_have_no_file():
    pytest.importorskip("aiohttp")
    with pytest.raises(InputError, match=r"log\.csv cannot be read: ClientConnectorError: Cannot connect"):
        load_dataset("http://127.0.0.1:9/log.csv")


def test_listed_names_lead_nowhere_else(served, cache):
    folder, url = served
    (folder / "log").mkdir()
    csv.write_csv(pa.table(log_columns()), folder / "log" / "a.csv")
    csv.write_csv(pa.table(log_columns(seed=1)), folder / "b.csv")
    links = [
        "a.csv",
        "../b.csv",
        "../../../etc/x.csv",
        f"{url}/b.csv",
        "a.csv?C=N;O=D",
        "sub/c.csv",
        "..%2fb.csv",
    ]
    (folder / "log" / "index.html").write_text("".join(f'<a href="{link}">x</a>' for link in links))
    assert load_dataset(f"{url}/log/", columns=COLUMNS).sha256 == log_episodes().sha256
    kept = [path for path in cache.rglob("*") if path.is_file() and path.name != ".lock"]
    assert len(kept) == 1
    assert kept[0].suffix == ".csv"


# Secrets.


@pytest.mark.parametrize(
    ("url", "without"),
    [
        ("https://me:pw@host/log.csv", "https://host/log.csv"),
        ("https://ghp_token@host/log.csv", "https://host/log.csv"),
        ("https://host/log.csv?X-Amz-Signature=ab&version=3#x", "https://host/log.csv?version=3"),
        ("https://host/log.csv?id=" + "a" * 65, "https://host/log.csv"),
        ("sftp://me@host/log.csv", "sftp://me@host/log.csv"),
        ("sftp://me:pw@host/log.csv", "sftp://host/log.csv"),
        ("abfs://box@account/log.csv?sig=secret", "abfs://box@account/log.csv"),
        ("github://owner:repository@main/log.csv", "github://owner:repository@main/log.csv"),
        ("memory:///log.csv", "memory:///log.csv"),
        ("s3://bucket/log-?.csv", "s3://bucket/log-?.csv"),
        ("simplecache::https://me:pw@host/log.csv", "simplecache::https://host/log.csv"),
        ("a/file.csv", "a/file.csv"),
    ],
)
def test_urls_are_shown_without_secrets(url, without):
    assert shown(url) == without
    assert shown(without) == without
    assert cleaned(["train", url]) == ["train", without]
    assert without_secrets(f"401 for {url}!", url).startswith(f"401 for {without}".split("?")[0])


def test_secrets_are_not_in_messages_of_others():
    url = "https://me:p%40ss@host/log.csv?token=abc"
    found = without_secrets("user me, password p@ss, p%40ss: https://host/log.csv?token=abc&x=abc", url)
    assert not any(secret in found for secret in ("p@ss", "p%40ss", "abc", "user me"))


@pytest.mark.trains
def test_secrets_are_nowhere_in_a_run(served, tmp_path, capsys, monkeypatch, cache):
    folder, url = served
    csv.write_csv(pa.table(log_columns()), folder / "log.csv")
    secret = url.replace("http://", "http://someone:hunter2@") + "/log.csv?token=hunter3"
    arguments = ["train", secret, "--columns", "actions=send", "rewards=served,waited", "--objective", "esr"]
    arguments += ["--beta", "0.1", "--set", "network.hidden=8", "dual.steps=20", "extraction.steps=20"]
    arguments += ["--out", str(tmp_path / "run")]
    monkeypatch.setattr("sys.argv", ["aetdice", *arguments])
    main(arguments)
    said = "".join(capsys.readouterr())
    said += complaint(capsys, "doctor", secret.replace("log.csv", "none.csv"))
    for path in [*(tmp_path / "run").rglob("*"), *cache.rglob("*")]:
        said += str(path) + (path.read_bytes().decode("latin-1") if path.is_file() else "")
    assert "127.0.0.1" in said
    assert not any(word in said for word in ("hunter2", "hunter3", "someone"))


def test_paths_are_not_urls():
    assert not any(map(is_url, ("log.csv", "C:\\log.csv", "a/b::c", "file:///log.csv", "*.csv")))
