"""Who kopf is to the API server: our own credentials, read again before they can grow old.

Kopf asks for a login when it has none, when the last one has expired, and when the server refused it. It must not
know how credentials are found.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import kopf

from alineod.kube.access import ClusterAccess

# The kubelet replaces a token long before it ends; a login older than this is made anew from the file.
LOGIN_AGE = timedelta(minutes=5)


class Login:
    """Gives kopf its credentials.

    A token that the server has just refused is not offered again at once: `patience` seconds are given to its file
    to change. The same login after that is taken by kopf for what it is, and kopf ends.
    """

    def __init__(
        self, access: ClusterAccess, now: Callable[[], datetime], patience: float = 20.0, look: float = 0.2
    ) -> None:
        self._access, self._now, self._patience, self._look = access, now, patience, look
        self._last: kopf.ConnectionInfo | None = None

    async def log_in(self, **_: Any) -> kopf.ConnectionInfo:
        """The credentials as they are now."""
        last = self._last
        if last is None or last.expiration is None or last.expiration <= self._now():
            self._last = last = self._build(self._access.read_token())
            return last
        refused = last.token or ""
        token = await self._wait_for_other(refused)
        if token != refused:
            self._last = last = self._build(token)
        return last

    async def _wait_for_other(self, refused: str) -> str:
        looks = max(1, round(self._patience / self._look))
        for _ in range(looks):
            token = self._access.read_token()
            if token != refused:
                return token
            await asyncio.sleep(self._look)
        return refused

    def _build(self, token: str) -> kopf.ConnectionInfo:
        access = self._access
        return kopf.ConnectionInfo(
            server=access.server,
            ca_data=access.authority or None,
            certificate_data=access.certificate or None,
            private_key_data=access.private_key or None,
            token=token or None,
            expiration=self._now() + LOGIN_AGE,
        )
