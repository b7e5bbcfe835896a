"""What Pi is started with."""

from pathlib import Path
from typing import Any

import pytest

from alineod.bridge.pi_config import (
    build_command,
    build_models,
    build_settings,
    compute_session_id,
    explain_model,
    has_price,
)
from alineod.bridge.settings import Credential, Model

KEYS = [Credential("MY_KEY"), Credential("OTHER")]


@pytest.mark.parametrize(
    ("model", "provider", "api", "url"),
    [
        (Model("openai", "m", "http://x/v1"), "openai", "openai-completions", "http://x/v1"),
        (Model("", "m", "http://x/v1/"), "openai", "openai-completions", "http://x/v1"),
        (Model("anthropic", "m", "http://x/v1"), "anthropic", "anthropic-messages", "http://x"),
        (Model("mine", "m", "http://x", "openai-responses"), "mine", "openai-responses", "http://x"),
    ],
)
def test_a_base_url_makes_the_provider_ours(model: Model, provider: str, api: str, url: str) -> None:
    wanted = {"baseUrl": url, "api": api, "apiKey": "$MY_KEY", "models": [{"id": "m"}]}
    assert build_models(model, KEYS) == {"providers": {provider: wanted}}
    assert build_settings(model)["defaultProvider"] == provider


def test_without_one_pis_own_knowledge_serves() -> None:
    assert build_models(Model("openai", "m"), KEYS) == {"providers": {}}
    assert "defaultModel" not in build_settings(Model())


def test_an_endpoint_without_a_key_gets_one_that_means_nothing() -> None:
    assert build_models(Model("o", "m", "http://x"), [])["providers"]["o"]["apiKey"] == "none"


def test_the_session_is_the_agents_own() -> None:
    assert compute_session_id("a/b") == compute_session_id("a/b") != compute_session_id("a/c")


def test_the_command() -> None:
    command = build_command(["node", "cli.js"], Path("/root"), "sid")
    assert command[:4] == ["node", "cli.js", "--mode", "rpc"]
    assert command[command.index("--session-dir") + 1] == "/root/.alineo/sessions"
    assert build_command([], Path("/root"), "sid")[0] == "pi"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"model": {"provider": "openai", "id": "m"}}, ""),
        ({"model": {"provider": "openai", "id": "unknown"}}, "no usable model openai/m"),
        ({}, "no usable model"),
        ({"model": {"provider": "openai", "id": "n"}}, "openai/n, not openai/m"),
        ({"model": {"provider": "other", "id": "m"}}, "other/m, not openai/m"),
    ],
)
def test_the_model_that_came_up(state: dict[str, Any], words: str) -> None:
    explained = explain_model(Model("openai", "m"), state)
    assert (words in explained) if words else explained == ""


def test_prices() -> None:
    assert has_price({"model": {"cost": {"input": 3, "output": 0}}})
    assert not has_price({"model": {"cost": {"input": 0, "output": 0}}})
    assert not has_price({})
