"""The environment, parsed."""

import pytest

from alineod.bridge.prepare import explain_missing
from alineod.bridge.settings import Credential, parse_settings
from alineod.errors import Refused

ENV = {
    "PATH": "/bin",
    "ALINEO_AGENT": "ns/one",
    "ALINEO_INCARNATION": "3",
    "ALINEO_HOME": "/root",
    "ALINEO_WORKSPACE": "/workspace",
    "ALINEO_CONTROL": "/run/alineo",
    "ALINEO_CREDENTIAL_NAMES": '[{"name":"KEY","secret":"model","key":"api-key"}]',
    "ALINEO_HARNESS": '{"type":"Pi","model":{"provider":"openai","id":"m","baseURL":"http://x/v1"}}',
    "ALINEO_SETUP": "echo hi",
}


def test_the_whole_of_it() -> None:
    settings = parse_settings(ENV)
    assert (settings.namespace, settings.incarnation, settings.port) == ("ns", 3, 8790)
    assert settings.harness.model.base_url == "http://x/v1"
    assert settings.credential_names == (Credential("KEY", "model", "api-key"),)
    assert settings.environment == {
        "PATH": "/bin",
        "ALINEO_AGENT": "ns/one",
        "ALINEO_INCARNATION": "3",
        "HOME": "/root",
    }


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ALINEO_AGENT", "", "the variable ALINEO_AGENT is needed"),
        ("ALINEO_HOME", "root", "ALINEO_HOME must be an absolute path, not 'root'"),
        ("ALINEO_CREDENTIAL_NAMES", "[", "ALINEO_CREDENTIAL_NAMES cannot be read"),
        ("ALINEO_HARNESS", '{"model":{"id":1}}', r"ALINEO_HARNESS cannot be read: .*\$.model.id"),
        ("ALINEO_DRAIN_GRACE", "soon", "ALINEO_DRAIN_GRACE cannot be read"),
        ("ALINEO_BRIDGE_LISTEN", "here", "ALINEO_BRIDGE_LISTEN must be host:port"),
    ],
)
def test_what_cannot_be_used_is_named(name: str, value: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        parse_settings({**ENV, name: value})


def test_a_missing_credential_names_secret_and_key() -> None:
    standing = explain_missing("ns", [Credential("KEY", "model", "api-key"), Credential("TWO", "s", "k")])
    assert standing.reason == "CredentialsMissing"
    assert "key api-key of Secret model (for KEY), key k of Secret s (for TWO)" in standing.message
