"""What Pi is started with: its arguments, its environment and its two files. Pure; the files are written elsewhere.

Both files are made anew for every turn, so that what an agent or a restored home holds in their place never counts, and
a key stands in them only by the name of its variable.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from alineod.bridge.settings import Credential, Model

SESSIONS = Path(".alineo/sessions")  # below home; a child that forks its parent's files does not get it
_ANTHROPIC = "anthropic-messages"
_OPENAI = "openai-completions"


def compute_session_id(agent: str) -> str:
    """The same for every pod of the agent `namespace/name`, and another for every other agent."""
    return f"alineo-{hashlib.sha256(agent.encode()).hexdigest()[:32]}"


def build_command(command: Sequence[str], home: Path, session_id: str) -> list[str]:
    """Project files (`.pi/` in the workspace) are not trusted: whoever fills the workspace does not configure Pi."""
    sessions = ["--session-dir", str(home / SESSIONS), "--session-id", session_id]
    return [*(command or ("pi",)), "--mode", "rpc", *sessions, "--no-approve"]


def build_models(model: Model, credentials: Sequence[Credential]) -> dict[str, Any]:
    """models.json: with a base URL the provider is made ours, else Pi's own knowledge of it serves."""
    if not model.base_url:
        return {"providers": {}}
    api = model.api or (_ANTHROPIC if model.provider == "anthropic" else _OPENAI)
    base_url = model.base_url.rstrip("/")
    if api == _ANTHROPIC:
        base_url = base_url.removesuffix("/v1")  # that protocol's client adds it by itself
    # Without a key Pi refuses to ask; an endpoint that wants none takes any.
    key = f"${credentials[0].name}" if credentials else "none"
    return {
        "providers": {
            provider_name(model): {"baseUrl": base_url, "api": api, "apiKey": key, "models": [{"id": model.id}]}
        }
    }


def build_settings(model: Model) -> dict[str, Any]:
    """settings.json."""
    chosen = {"defaultProvider": provider_name(model), "defaultModel": model.id} if model.id else {}
    return {**chosen, "enableInstallTelemetry": False, "quietStartup": True}


def provider_name(model: Model) -> str:
    return model.provider or ("openai" if model.base_url else "")


def explain_model(model: Model, state: Mapping[str, Any]) -> str:
    """Why the model that Pi came up with is not the wanted one; empty when it is."""
    found = state.get("model") or {}
    got = f"{found.get('provider')}/{found.get('id')}"
    if found.get("id") in (None, "unknown"):
        return f"Pi found no usable model {provider_name(model)}/{model.id}: name one it knows, and its credential"
    if (model.id and found["id"] != model.id) or (model.provider and found.get("provider") != model.provider):
        return f"Pi would use the model {got}, not {provider_name(model)}/{model.id} as the agent's spec asks"
    return ""


def has_price(state: Mapping[str, Any]) -> bool:
    """Whether Pi knows what the model's tokens cost."""
    cost = (state.get("model") or {}).get("cost") or {}
    return any(isinstance(price, int | float) and price > 0 for price in cost.values())
