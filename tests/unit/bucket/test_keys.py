"""The keys of the bucket in a mounted Secret, while others are put in their place."""

import threading
from pathlib import Path

import pytest

from alineod.bucket.keys import VARIABLE, find_directory, read_keys
from alineod.bucket.s3 import S3Bucket, S3Options
from alineod.clock import SystemClock
from tests.support.secrets import mount


def build_keys(number: int) -> dict[str, str]:
    return {"AWS_ACCESS_KEY_ID": f"id-{number}", "AWS_SECRET_ACCESS_KEY": f"secret-{number}\n"}


def test_where_they_are(tmp_path: Path) -> None:
    assert find_directory({}) is None
    assert find_directory({VARIABLE: ""}) is None
    assert find_directory({VARIABLE: str(tmp_path)}) == tmp_path
    assert read_keys(None) == read_keys(tmp_path) == read_keys(tmp_path / "missing") == {}
    mount(tmp_path, {"AWS_ACCESS_KEY_ID": "id"})
    assert read_keys(tmp_path) == {}, "one alone is of no use"


def test_plain_files_serve_too(tmp_path: Path) -> None:
    for name, value in build_keys(1).items():
        (tmp_path / name).write_text(value)
    assert read_keys(tmp_path) == {"AWS_ACCESS_KEY_ID": "id-1", "AWS_SECRET_ACCESS_KEY": "secret-1"}


def test_both_are_of_one_moment(tmp_path: Path) -> None:
    """However fast they change, an id is never read with the secret of another."""
    mount(tmp_path, build_keys(0))
    stopped = threading.Event()

    def change() -> None:
        number = 0
        while not stopped.is_set():
            mount(tmp_path, build_keys(number := number + 1))

    changing = threading.Thread(target=change)
    changing.start()
    try:
        read = [read_keys(tmp_path) for _ in range(500)]
    finally:
        stopped.set()
        changing.join()
    found = [keys for keys in read if keys]
    assert found
    assert len({keys["AWS_ACCESS_KEY_ID"] for keys in found}) > 1
    for keys in found:
        assert keys["AWS_ACCESS_KEY_ID"].removeprefix("id-") == keys["AWS_SECRET_ACCESS_KEY"].removeprefix("secret-")


@pytest.mark.behaviour("11.12")
def test_the_client_signs_with_those_of_the_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "keys"))
    mount(tmp_path / "keys", build_keys(1))
    bucket = S3Bucket(S3Options("b", "http://localhost:1"), SystemClock())
    assert "id-1" in bucket.grant_get("k", 60).url
    mount(tmp_path / "keys", build_keys(2))
    assert "id-2" in bucket.grant_get("k", 60).url
    (tmp_path / "keys" / "..data").unlink()
    assert "id-2" in bucket.grant_get("k", 60).url, "none there for a moment: those of before go on"
