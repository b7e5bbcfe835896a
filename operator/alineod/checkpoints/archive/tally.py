"""Counts what goes into an archive and notes what does not, for its manifest."""

from dataclasses import dataclass, field

from alineod.checkpoints.archive.format import MAX_NAMED, Manifest, Noted, show_path

_MAX_SHOWN = 1024  # characters of one path


@dataclass
class _Notes:
    named: list[Noted] = field(default_factory=list)
    count: int = 0

    def add(self, path: bytes, reason: str) -> None:
        self.count += 1
        if len(self.named) < MAX_NAMED:
            self.named.append(Noted(path=show_path(path)[:_MAX_SHOWN], reason=reason))


@dataclass
class Tally:
    """Filled by the packer; memory stays flat because only the first paths of each sort are named."""

    directories: int = 0
    files: int = 0
    hard_links: int = 0
    symlinks: int = 0
    stored: int = 0
    journal_records: int = 0
    _skipped: _Notes = field(default_factory=_Notes)
    _inexact: _Notes = field(default_factory=_Notes)
    _excluded: _Notes = field(default_factory=_Notes)

    def add_file(self, stored: int) -> None:
        self.files += 1
        self.stored += stored

    def skip(self, path: bytes, reason: str) -> None:
        self._skipped.add(path, reason)

    def doubt(self, path: bytes, reason: str) -> None:
        self._inexact.add(path, reason)

    def exclude(self, path: bytes) -> None:
        self._excluded.add(path, "")

    def build(self) -> Manifest:
        return Manifest(
            directories=self.directories,
            files=self.files,
            hard_links=self.hard_links,
            symlinks=self.symlinks,
            bytes=self.stored,
            journal_records=self.journal_records,
            skipped=self._skipped.named,
            skipped_count=self._skipped.count,
            inexact=self._inexact.named,
            inexact_count=self._inexact.count,
            excluded=[note.path for note in self._excluded.named],
            excluded_count=self._excluded.count,
        )
