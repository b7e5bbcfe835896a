"""The environment as settings, and the sentence for each wrong variable."""

from pathlib import Path

import pytest

from alineod.errors import Refused
from alineod.settings import BucketSettings, Fencing, LogFormat, PullPolicy, parse_seconds, parse_settings

LEAST = {
    "ALINEOD_INSTANCE": "alineod",
    "ALINEOD_NAMESPACE": "alineod-system",
    "ALINEOD_POD_NAME": "alineod-0",
    "ALINEOD_POD_UID": "uid",
    "ALINEOD_SERVICE_URL": "http://alineod.alineod-system.svc:8080/",
    "ALINEOD_IMAGE_SANDBOX": "sandbox:1",
    "ALINEOD_IMAGE_AGENT": "agent:1",
}


def test_the_least_is_enough() -> None:
    settings = parse_settings(LEAST)
    assert settings.service_url == "http://alineod.alineod-system.svc:8080"
    assert settings.watch_namespaces == ()
    assert settings.bucket is None
    assert (settings.images.pull_policy, settings.images.pull_secrets) == (PullPolicy.IF_NOT_PRESENT, ())
    assert (settings.checkpoints.keep, settings.checkpoints.remote_min_age) == (3, 600)
    assert (settings.rehydrate_concurrency, settings.ledger_dir) == (8, Path("/var/lib/alineod"))
    assert settings.log_format is LogFormat.TEXT
    assert dict(settings.sandbox_defaults) == {}


def test_everything_can_be_said() -> None:
    more = {
        "ALINEOD_WATCH_NAMESPACES": "research, drafts,research",
        "ALINEOD_IMAGE_PULL_POLICY": "Always",
        "ALINEOD_IMAGE_PULL_SECRETS": "one,two",
        "ALINEOD_BUCKET_NAME": "swarms",
        "ALINEOD_BUCKET_PREFIX": "/team/a/",
        "ALINEOD_BUCKET_ENDPOINT": "http://seaweedfs:8333",
        "ALINEOD_BUCKET_REGION": "eu-north-1",
        "ALINEOD_BUCKET_FENCING": "LeaseOnly",
        "ALINEOD_CHECKPOINTS_KEEP": "5",
        "ALINEOD_CHECKPOINTS_REMOTE_MIN_AGE": "1h30m",
        "ALINEOD_REHYDRATE_CONCURRENCY": "2",
        "ALINEOD_LEDGER_DIR": "/data",
        "ALINEOD_SANDBOX_DEFAULTS": '{"tolerations": [{"key": "agents"}]}',
        "ALINEOD_LOG_FORMAT": "json",
    }
    settings = parse_settings({**LEAST, **more})
    assert settings.watch_namespaces == ("research", "drafts")
    assert settings.images.pull_secrets == ("one", "two")
    assert settings.bucket == BucketSettings(
        "swarms", "team/a", "http://seaweedfs:8333", "eu-north-1", Fencing.LEASE_ONLY
    )
    assert (settings.checkpoints.keep, settings.checkpoints.remote_min_age) == (5, 5400)
    assert settings.sandbox_defaults["tolerations"] == [{"key": "agents"}]


@pytest.mark.parametrize("name", LEAST)
@pytest.mark.parametrize("value", [None, "", "  "])
def test_what_is_missing_is_named(name: str, value: str | None) -> None:
    env = {**LEAST, name: value} if value is not None else {k: v for k, v in LEAST.items() if k != name}
    with pytest.raises(Refused) as caught:
        parse_settings({key: text for key, text in env.items() if text is not None})
    assert (caught.value.reason, caught.value.message) == ("InvalidSetting", f"{name} must be set.")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("INSTANCE", "Big_Name", "at most 63 lower-case letters"),
        ("INSTANCE", "a" * 64, "at most 63 lower-case letters"),
        ("WATCH_NAMESPACES", "good,Bad", "a comma-separated list of namespaces"),
        ("SERVICE_URL", "alineod:8080", "must be a URL"),
        ("BUCKET_ENDPOINT", "seaweedfs:8333", "must be a URL"),
        ("IMAGE_PULL_POLICY", "Sometimes", "must be one of Always, IfNotPresent, Never"),
        ("CHECKPOINTS_KEEP", "0", "a whole number of at least 1"),
        ("CHECKPOINTS_KEEP", "three", "a whole number of at least 1"),
        ("CHECKPOINTS_REMOTE_MIN_AGE", "10 minutes", 'a duration such as "90s"'),
        ("REHYDRATE_CONCURRENCY", "-1", "a whole number of at least 1"),
        ("LEDGER_DIR", "data", "must be an absolute path"),
        ("SANDBOX_DEFAULTS", "[]", "must be a JSON object"),
        ("SANDBOX_DEFAULTS", "{", "must be a JSON object"),
        ("LOG_FORMAT", "xml", "must be one of text, json"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_write(name: str, value: str, words: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_settings({**LEAST, f"ALINEOD_{name}": value})
    message = caught.value.message
    assert message.startswith(f"ALINEOD_{name} ")
    assert words in message
    assert repr(value) in message


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(Refused) as caught:
        parse_settings({**LEAST, "ALINEOD_INSTANCE": "", "ALINEOD_LOG_FORMAT": "xml", "ALINEOD_LEDGER_DIR": "x"})
    assert caught.value.message.count("ALINEOD_") == 3


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), ("1h1m1s", 3661), ("0s", 0)]
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "1.5h", "-1s", "1s1m", "٣s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_seconds(text)
