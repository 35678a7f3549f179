"""The local face of the store, and the offset log read through it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint import offsets
from penstock.errors import StorageError
from penstock.storage import AlreadyThereError, absolute, is_local, local_path, open_store


def test_what_was_put_is_listed_read_and_deleted(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "a" / "b c"))
    assert store.list() == []
    assert store.get("x/1") is None
    store.put("x/1", b"one")
    store.put("x/1", b"two")
    store.put("x/2", b"")
    assert store.list("x/") == ["x/1", "x/2"]
    assert (store.get("x/1"), store.get("x/2")) == (b"two", b"")
    store.delete("x/1")
    store.delete("x/1")
    assert store.list() == ["x/2"]
    assert store.path("x/2") == f"{tmp_path}/a/b c/x/2"


def test_put_if_absent_lets_one_of_many_win(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    barrier = threading.Barrier(8)
    outcomes: list[str] = []

    def attempt(number: int) -> None:
        barrier.wait()
        try:
            store.put_if_absent("claim", str(number).encode())
            outcomes.append("won")
        except AlreadyThereError:
            outcomes.append("lost")

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost"] * 7 + ["won"]
    assert store.list() == ["claim"]


def test_a_folder_that_can_t_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError) as caught:
        open_store(str(tmp_path / "file" / "ck"))
    assert "can't be created" in caught.value.what
    assert caught.value.why
    assert caught.value.fix


def test_an_object_that_can_t_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a file, not a folder")
    with pytest.raises(StorageError, match="can't write"):
        open_store(str(tmp_path)).put("x/1", b"")


def test_hdfs_says_that_it_is_not_there_yet() -> None:
    with pytest.raises(StorageError, match="HDFS"):
        open_store("hdfs://nn/ck")


@pytest.mark.parametrize(
    ("uri", "local"),
    [("/a", True), ("a/b", True), ("file:/a", True), ("file:///a", True), ("s3a://b/k", False), ("gs://b", False)],
)
def test_local_is_told_from_remote(uri: str, local: bool) -> None:
    assert is_local(uri) is local


def test_a_file_address_is_a_path() -> None:
    assert local_path("file:///a/b%20c") == Path("/a/b c")
    assert local_path("file:/a") == local_path("/a") == Path("/a")
    assert absolute("file:x", folder=Path("/f")) == "/f/x"


METADATA = '{"batchWatermarkMs":1500,"batchTimestampMs":1,"conf":{}}'
WHOLE = f'v1\n{METADATA}\n{{"events":{{"2":7,"0":5}}}}'.encode()


def test_offsets_are_read_with_their_watermark() -> None:
    found = offsets.parse(WHOLE, batch=3, where="offsets/3")
    assert (found.batch, found.version, found.watermark_ms) == (3, "v1", 1500)
    assert found.sources == ('{"events":{"2":7,"0":5}}',)


@pytest.mark.parametrize("line", ["12", "-", '{"logOffset":4}'])
def test_every_kind_of_source_line_is_kept(line: str) -> None:
    assert offsets.parse(f"v1\n{METADATA}\n{line}\n".encode(), batch=0, where="x").sources == (line,)


@pytest.mark.parametrize("line", ['0:{"events":{"0":5}}', 'orders:{"events":{"0":5}}', "0:12"])
def test_a_line_of_version_2_begins_with_its_source(line: str) -> None:
    assert offsets.parse(f"v2\n{METADATA}\n{line}".encode(), batch=0, where="x").sources == (line,)
    if "{" in line:
        with pytest.raises(StorageError):
            offsets.parse(f"v2\n{METADATA}\n{line[:-2]}".encode(), batch=0, where="x")


@given(cut=st.integers(0, len(WHOLE) - 1))
def test_a_torn_file_is_never_taken_for_whole(cut: int) -> None:
    with pytest.raises(StorageError) as caught:
        offsets.parse(WHOLE[:cut], batch=3, where="ck/offsets/3")
    assert "ck/offsets/3" in caught.value.what
    assert caught.value.why
    assert "restore" in caught.value.fix


@pytest.mark.parametrize("data", [b"", b"\x00" * 40, b"v9\n{}\n12", b"v1\n[]\n12", b"v1\n{}\n", b"v1", b"\xff\xfe"])
def test_a_file_that_is_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(StorageError):
        offsets.parse(data, batch=0, where="x")


def test_batches_are_numbers_in_order(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    for name in ("offsets/9", "offsets/10", "offsets/.9.crc", "offsets/.10.tmp", "commits/9"):
        store.put(name, WHOLE)
    assert offsets.batches(store, "offsets") == [9, 10]
    assert offsets.batches(store, "commits") == [9]
    assert offsets.batches(store, "sources") == []
    assert offsets.read(store, 11) is None
    found = offsets.read(store, 10)
    assert found is not None
    assert found.batch == 10
