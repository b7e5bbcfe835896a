"""A client of the control API, as small as a person with curl would make it."""

import http.client
import json
import time
import uuid
from dataclasses import dataclass
from typing import Any

from hack.demo.forward import Forward
from hack.demo.run import DemoError

PATIENCE = 60.0  # s in which the API may be between two leaders
HOLD = 30  # s the server is asked to hold a question for a result


@dataclass(frozen=True)
class Answer:
    """`body` is the JSON of the answer, a problem where `status` says so."""

    status: int
    body: dict[str, Any]


class ControlApi:
    """Asks as the holder of `token`. Every call is safe to repeat, so one that a broken connection ate is repeated."""

    def __init__(self, forward: Forward, token: str) -> None:
        self._forward = forward
        self._token = token

    def prompt(self, agent: str, text: str, key: str = "") -> Answer:
        """Queue a prompt for `namespace/name`; with the same `key` it is the same prompt."""
        return self.call(
            "POST", f"/v1/agents/{agent}/prompt", {"prompt": text, "idempotencyKey": key or uuid.uuid4().hex}
        )

    def result(self, agent: str, turn: int | None = None, wait: int = 0) -> Answer:
        """What came of a turn; 202 while nothing has."""
        which = f"&turn={turn}" if turn is not None else ""
        return self.call("GET", f"/v1/agents/{agent}/result?wait={wait}{which}")

    def call(self, method: str, path: str, body: object = None, *, token: str | None = None) -> Answer:
        """One question.

        Raises:
            DemoError: nobody answered for a minute, counted from the first failure: a question may be held for longer.
        """
        end = None
        while True:
            try:
                answer = self._ask(method, path, body, self._token if token is None else token)
                if answer.status != http.HTTPStatus.SERVICE_UNAVAILABLE:
                    return answer
                failure: object = answer
            except (OSError, http.client.HTTPException, DemoError) as error:
                failure = error
            self._forward.close()  # it may lead to a process that led before
            end = end or time.monotonic() + PATIENCE
            if time.monotonic() > end:
                raise DemoError(f"the control API does not answer: {failure}")
            time.sleep(0.5)

    def _ask(self, method: str, path: str, body: object, token: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self._forward.open(), timeout=HOLD + 240)
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        return Answer(response.status, _parse(raw))


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(raw)
    except ValueError:
        return {"detail": raw.decode(errors="replace")}
    return parsed if isinstance(parsed, dict) else {"items": parsed}
