"""What every ledger keeps in memory: the fold of the acknowledged rows, and who wants to hear of them."""

import logging
from collections.abc import Sequence

from alineod.domain.events import Row
from alineod.domain.fold import fold
from alineod.domain.state import State
from alineod.ledger.port import Listener, Unsubscribe

log = logging.getLogger(__name__)


class Folded:
    """Used on the loop only."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._listeners: dict[object, Listener] = {}

    def subscribe(self, listener: Listener) -> Unsubscribe:
        key = object()
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def publish(self, rows: Sequence[Row]) -> None:
        """Fold `rows`, which follow the state, and tell every listener."""
        if not rows:
            return
        self.state = fold(self.state, rows)
        for listener in tuple(self._listeners.values()):
            try:
                listener(rows)
            except Exception:
                # One deaf listener must not keep the others, or the writer, from going on.
                log.exception("A listener failed at rows %d to %d.", rows[0].seq, rows[-1].seq)
