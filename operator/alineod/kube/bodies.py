"""The few request bodies that the gateway writes itself, and what their answers mean. Pure."""

import hashlib
from collections.abc import Sequence

from alineod.errors import Denied
from alineod.kube.gateway import AccessAnswer, AccessQuery, EventRecord, Identity
from alineod.kube.objects import ACCESS_REVIEWS, EVENTS, MANAGER, TOKEN_REVIEWS, Json, read_uid

# Limits of the Events API, in bytes.
NOTE_LIMIT = 1024
WORD_LIMIT = 128


def build_delete_options(uid: str, version: str, grace_seconds: int | None) -> Json:
    """Delete this incarnation only, as it is in this version where one is named, and in the background what it owns."""
    options: Json = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": uid, **({"resourceVersion": version} if version else {})},
    }
    return options if grace_seconds is None else {**options, "gracePeriodSeconds": grace_seconds}


def is_still_there(answer: Json) -> bool:
    """Whether the answer to a delete says that something has yet to confirm the object's end."""
    metadata = answer.get("metadata") or {}
    if not metadata.get("deletionTimestamp"):
        return False
    return bool(metadata.get("finalizers")) or int(metadata.get("deletionGracePeriodSeconds") or 0) > 0


def build_token_review(token: str, audiences: Sequence[str]) -> Json:
    """The question whose token this is."""
    return {
        "apiVersion": TOKEN_REVIEWS.api_version,
        "kind": TOKEN_REVIEWS.kind,
        "spec": {"token": token, "audiences": list(audiences)},
    }


def parse_token_review(answer: Json, audiences: Sequence[str]) -> Identity:
    """Who holds the token.

    Raises:
        Denied: reason `Unauthenticated`.
    """
    status = answer.get("status") or {}
    confirmed = tuple(status.get("audiences") or ())
    if not status.get("authenticated"):
        raise Denied("Unauthenticated", status.get("error") or "The cluster does not know this token.")
    # An API server whose authenticator ignores audiences answers without any: not meant for us is not for us.
    if audiences and not set(audiences) & set(confirmed):
        raise Denied("Unauthenticated", f"The token is not meant for {', '.join(audiences)}.")
    user = status.get("user") or {}
    return Identity(
        username=user.get("username", ""),
        uid=user.get("uid", ""),
        groups=tuple(user.get("groups") or ()),
        extra={name: tuple(values or ()) for name, values in (user.get("extra") or {}).items()},
        audiences=confirmed,
    )


def build_access_review(query: AccessQuery) -> Json:
    """The question whether someone may do something."""
    identity, resource = query.identity, query.resource
    attributes = {
        "verb": query.verb,
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
        "subresource": query.subresource,
        "namespace": query.namespace,
        "name": query.name,
    }
    return {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "spec": {
            "user": identity.username,
            "uid": identity.uid,
            "groups": list(identity.groups),
            "extra": {name: list(values) for name, values in identity.extra.items()},
            "resourceAttributes": {name: value for name, value in attributes.items() if value},
        },
    }


def parse_access_review(answer: Json) -> AccessAnswer:
    """The cluster's answer; silence is no."""
    status = answer.get("status") or {}
    return AccessAnswer(bool(status.get("allowed")) and not status.get("denied"), status.get("reason") or "")


def build_event(event: EventRecord) -> Json:
    """The Event, under a name that is the same whenever the same occurrence is told again."""
    metadata = event.regarding["metadata"]
    uid, namespace = read_uid(event.regarding), metadata.get("namespace") or "default"
    told = "\0".join((uid, event.reason, event.occurrence))
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": build_event_name(metadata["name"], told), "namespace": namespace},
        "eventTime": event.time.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "reportingController": f"alineo.dev/{MANAGER}",
        "reportingInstance": MANAGER,
        "type": event.type.value,
        "reason": cut_text(event.reason, WORD_LIMIT),
        "action": cut_text(event.action, WORD_LIMIT),
        "note": cut_text(event.note, NOTE_LIMIT),
        "regarding": {
            "apiVersion": event.resource.api_version,
            "kind": event.resource.kind,
            "name": metadata["name"],
            "namespace": metadata.get("namespace") or "",
            "uid": uid,
            "resourceVersion": metadata.get("resourceVersion") or "",
        },
    }


def build_event_name(name: str, told: str) -> str:
    """A name for `told` that begins with the object's own and fits where names must."""
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    return f"{name[:200].rstrip('.-')}.{digest}"


def cut_text(text: str, limit: int) -> str:
    """`text` in at most `limit` bytes of UTF-8, cut between characters and then marked as cut."""
    raw = text.encode(errors="replace")
    if len(raw) <= limit:
        return raw.decode()
    return raw[: limit - 3].decode(errors="ignore") + "…"
