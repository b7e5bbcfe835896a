"""Where a resource lives under the API server's root. Pure strings."""

from urllib.parse import quote, urlencode

from alineod.kube.objects import Resource


def build_path(resource: Resource, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
    """`/api/v1/namespaces/ns/pods/name/status` and its like; without a namespace, the list of all of them."""
    parts = [build_root(resource)]
    if resource.namespaced and namespace:
        parts.append(f"namespaces/{quote(namespace, safe='')}")
    parts.append(resource.plural)
    if name:
        parts.append(quote(name, safe=""))
    if subresource:
        parts.append(subresource)
    return "/".join(parts)


def build_root(resource: Resource) -> str:
    """The path of the resource's group and version."""
    return f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"


def build_query(**parameters: str | int | bool | None) -> str:
    """A query string of the parameters that have a value, with its question mark; empty without any."""
    given = {name: _write(value) for name, value in parameters.items() if value not in (None, "", False)}
    return f"?{urlencode(given)}" if given else ""


def add_query(target: str, **parameters: str | int | bool | None) -> str:
    """A path, with or without a query, with more parameters behind it."""
    more = build_query(**parameters)
    return target + (more.replace("?", "&", 1) if "?" in target else more)


def _write(value: str | int | bool | None) -> str:
    return "true" if value is True else str(value)
