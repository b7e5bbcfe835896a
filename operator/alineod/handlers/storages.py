"""Storages that keep kopf from writing anything to an object: they hold nothing, and to write raises."""

from typing import Any, NoReturn

import kopf


def _refuse() -> NoReturn:
    raise RuntimeError("kopf is only listened to here and must not write to objects")


class NoDiffBase(kopf.DiffBaseStorage):
    """No memory of what was handled last, since nothing is handled by its difference.

    To build none also saves three deep copies of the object at every event.
    """

    def build(self, **_: Any) -> Any:
        return {}

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        _refuse()


class NoProgress(kopf.ProgressStorage):
    """No memory of handlers under way, since none takes longer than a call."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        _refuse()

    def purge(self, **_: Any) -> None:
        _refuse()

    def touch(self, **_: Any) -> None:
        _refuse()

    def clear(self, *, essence: Any) -> Any:
        return essence
