"""The objects of the end-to-end tests: our kinds for pykube, and swarms as a person would write them.

Prompts hold the script that the scripted model plays: what an agent says and does is in the test that expects it.
"""

import json
from typing import Any

from pykube.objects import NamespacedAPIObject

from hack.demo.install import MODEL_KEY

__all__ = ["MODEL_KEY"]

Json = dict[str, Any]
MODEL_URL = "http://scripted-model.alineod-parts.svc:8080/v1"
MODEL_SECRET = "model"


class Swarm(NamespacedAPIObject):  # type: ignore[misc]
    version = "alineo.dev/v1alpha1"
    endpoint = "swarms"
    kind = "Swarm"


class Agent(NamespacedAPIObject):  # type: ignore[misc]
    version = "alineo.dev/v1alpha1"
    endpoint = "agents"
    kind = "Agent"


def play(*steps: Json, say: str = "") -> str:
    """A prompt: what a person reads of it, and the script that the scripted model answers with."""
    return f"{say} <<{json.dumps(list(steps))}>>".strip()


def text(words: str, **more: Any) -> Json:
    """The model says it."""
    return {"text": words, **more}


def slow(words: str, seconds: float) -> Json:
    """The model says it, and takes about so long."""
    return {"text": words, "chunk": 1, "delay": round(seconds / max(1, len(words)), 3)}


def bash(command: str, **more: Any) -> Json:
    """The model calls its shell."""
    return {"tool": "bash", "args": {"command": command}, **more}


def build_harness(secret: str = MODEL_SECRET, url: str = MODEL_URL) -> Json:
    """Pi with the scripted model behind it."""
    return {
        "type": "Pi",
        "model": {"provider": "openai", "id": "scripted-1", "baseURL": url},
        "credentials": [{"name": "OPENAI_API_KEY", "secretKeyRef": {"name": secret, "key": "api-key"}}],
    }


def build_defaults(**more: Any) -> Json:
    """Defaults of a swarm whose agents are kept; small requests, so that many fit on a small machine."""
    sandbox = {"resources": {"requests": {"cpu": "20m", "memory": "64Mi"}}}
    return {"checkpoint": True, "harness": build_harness(), "sandbox": sandbox, **more}


def build_swarm(name: str, agents: list[Json], *, defaults: Json | None = None, **spec: Any) -> Json:
    """A Swarm without a namespace: where it goes is said when it is applied."""
    defaults = build_defaults() if defaults is None else defaults
    return {
        "apiVersion": Swarm.version,
        "kind": Swarm.kind,
        "metadata": {"name": name},
        "spec": {"defaults": defaults, "agents": agents, **spec},
    }


def build_agent(name: str, swarm: str, prompt: str, **spec: Any) -> Json:
    """An Agent applied by itself."""
    return {
        "apiVersion": Agent.version,
        "kind": Agent.kind,
        "metadata": {"name": name},
        "spec": {"swarm": swarm, "prompt": prompt, **spec},
    }


def build_secret(name: str, values: dict[str, str]) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}
