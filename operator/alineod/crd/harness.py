"""The program that drives the model inside a sandbox, as a person writes it."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from alineod.crd.base import Record, Rule, Schema
from alineod.crd.types import EnvName, ObjectName


class HarnessType(StrEnum):
    PI = "Pi"
    ACP = "Acp"


URL_SENTENCE = "must start with http:// or https://, such as http://model:8080/v1"


def _check_url(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError(f"{URL_SENTENCE} ({value!r} does not)")
    return value


BaseURL = Annotated[
    str,
    Field(max_length=1024),
    AfterValidator(_check_url),
    Rule("self == '' || self.startsWith('http://') || self.startsWith('https://')", f"baseURL {URL_SENTENCE}"),
]


class ModelSpec(Record):
    """The model the agent thinks with."""

    provider: str = Field(
        default="", max_length=64, description="The provider's name as the harness knows it, such as openai."
    )
    id: str = Field(default="", max_length=256, description="The model's name at that provider.")
    base_url: BaseURL = Field(
        default="", description="Where the provider is reached. Empty: the provider's public address."
    )
    api: str = Field(
        default="", max_length=64, description="The protocol, where the provider has several. Empty: its usual."
    )


class SecretKeyRef(Record):
    """One key of a Secret in the agent's namespace."""

    name: ObjectName = Field(description="Name of the Secret.")
    key: ObjectName = Field(description="Key within the Secret.")


class CredentialRef(Record):
    """A secret value the harness needs; a change of the Secret is picked up without a new sandbox."""

    name: EnvName = Field(description="The environment variable the harness finds the value in.")
    secret_key_ref: SecretKeyRef = Field(description="Where the value is.")


class HarnessSpec(Record):
    """The program that drives the model. A change applies at the agent's next incarnation."""

    type: HarnessType = Field(
        default=HarnessType.PI, description="Pi, or any program that speaks the Agent Client Protocol."
    )
    command: tuple[Annotated[str, Field(max_length=4096)], ...] = Field(
        default=(), max_length=64, description="The program and its arguments, for type Acp."
    )
    model: ModelSpec = Field(default=ModelSpec(), description="The model the agent thinks with.")
    credentials: Annotated[
        tuple[CredentialRef, ...], Schema({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
    ] = Field(
        default=(), max_length=32, description="Secret values for the harness; they merge with the defaults' by name."
    )
