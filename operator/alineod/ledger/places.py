"""The ledger's volume: one directory for each term, `<root>/e<epoch>/ledger.db`.

A term's file is built aside and renamed into place. The mark `opened` beside it says that events may have been
acknowledged in it; a directory without the mark was left by a start that did not get that far.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from alineod.files import sync_file
from alineod.ledger.replica import build_epoch_name, parse_epoch_name

FILE = "ledger.db"
_MARK = "opened"
_BUILDING = "building"
_DOUBT = "doubt"


@dataclass(frozen=True)
class LocalTerm:
    """A term that has a directory on the volume."""

    epoch: int
    opened: bool


@dataclass(frozen=True)
class Volume:
    """The directory all terms are in."""

    root: Path

    def file(self, epoch: int) -> Path:
        return self._directory(epoch) / FILE

    def read_terms(self) -> Sequence[LocalTerm]:
        """Oldest first; none when there is no volume."""
        if not self.root.is_dir():
            return []
        epochs = [epoch for path in self.root.iterdir() if (epoch := parse_epoch_name(path.name)) is not None]
        return [LocalTerm(epoch, (self._directory(epoch) / _MARK).exists()) for epoch in sorted(epochs)]

    def create_building(self) -> Path:
        """An empty place to build a term's file at; what an earlier start left there is gone."""
        building = self.root / _BUILDING
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        return building / FILE

    def write_term(self, epoch: int) -> Path:
        """Put what was built into place, safe against a power cut, and return the file."""
        building, directory = self.root / _BUILDING, self._directory(epoch)
        for path in (building / FILE, building):
            sync_file(path)
        building.rename(directory)
        sync_file(self.root)
        return directory / FILE

    def write_mark(self, epoch: int) -> None:
        """From now on events may be acknowledged in this term."""
        directory = self._directory(epoch)
        (directory / _MARK).touch()
        sync_file(directory)

    def delete_others(self, epoch: int) -> None:
        """Remove every term but this one."""
        for term in self.read_terms():
            if term.epoch != epoch:
                shutil.rmtree(self._directory(term.epoch), ignore_errors=True)

    def delete_leftovers(self) -> None:
        """Remove what failed starts left, but for the newest term of all, whose number must not be used again."""
        for term in self.read_terms()[:-1]:
            if not term.opened:
                shutil.rmtree(self._directory(term.epoch), ignore_errors=True)

    @property
    def in_doubt(self) -> bool:
        """Whether a copy was found damaged while it was in service; the next one is checked whole before it is used."""
        return (self.root / _DOUBT).exists()

    def write_doubt(self) -> None:
        (self.root / _DOUBT).touch()
        sync_file(self.root)

    def delete_doubt(self) -> None:
        """A copy was checked whole."""
        (self.root / _DOUBT).unlink(missing_ok=True)

    def set_aside(self, epoch: int) -> Path:
        """Move a damaged term out of the way, kept for a person to look at."""
        aside = self.root / f"damaged-{build_epoch_name(epoch)}"
        shutil.rmtree(aside, ignore_errors=True)
        self._directory(epoch).rename(aside)
        return aside

    def _directory(self, epoch: int) -> Path:
        return self.root / build_epoch_name(epoch)
