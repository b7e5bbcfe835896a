"""The routing table: which handler a request belongs to. Pure; knows nothing of connections."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from alineod.httpd.messages import Request, Response, Stream, build_problem

Handler = Callable[[Request], Awaitable[Response | Stream]]


@dataclass(frozen=True)
class Route:
    """`path` may hold `{name}` segments. An `open` route is not asked for the server's token: it checks by itself."""

    method: str
    path: str
    handler: Handler
    open: bool = False
    max_body: int = 1024 * 1024


def match_route(routes: Sequence[Route], request: Request) -> tuple[Route | None, dict[str, str], list[str]]:
    """The route for a request and its path's values; without one, the methods this path does take."""
    allowed: list[str] = []
    for route in routes:
        params = _match_path(route.path, request.path)
        if params is None:
            continue
        if route.method == request.method:
            return route, params, allowed
        allowed.append(route.method)
    return None, {}, allowed


def _match_path(pattern: str, path: str) -> dict[str, str] | None:
    wanted, given = pattern.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    params: dict[str, str] = {}
    for want, got in zip(wanted, given, strict=True):
        if want.startswith("{") and got:
            params[want[1:-1]] = unquote(got)
        elif want != got:
            return None
    return params


def build_unmatched(request: Request, allowed: list[str]) -> Response:
    if not allowed:
        return build_problem(404, "NotFound", f"there is nothing at {request.path}")
    detail = f"{request.path} takes {', '.join(allowed)}, not {request.method}"
    return build_problem(405, "MethodNotAllowed", detail, [("allow", ", ".join(allowed))])
