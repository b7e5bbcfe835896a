"""One line a thing that happened, as text or as JSON, on stderr."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from alineod.settings import LogFormat


class JsonLines(logging.Formatter):
    """A JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": time,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def start_logging(how: LogFormat) -> None:
    """Ours from INFO, everybody else's from WARNING."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if how is LogFormat.JSON else text)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("alineod").setLevel(logging.INFO)
