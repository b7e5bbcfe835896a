"""What this release was told at installation, parsed once from the environment of the operator.

Knows names, defaults and sentences about wrong values; it must not know who uses a value, nor look anything up.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from alineod.errors import Refused

T = TypeVar("T")

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_URL = re.compile(r"https?://[^/\s]+[^\s]*")
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)


class PullPolicy(StrEnum):
    """When a node asks the registry for an image."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class LogFormat(StrEnum):
    """How a log line is written: for a person or for a collector."""

    TEXT = "text"
    JSON = "json"


class Fencing(StrEnum):
    """What keeps two leaders apart: the bucket's conditional writes, or the lease alone."""

    CONDITIONAL_WRITES = "ConditionalWrites"
    LEASE_ONLY = "LeaseOnly"


@dataclass(frozen=True, slots=True)
class BucketSettings:
    """Where checkpoints and the ledger's replica are kept; the keys are the S3 client's own environment.

    `prefix` is without slashes at its ends, `endpoint` empty for the provider's own.
    """

    name: str
    prefix: str
    endpoint: str
    region: str
    fencing: Fencing = Fencing.CONDITIONAL_WRITES


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """The images of sandbox pods and how nodes get them."""

    sandbox: str
    agent: str
    pull_policy: PullPolicy
    pull_secrets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """How many checkpoints an agent keeps, and how old (seconds) a surplus one in the bucket must be to go."""

    keep: int
    remote_min_age: int


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the operator is told from outside.

    `watch_namespaces` empty means the whole cluster; `bucket` None means no durability beyond the volume.
    `sandbox_defaults` is the release's `sandboxDefaults` as JSON gave it, parsed by who builds pods.
    """

    instance: str
    namespace: str
    pod_name: str
    pod_uid: str
    service_url: str
    watch_namespaces: tuple[str, ...]
    images: ImageSettings
    bucket: BucketSettings | None
    checkpoints: CheckpointSettings
    rehydrate_concurrency: int
    reattach_retry_delay: float
    ledger_dir: Path
    log_format: LogFormat
    sandbox_defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def parse_settings(env: Mapping[str, str]) -> Settings:
    """Read every `ALINEOD_*` variable.

    Raises:
        Refused: reason `InvalidSetting`; one sentence for each variable that is missing or wrong.
    """
    reader = _Reader(env)
    settings = Settings(
        instance=reader.read("INSTANCE", parse_label),
        namespace=reader.read("NAMESPACE", parse_label),
        pod_name=reader.read("POD_NAME", _parse_text),
        pod_uid=reader.read("POD_UID", _parse_text),
        service_url=reader.read("SERVICE_URL", _parse_url),
        watch_namespaces=reader.read("WATCH_NAMESPACES", _parse_labels, ""),
        images=_read_images(reader),
        bucket=_read_bucket(reader),
        checkpoints=CheckpointSettings(
            keep=reader.read("CHECKPOINTS_KEEP", _parse_count, "3"),
            remote_min_age=reader.read("CHECKPOINTS_REMOTE_MIN_AGE", parse_seconds, "10m"),
        ),
        rehydrate_concurrency=reader.read("REHYDRATE_CONCURRENCY", _parse_count, "8"),
        reattach_retry_delay=reader.read("REATTACH_RETRY_DELAY", parse_seconds, "1s"),
        ledger_dir=reader.read("LEDGER_DIR", _parse_directory, "/var/lib/alineod"),
        log_format=reader.read("LOG_FORMAT", _parse_log_format, "text"),
        sandbox_defaults=reader.read("SANDBOX_DEFAULTS", _parse_object, "{}"),
    )
    if reader.problems:
        raise Refused("InvalidSetting", " ".join(reader.problems))
    return settings


def _read_images(reader: "_Reader") -> ImageSettings:
    return ImageSettings(
        sandbox=reader.read("IMAGE_SANDBOX", _parse_text),
        agent=reader.read("IMAGE_AGENT", _parse_text),
        pull_policy=reader.read("IMAGE_PULL_POLICY", _parse_pull_policy, "IfNotPresent"),
        pull_secrets=reader.read("IMAGE_PULL_SECRETS", _parse_words, ""),
    )


def _read_bucket(reader: "_Reader") -> BucketSettings | None:
    bucket = BucketSettings(
        name=reader.read("BUCKET_NAME", str.strip, ""),
        prefix=reader.read("BUCKET_PREFIX", lambda text: text.strip().strip("/"), ""),
        endpoint=reader.read("BUCKET_ENDPOINT", lambda text: _parse_url(text) if text else "", ""),
        region=reader.read("BUCKET_REGION", str.strip, "") or "us-east-1",
        fencing=reader.read("BUCKET_FENCING", _parse_fencing, Fencing.CONDITIONAL_WRITES),
    )
    return bucket if bucket.name else None


class _Reader:
    """Reads variables and gathers a sentence for each wrong one, so that a person mends them all at once."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.problems: list[str] = []

    def read(self, name: str, parse: Callable[[str], T], default: str | None = None) -> T:
        variable = f"ALINEOD_{name}"
        text = self._env.get(variable, "").strip() or default
        try:
            if text is None:
                raise ValueError("must be set")
            return parse(text)
        except ValueError as error:
            shown = f" (it is {text!r})" if text else ""
            self.problems.append(f"{variable} {error}{shown}.")
            # Never seen by anyone: a reader with problems yields no settings.
            return None  # type: ignore[return-value]


def parse_label(text: str) -> str:
    """A DNS label, as Kubernetes wants the names of namespaces.

    Raises:
        ValueError: with the rest of a sentence that begins with the name of the setting.
    """
    if _LABEL.fullmatch(text) is None:
        raise ValueError("must be at most 63 lower-case letters, digits and dashes, and begin and end with no dash")
    return text


def parse_seconds(text: str) -> int:
    """A duration such as `90`, `10m` or `1h30m`, in seconds.

    Raises:
        ValueError: with the rest of a sentence that begins with the name of the setting.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise ValueError('must be a duration such as "90s", "10m" or "1h30m"')
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def _parse_text(text: str) -> str:
    return text


def _parse_url(text: str) -> str:
    if _URL.fullmatch(text) is None:
        raise ValueError('must be a URL such as "http://host:8080"')
    return text.rstrip("/")


def _parse_words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _parse_labels(text: str) -> tuple[str, ...]:
    try:
        return tuple(parse_label(word) for word in _parse_words(text))
    except ValueError as error:
        raise ValueError(f"must be a comma-separated list of namespaces; each {error}") from None


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise ValueError("must be a whole number of at least 1")
    return int(text)


def _parse_directory(text: str) -> Path:
    path = Path(text)
    if not path.is_absolute():
        raise ValueError("must be an absolute path")
    return path


def _parse_pull_policy(text: str) -> PullPolicy:
    return _parse_choice(PullPolicy, text)


def _parse_fencing(text: str) -> Fencing:
    return _parse_choice(Fencing, text)


def _parse_log_format(text: str) -> LogFormat:
    return _parse_choice(LogFormat, text)


_Choice = TypeVar("_Choice", bound=StrEnum)


def _parse_choice(kind: type[_Choice], text: str) -> _Choice:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"must be one of {', '.join(kind)}") from None


def _parse_object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"must be a JSON object: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object")  # noqa: TRY004  (what is wrong is the text)
    return MappingProxyType(value)
