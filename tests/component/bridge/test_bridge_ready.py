"""What must be so before a turn may start, and what a person reads while it is not."""

import json
from collections.abc import Callable

import pytest

from tests.component.bridge.bridge_rig import Bridge, ScriptedModel, script, until


def reason(bridge: Bridge, wanted: str) -> str:
    """Wait until the bridge is not ready for that reason; returns its sentence."""
    until(f"the reason {wanted}", lambda: bridge.state().get("reason") == wanted)
    health = bridge.client.get("/healthz")
    assert (health.status_code, health.json()["reason"]) == (503, wanted)
    refused = bridge.post_turn(9, "too early")
    assert (refused.status_code, refused.json()["reason"]) == (503, wanted)
    assert bridge.state()["ready"] is False
    return str(bridge.state()["message"])


def test_a_missing_credential_is_named_and_may_come_later(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge()
    key = bridge.credentials / "MODEL_KEY"
    key.unlink()
    bridge.start(ready=False)
    message = reason(bridge, "CredentialsMissing")
    assert "key api-key of Secret model (for MODEL_KEY)" in message
    assert "namespace research" in message
    key.write_text("sk-right")
    until("it to be ready", lambda: bridge.state()["ready"])
    assert bridge.turn(1, "now")["state"] == "clean"
    key.unlink()
    reason(bridge, "CredentialsMissing")


@pytest.mark.behaviour("3.15")
def test_setup_runs_once_an_incarnation_before_the_harness(make_bridge: Callable[..., Bridge]) -> None:
    script = 'echo "$ALINEO_INCARNATION $MODEL_KEY" >> "$HOME/setup-ran"; sleep 1000 &'
    bridge = make_bridge(ALINEO_SETUP=script).start()
    bridge.kill()
    bridge.start()
    assert (bridge.home / "setup-ran").read_text() == "2 sk-right\n"
    bridge.kill()
    bridge.environment["ALINEO_INCARNATION"] = "3"
    bridge.start()
    assert (bridge.home / "setup-ran").read_text() == "2 sk-right\n3 sk-right\n"


@pytest.mark.behaviour("3.15")
def test_a_setup_that_fails_is_told_by_its_last_lines(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge(ALINEO_SETUP="echo fetching\necho no such package: leftpad >&2\nexit 42\n").start(ready=False)
    message = reason(bridge, "SetupFailed")
    assert "exit code 42" in message
    assert "fetching\nno such package: leftpad" in message
    bridge.kill()
    bridge.start(ready=False)  # it is not run again: its failure stands
    assert "exit code 42" in reason(bridge, "SetupFailed")


def test_setup_may_name_its_interpreter(make_bridge: Callable[..., Bridge]) -> None:
    script = "#!/usr/bin/env python3\nimport pathlib\npathlib.Path('by-python').touch()\n"
    bridge = make_bridge(ALINEO_SETUP=script).start()
    assert (bridge.workspace / "by-python").exists()


def test_a_harness_that_is_not_built_yet_is_said_to_be_so(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge(ALINEO_HARNESS='{"type": "Acp", "command": ["x"]}').start(ready=False)
    assert "'Acp'" in reason(bridge, "HarnessUnsupported")


def test_a_harness_that_does_not_come_up_is_told_in_its_own_words(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge(ALINEO_HARNESS='{"command": ["no-such-pi"]}').start(ready=False)
    assert "no-such-pi" in reason(bridge, "HarnessFailed")


def test_a_harness_that_goes_before_it_was_asked_anything_is_started_again(
    make_bridge: Callable[..., Bridge], model: ScriptedModel
) -> None:
    bridge = make_bridge()
    spec = json.loads(bridge.environment["ALINEO_HARNESS"])
    broken = bridge.directory / "broken"
    guard = f'if rm {broken} 2>/dev/null; then echo no luck >&2; exit 3; fi; exec "$@"'
    spec["command"] = ["/bin/sh", "-c", guard, "sh", *spec["command"]]
    bridge.environment["ALINEO_HARNESS"] = json.dumps(spec)
    bridge.start()
    broken.touch()
    assert bridge.turn(1, "started again")["state"] == "clean"
    assert not broken.exists()
    assert [one["users"] for one in model.log() if "started again" in one["users"][-1]] == [["started again"]]


def test_a_model_that_the_harness_does_not_know_is_named(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge()
    spec = json.loads(bridge.environment["ALINEO_HARNESS"])
    spec["model"] = {"provider": "openai", "id": "no-such-model"}
    bridge.environment["ALINEO_HARNESS"] = json.dumps(spec)
    bridge.start(ready=False)
    assert "openai/no-such-model" in reason(bridge, "HarnessFailed")


def test_it_waits_for_the_restore_container(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge()
    report = bridge.control / "restored.json"
    report.unlink()
    bridge.start(ready=False)
    reason(bridge, "NotRestored")
    report.write_text('{"start":"fresh"}')
    until("it to be ready", lambda: bridge.state()["ready"])


def test_an_empty_home_gets_what_a_new_users_home_has(make_bridge: Callable[..., Bridge]) -> None:
    bridge = make_bridge().start()
    assert (bridge.home / ".profile").is_file()
    (bridge.home / ".profile").unlink()
    bridge.kill()
    bridge.start()
    assert not (bridge.home / ".profile").exists()  # it is the agent's own home by now


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Basic the-bridge-token"])
def test_without_the_pods_token_nothing_is_told(bridge: Bridge, header: str) -> None:
    for path in ("/v1/state", "/v1/journal"):
        assert bridge.client.get(path, headers={"authorization": header}).status_code == 401
    answer = bridge.client.post("/v1/turns", json={}, headers={"authorization": header})
    assert answer.status_code == 401


def test_an_agent_that_empties_the_control_volume_locks_nobody_out(bridge: Bridge) -> None:
    empty = {"tool": "bash", "args": {"command": f"rm -rf {bridge.control}/*"}}
    ended = bridge.turn(1, "empty it" + script(empty, {"text": "done"}))
    assert (ended["state"], ended["text"]) == ("clean", "done")
    assert bridge.turn(2, "and now")["state"] == "clean"


def test_a_bridge_that_starts_without_its_token_says_that_it_cannot_let_anybody_in(bridge: Bridge) -> None:
    bridge.kill()
    (bridge.control / "bridge-token").unlink()
    bridge.start(ready=False)
    answer = bridge.client.get("/v1/state")
    assert (answer.status_code, answer.json()["reason"]) == (401, "TokenMissing")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ALINEO_HOME", "", "the variable ALINEO_HOME is needed"),
        ("ALINEO_WORKSPACE", "here", "ALINEO_WORKSPACE must be an absolute path"),
        ("ALINEO_INCARNATION", "two", "the variable ALINEO_INCARNATION cannot be read"),
    ],
)
def test_an_unusable_environment_is_told(make_bridge: Callable[..., Bridge], name: str, value: str, words: str) -> None:
    bridge = make_bridge(**{name: value})
    with pytest.raises(AssertionError, match=words):
        bridge.start()
    assert bridge.process is not None
    assert bridge.process.wait() == 2
