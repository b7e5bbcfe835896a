"""Where things lie: the checkout that asks and the cache that all checkouts share."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """The two roots."""

    checkout: Path
    cache: Path

    @property
    def bin(self) -> Path:
        """The built programs."""
        return self.cache / "bin"

    def link(self, name: str) -> Path:
        """The stable name of an installed directory."""
        return self.cache / name

    def installed(self, name: str, fingerprint: str) -> Path:
        """An installed directory; its name says what it was made from."""
        return self.cache / f"{name}-{fingerprint}"

    def stamp(self, name: str) -> Path:
        """The file that says what the programs of a step were built from."""
        return self.bin / f".{name}.stamp"

    def log(self, name: str) -> Path:
        """What a step's programs said."""
        return self.cache / "logs" / f"{name}.log"

    def lock(self, name: str) -> Path:
        """Held while a step is at work."""
        return self.cache / "locks" / f"toolchain-{name}.lock"

    def requirements(self, name: str) -> Path:
        """A hashed lock file."""
        return self.checkout / "requirements" / f"{name}.txt"


def find_cache(env: Mapping[str, str]) -> Path:
    """The cache directory by the environment, as every part of the project finds it."""
    if chosen := env.get("ALINEOD_CACHE"):
        return Path(chosen).absolute()
    base = env.get("XDG_CACHE_HOME") or str(Path(env.get("HOME") or "/root") / ".cache")
    return Path(base).absolute() / "alineod"
