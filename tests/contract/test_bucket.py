"""One suite for every implementation of the bucket port; what only a real store can show runs on SeaweedFS alone."""

import base64
import hashlib
import http.client
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from moto.server import ThreadedMotoServer

from alineod.bucket.port import Bucket, Content, StoredObject
from alineod.bucket.s3 import S3Bucket, S3Options
from alineod.clock import SystemClock
from alineod.errors import Conflict, Denied, NotFound, Refused, Unavailable
from alineod.wire.turns import Grant
from tests.support.memory_bucket import MemoryBucket
from tests.support.seaweed import Seaweed, running_seaweed

NAME = "alineo"


@pytest.fixture(scope="module")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    with running_seaweed(tmp_path_factory.mktemp("seaweed"), NAME) as store:
        yield store


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Sets the keys that the client's own chain finds."""

    def use(access: str, secret: str) -> None:
        for name, value in (("AWS_ACCESS_KEY_ID", access), ("AWS_SECRET_ACCESS_KEY", secret)):
            monkeypatch.setenv(name, value)

    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CA_BUNDLE", "/no/such/bundle")  # must not matter
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return use


@pytest.fixture(params=["memory", "moto", "seaweed", "unconditional"])
def bucket(request: pytest.FixtureRequest, keys: Callable[[str, str], None]) -> Bucket:
    if request.param == "memory":
        return MemoryBucket()
    if request.param == "moto":
        keys("any", "any")
        endpoint = request.getfixturevalue("moto")
        made = S3Bucket(S3Options(NAME, endpoint), SystemClock())
        made._client.create_bucket(Bucket=NAME)  # only a test makes buckets
        return made
    store: Seaweed = request.getfixturevalue("seaweed")
    if request.param == "unconditional":
        build_real(store, keys)
        return S3Bucket(S3Options(NAME, store.endpoint, conditional=False), SystemClock())
    return build_real(store, keys)


@pytest.fixture
def real(seaweed: Seaweed, keys: Callable[[str, str], None]) -> S3Bucket:
    return build_real(seaweed, keys)


def build_real(seaweed: Seaweed, keys: Callable[[str, str], None]) -> S3Bucket:
    keys(seaweed.env["AWS_ACCESS_KEY_ID"], seaweed.env["AWS_SECRET_ACCESS_KEY"])
    return S3Bucket(S3Options(NAME, seaweed.endpoint), SystemClock())


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    return f"{request.node.name}/"


def test_written_objects_are_read(bucket: Bucket, prefix: str) -> None:
    assert bucket.head(prefix + "a") is None
    assert bucket.get(prefix + "a") is None
    etag = bucket.put(prefix + "a", b"hello")
    assert etag == hashlib.md5(b"hello").hexdigest()
    assert bucket.get(prefix + "a") == Content(b"hello", etag)
    found = bucket.head(prefix + "a")
    assert found is not None
    assert (found.key, found.size, found.etag) == (prefix + "a", 5, etag)
    assert abs(datetime.now(UTC) - found.modified) < timedelta(minutes=1)


def test_a_write_replaces(bucket: Bucket, prefix: str) -> None:
    bucket.put(prefix + "a", b"1")
    etag = bucket.put(prefix + "a", b"22")
    assert bucket.get(prefix + "a") == Content(b"22", etag)


def test_only_where_there_is_none(bucket: Bucket, prefix: str) -> None:
    bucket.put(prefix + "a", b"1", if_absent=True)
    with pytest.raises(Conflict, match="PreconditionFailed"):
        bucket.put(prefix + "a", b"2", if_absent=True)
    found = bucket.get(prefix + "a")
    assert found is not None
    assert found.body == b"1"


def test_compare_and_swap(bucket: Bucket, prefix: str) -> None:
    first = bucket.put(prefix + "a", b"1")
    second = bucket.put(prefix + "a", b"2", if_match=first)
    with pytest.raises(Conflict, match="PreconditionFailed"):
        bucket.put(prefix + "a", b"3", if_match=first)
    assert bucket.get(prefix + "a") == Content(b"2", second)


def test_a_swap_needs_something_there(bucket: Bucket, prefix: str) -> None:
    with pytest.raises(Conflict, match="PreconditionFailed"):
        bucket.put(prefix + "none", b"1", if_match="0" * 32)
    assert bucket.head(prefix + "none") is None


def test_of_many_writers_one_wins(bucket: Bucket, prefix: str, request: pytest.FixtureRequest) -> None:
    if "unconditional" in request.node.name:
        return  # the one thing that such a store cannot give

    def write(number: int) -> bool:
        try:
            bucket.put(prefix + "a", b"%d" % number, if_absent=True)
        except (Conflict, Unavailable):
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(write, range(12))) == 1


def test_an_object_becomes_a_file(bucket: Bucket, prefix: str, tmp_path: Path) -> None:
    body = bytes(range(256)) * 80000  # more than one part
    bucket.put(prefix + "a", body)
    bucket.download(prefix + "a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == body
    with pytest.raises(NotFound, match="ObjectNotFound"):
        bucket.download(prefix + "none", tmp_path / "none")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_delete_twice(bucket: Bucket, prefix: str) -> None:
    bucket.put(prefix + "a", b"1")
    bucket.delete(prefix + "a")
    bucket.delete(prefix + "a")
    assert bucket.head(prefix + "a") is None


def test_list_is_by_prefix_and_in_order(bucket: Bucket, prefix: str) -> None:
    for name in ("b/2", "a", "b/1", "c"):
        bucket.put(prefix + name, name.encode())
    assert [found.key for found in bucket.list(prefix + "b/")] == [prefix + "b/1", prefix + "b/2"]
    found: list[StoredObject] = list(bucket.list(prefix))
    assert [one.key for one in found] == [prefix + name for name in ("a", "b/1", "b/2", "c")]
    assert [one.size for one in found] == [1, 3, 3, 1]
    assert found[0].etag == hashlib.md5(b"a").hexdigest()
    assert abs(datetime.now(UTC) - found[0].modified) < timedelta(minutes=1)
    assert list(bucket.list(prefix + "nothing")) == []


def test_odd_keys(bucket: Bucket, prefix: str) -> None:
    key = prefix + "a b+c&d=é%20"
    bucket.put(key, b"1")
    assert bucket.get(key) is not None
    assert [found.key for found in bucket.list(prefix)] == [key]


def test_the_probe_leaves_nothing(bucket: Bucket, prefix: str) -> None:
    bucket.put(prefix + "probe", b"left by one that died")
    bucket.probe(prefix + "probe")
    assert list(bucket.list(prefix)) == []


def test_grants_say_what_they_are(bucket: Bucket, request: pytest.FixtureRequest) -> None:
    before = time.time()
    put, get = bucket.grant_put("k", 60), bucket.grant_get("k", 60)
    condition = {} if "unconditional" in request.node.name else {"If-None-Match": "*"}
    assert (put.method, put.key, put.headers) == ("PUT", "k", condition)
    assert (get.method, get.key, get.headers) == ("GET", "k", {})
    assert before + 59 <= put.expires_at <= time.time() + 60


# What only a real store shows.


def spend(grant: Grant, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    """Use a grant as a sandbox does: no library, no key."""
    url = urlsplit(grant.url)
    connection = http.client.HTTPConnection(url.netloc, timeout=30)
    connection.request(grant.method, f"{url.path}?{url.query}", body, {**grant.headers, **headers})
    answer = connection.getresponse()
    try:
        return answer.status, answer.read()
    finally:
        connection.close()


def compute_md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body).digest()).decode()


def test_list_goes_over_pages(real: S3Bucket, prefix: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: real.put(f"{prefix}{number:04d}", b""), range(1003)))
    assert [found.key for found in real.list(prefix)] == [f"{prefix}{number:04d}" for number in range(1003)]


@pytest.mark.behaviour("4.10")
def test_a_grant_writes_one_object_once(real: S3Bucket, prefix: str) -> None:
    body = bytes(range(256)) * 20000
    grant = real.grant_put(prefix + "a", 60)
    assert spend(grant, body, **{"Content-MD5": compute_md5(body)})[0] == 200
    found = real.head(prefix + "a")
    assert found is not None
    assert (found.size, found.etag) == (len(body), hashlib.md5(body).hexdigest())
    assert spend(grant, b"other")[0] == 412
    assert spend(real.grant_get(prefix + "a", 60)) == (200, body)


@pytest.mark.behaviour("4.10", "4.12")
def test_a_grant_is_for_its_object_and_method(real: S3Bucket, prefix: str) -> None:
    grant = real.grant_put(prefix + "a", 60)
    elsewhere = Grant(method="PUT", url=grant.url.replace("/a?", "/b?"), headers=grant.headers)
    reading = Grant(method="GET", url=grant.url, headers=grant.headers)
    unconditional = Grant(method="PUT", url=grant.url)
    for misused in (elsewhere, reading, unconditional):
        assert spend(misused, b"x")[0] == 403
    assert list(real.list(prefix)) == []


def test_a_grant_ends(real: S3Bucket, prefix: str) -> None:
    grant = real.grant_put(prefix + "a", 1)
    time.sleep(2.1)
    assert spend(grant, b"x")[0] == 403


def test_a_body_that_was_damaged_on_its_way_is_refused(real: S3Bucket, prefix: str) -> None:
    grant = real.grant_put(prefix + "a", 60)
    assert spend(grant, b"xx", **{"Content-MD5": compute_md5(b"yy")})[0] == 400
    assert real.head(prefix + "a") is None


def test_wrong_keys(seaweed: Seaweed, keys: Callable[[str, str], None]) -> None:
    for access, secret in (("nobody", "x"), (seaweed.env["AWS_ACCESS_KEY_ID"], "wrong")):
        keys(access, secret)
        wrong = S3Bucket(S3Options(NAME, seaweed.endpoint), SystemClock())
        with pytest.raises(Denied, match=r"BucketAccessDenied: bucket 'alineo' at http.* refuses the keys") as caught:
            wrong.probe("probe")
        assert "check the access key" in caught.value.message
        with pytest.raises(Denied):
            wrong.head("a")


def test_no_keys(seaweed: Seaweed, keys: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/no/such/file")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/no/such/file")
    none = S3Bucket(S3Options(NAME, seaweed.endpoint), SystemClock())
    with pytest.raises(Denied, match="no complete access key was found"):
        none.probe("probe")
    with pytest.raises(Denied, match="no complete access key was found"):
        none.grant_put("a", 60)


def test_no_bucket(seaweed: Seaweed, real: S3Bucket) -> None:
    none = S3Bucket(S3Options("absent", seaweed.endpoint), SystemClock())
    for act in (
        lambda: none.probe("p"),
        lambda: none.put("a", b""),
        lambda: list(none.list("")),
        lambda: none.get("a"),
    ):
        with pytest.raises(NotFound, match=r"BucketNotFound: bucket 'absent' at http.* does not exist; create it"):
            act()


def test_nobody_answers(real: S3Bucket, tmp_path: Path) -> None:
    away = S3Bucket(S3Options(NAME, "http://127.0.0.1:9", connect_timeout=1), SystemClock())
    with pytest.raises(Unavailable, match=r"BucketUnreachable: .* at http://127.0.0.1:9 cannot be reached"):
        away.probe("p")
    broken = S3Bucket(S3Options(NAME, "https://127.0.0.1:9", ca_file=str(tmp_path / "ca.pem")), SystemClock())
    with pytest.raises(Unavailable, match="BucketUnreachable"):
        broken.head("p")


class Careless(MemoryBucket):
    """A store that takes conditional writes and ignores the condition."""

    ignores: tuple[str, ...] = ()

    def put(self, key: str, body: bytes, *, if_match: str | None = None, if_absent: bool = False) -> str:
        if_match = None if "if_match" in self.ignores else if_match
        return super().put(key, body, if_match=if_match, if_absent=if_absent and "if_absent" not in self.ignores)


@pytest.mark.behaviour("9.10")
@pytest.mark.parametrize("ignores", [("if_absent", "if_match"), ("if_absent",), ("if_match",)])
def test_ignored_conditions_are_found(ignores: tuple[str, ...]) -> None:
    careless = Careless()
    careless.ignores = ignores
    with pytest.raises(Refused, match="ConditionalWritesIgnored: the bucket accepts a write whose condition"):
        careless.probe("p")
    assert list(careless.list("")) == []
