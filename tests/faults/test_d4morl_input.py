"""Pickles that are broken, of another body, or hostile: one sentence, and nothing runs."""

import contextlib
import io
import os
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.d4morl import trajectory, write

from aetdice.data.d4morl import read_d4morl
from aetdice.data.pickles import iterate_pickle
from aetdice.envs.mujoco import BODIES
from aetdice.errors import InputError

ANT = BODIES["ant"]
EVIL = []


def ran(*arguments):
    EVIL.append(arguments)
    return {}


class Call:
    """Pickles as a call."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def refusal(path, body=ANT):
    """The one error of reading a file; nothing was executed."""
    with pytest.raises(InputError) as refused:
        read_d4morl(path, body)
    assert EVIL == []
    message = str(refused.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


# Hostile files.


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("place", ["list", "item", "key", "value", "array", "after"])
def test_no_call_is_made_wherever_it_stands(tmp_path, place, protocol):
    call = Call(ran, "evil")
    objects = np.array([call, call], dtype=object)
    honest = dict(trajectory(ANT, 2))
    content = {
        "list": call,
        "item": [honest, call],
        "key": [{Call(str, "observations"): 1}],
        "value": [honest | {"actions": call}],
        "array": [honest | {"actions": objects}],
        "after": [honest, honest | {"other": (call,)}],
    }[place]
    refusal(write(tmp_path / "file.pkl", content, protocol))


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (Call(os.system, "touch ran"), "system"),
        (Call(eval, "open('ran', 'w')"), "eval"),
        (Call(exec, "open('ran', 'w')"), "exec"),
        (Call(subprocess.Popen, ["touch", "ran"]), "Popen"),
        (Call(np.load, "evil.npy"), "numpy.load"),
        (Call(np.lib.npyio.NpzFile, "evil.npz"), "NpzFile"),
        (Call(np.testing.measure, "open('ran', 'w')"), "measure"),
        (Call(np.frombuffer, b"1234"), "frombuffer"),
        (Call(getattr, "", "join"), "getattr"),
        (Call(open, "ran", "w"), "open"),
        (Call(io.FileIO, "ran", "w"), "FileIO"),
        (Call(bytearray, 10**12), "bytearray"),
        (Call(np.zeros, 10**12), "numpy.zeros"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_name_outside_the_list_is_refused_and_named(tmp_path, monkeypatch, call, asked, protocol):
    monkeypatch.chdir(tmp_path)
    message = refusal(write(tmp_path / "file.pkl", [{"observations": call}], protocol))
    assert "asks for" in message
    assert asked in message
    assert "nothing in it was executed" in message
    assert not (tmp_path / "ran").exists()


def op(text):
    """A pickle by hand: protocol 4, then the given instructions."""
    return b"\x80\x04" + text + b"."


NAME = b"\x8c\x05numpy\x8c\x07ndarray\x93"
RECONSTRUCT = b"\x8c\x16numpy._core.multiarray\x8c\x0c_reconstruct\x93"
DTYPE = b"\x8c\x05numpy\x8c\x05dtype\x93"
DEFAULTDICT = b"\x8c\x0bcollections\x8c\x0bdefaultdict\x93"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Pname\n", "uses the instruction PERSID"),
        (b"K\x00Q", "uses the instruction BINPERSID"),
        (b"\x82\x01", "uses the instruction EXT1"),
        (b"\x83\x01\x00", "uses the instruction EXT2"),
        (b"(K\x01o", "uses the instruction OBJ"),
        (b"(ios\nsystem\n", "uses the instruction INST"),
        (NAME + b")\x81", "uses the instruction NEWOBJ"),
        (NAME + b")}\x92", "uses the instruction NEWOBJ_EX"),
        (b"\x97", "uses the instruction NEXT_BUFFER"),
        (b"S'text'\n", "uses the instruction STRING"),
        (b"]2", "uses the instruction DUP"),
        (b"\xff", "uses the instruction"),
        (b"cposix\nsystem\n", "asks for 'posix.system'"),
        (b"cnumpy\n__import__\n", "asks for 'numpy.__import__'"),
        (b"\x8c\x05numpy\x8c\x0cf2py.os.path\x93", "asks for 'numpy.f2py.os.path'"),
        (b"K\x01K\x02\x93", "asks for a name that is not a string"),
        (NAME + b")R", "makes a call that no array needs"),
        (RECONSTRUCT + NAME + b"K\x07\x85C\x01b\x87R", "makes a call that no array needs"),
        (RECONSTRUCT + DTYPE + b"K\x00\x85C\x01b\x87R", "makes a call that no array needs"),
        (DEFAULTDICT + RECONSTRUCT + b"\x85R", "makes a call that no array needs"),
        (DTYPE + b"\x8c\x01O\x89\x88\x87R", "an array of something other than numbers"),
        (DTYPE + b"\x8c\x02O8\x89\x88\x87R", "an array of something other than numbers"),
        (DTYPE + b"\x8c\x02V8\x89\x88\x87R", "an array of something other than numbers"),
        (b"}}b", "completes something that is not an array"),
        (b"]}b", "completes something that is not an array"),
        (b"h\x00", "refers to entry 0"),
        (b"N", "is not a list of trajectories"),
        (b"]", "is not a list of trajectories"),
        (b"}", "is not a list of trajectories"),
        (b"]]", "holds a list inside the list"),
        (b"]Na", "holds an item that is not a dict"),
        (b"](NNe", "holds an item that is not a dict"),
        (b"]}K\x01K\x02s", "has a key that is not a string"),
        (b"]K\x01K\x02K\x03s", "not a dict"),
        (b"]}(\x8c\x01aua", "is not a pickled list of dicts of arrays"),
        (b"t", "is not a pickled list of dicts of arrays"),
        (b"\x87", "is not a pickled list of dicts of arrays"),
        (b"R", "is not a pickled list of dicts of arrays"),
        (b"\x8c\x01\xff", "is not a pickled list of dicts of arrays"),
    ],
)
def test_instructions_that_no_honest_file_has(tmp_path, content, message):
    path = tmp_path / "file.pkl"
    path.write_bytes(op(content))
    assert message in refusal(path)


@pytest.mark.parametrize(
    "content",
    [
        b"B" + struct.pack("<I", 2**32 - 1),
        b"\x8e" + struct.pack("<Q", 2**63),
        b"\x96" + struct.pack("<Q", 2**40),
        b"X" + struct.pack("<I", 2**31),
        b"\x8d" + struct.pack("<Q", 2**50),
    ],
)
def test_announced_sizes_are_not_believed(tmp_path, content):
    path = tmp_path / "file.pkl"
    path.write_bytes(op(b"]" + content + b"short"))
    assert "ends too early: it announces" in refusal(path)


@pytest.mark.parametrize(
    "content",
    [b"(" * 100_000, b"N" * 100_000, b"]" + b"}\x8c\x01a" * 50_000, b"]" + b"(" * 100 + b"e" * 100],
    ids=["marks", "values", "dicts", "closed marks"],
)
def test_depth_is_bounded(tmp_path, content):
    path = tmp_path / "file.pkl"
    path.write_bytes(op(content))
    assert "is nested too deeply" in refusal(path)


@pytest.mark.parametrize("place", ["value", "shape", "type", "state"])
def test_deeply_nested_tuples_are_harmless(tmp_path, place, without_type_checks):
    """Hashing, printing or comparing one would exhaust the stack."""
    deep = b")" + b"\x85" * 200_000
    content = {
        "value": b"]}\x8c\x01a" + deep + b"sa",
        "shape": b"]}\x8c\x01a" + RECONSTRUCT + NAME + deep + b"C\x01b\x87Rsa",
        "type": b"]}\x8c\x01a" + DTYPE + deep + b"\x89\x88\x87Rsa",
        "state": b"]}\x8c\x01a" + RECONSTRUCT + NAME + b"K\x00\x85C\x01b\x87R" + deep + b"bsa",
    }[place]
    path = tmp_path / "file.pkl"
    path.write_bytes(op(content))
    refusal(path)


def test_trajectory_cannot_be_changed_after_it_was_handed_over(tmp_path):
    path = tmp_path / "file.pkl"
    path.write_bytes(op(b"](}\x8c\x01aNs\x8c\x01bNse"))
    items = iterate_pickle(path)
    assert next(items) == {"a": None}
    with pytest.raises(InputError, match="sets entries of something that is not a dict"):
        next(items)


def test_reader_imports_nothing_for_a_file(tmp_path):
    path = tmp_path / "file.pkl"
    path.write_bytes(op(b"c" + b"this\ns\n"))
    assert "asks for 'this.s'" in refusal(path)
    assert "this" not in sys.modules


def test_arrays_shared_between_trajectories_are_refused(tmp_path):
    first, second = trajectory(ANT, 3), trajectory(ANT, 3, seed=1)
    second["actions"] = first["actions"]
    message = refusal(write(tmp_path / "file.pkl", [first, second]))
    assert "refers to entry" in message
    assert "of an earlier item" in message


# Broken files.


def test_file_cut_anywhere_ends_too_early(tmp_path, without_type_checks):
    whole = pickle.dumps([trajectory(BODIES["swimmer"], 2, seed=i) for i in range(2)], protocol=4)
    path = tmp_path / "file.pkl"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert "ends too early" in refusal(path, BODIES["swimmer"])


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_changed_byte_is_read_or_refused(tmp_path_factory, place, change):
    """A changed number may pass for data; anything else is one error."""
    whole = bytearray(pickle.dumps([trajectory(BODIES["swimmer"], 3)], protocol=4))
    whole[place % len(whole)] ^= change
    path = tmp_path_factory.mktemp("files") / "file.pkl"
    path.write_bytes(whole)
    with contextlib.suppress(InputError):
        assert read_d4morl(path, BODIES["swimmer"]).steps == 3


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("files") / "file.pkl"
    path.write_bytes(content)
    refusal(path)


def test_missing_file_is_named(tmp_path):
    assert "cannot be read: No such file" in refusal(tmp_path / "nowhere.pkl")
    assert "cannot be read: Is a directory" in refusal(tmp_path)


# Files of something else.


def changed(**parts):
    return [trajectory(ANT, 3), dict(trajectory(ANT, 3)) | parts]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            [trajectory(BODIES["walker2d"], 3)],
            "trajectory 0: observations have shape (3, 17), but the ant needs (3, 27); "
            "is this the file of another body?",
        ),
        (changed(actions=np.zeros((3, 6))), "trajectory 1: actions have shape (3, 6)"),
        (changed(actions=np.zeros((2, 8))), "trajectory 1: actions have shape (2, 8)"),
        (changed(raw_rewards=np.zeros((3, 3))), "trajectory 1: raw_rewards have shape (3, 3)"),
        (changed(raw_rewards=np.zeros(3)), "trajectory 1: "),
        (changed(raw_rewards=np.array(1.0)), "trajectory 1: "),
        (changed(terminals=np.zeros((3, 1))), "trajectory 1: terminals have shape (3, 1)"),
        (changed(terminals=np.array([True, False, True])), "it goes on after the terminal step 0"),
        (changed(next_observations=np.zeros((3, 27))), "a next observation is not the observation of the"),
        (changed(actions="none"), "its 'actions' is not an array"),
        ([{"states": np.zeros(3)}], "trajectory 0: it has no 'observations', only 'states'"),
        ([trajectory(ANT, 501)], "trajectory 0: it has 501 steps, but episodes have 1 to 500"),
    ],
)
def test_trajectory_that_does_not_fit_is_refused_with_its_number(tmp_path, content, message):
    assert message in refusal(write(tmp_path / "file.pkl", content))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_values_that_are_not_finite_in_float32_are_refused(tmp_path, value):
    spoilt = trajectory(ANT, 3)
    spoilt["observations"][1, 4] = spoilt["next_observations"][0, 4] = value
    path = write(tmp_path / "file.pkl", [trajectory(ANT, 3), spoilt])
    with pytest.raises(InputError, match="observations must be finite, but episode 1, step 1, column 4"):
        read_d4morl(path, ANT)


def test_no_trajectories_and_no_limit_are_refused(tmp_path):
    assert "is not a list of trajectories" in refusal(write(tmp_path / "file.pkl", []))
    with pytest.raises(InputError, match="at least one trajectory is needed, not 0"):
        read_d4morl(write(tmp_path / "other.pkl", [trajectory(ANT, 1)]), ANT, limit=0)
