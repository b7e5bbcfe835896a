"""Who speaks in a lower epoch than the highest one that was heard is refused, also by the next process."""

from pathlib import Path

import pytest

from alineod.bridge.epochs import Epochs
from alineod.errors import Conflict, Unavailable


def test_a_lower_epoch_is_refused_by_this_process_and_the_next(tmp_path: Path) -> None:
    path = tmp_path / "epoch"
    epochs = Epochs(path)
    for epoch in (0, 3, 3, 7):
        epochs.admit(epoch)
    for again in (epochs, Epochs(path)):
        again.admit(7)
        with pytest.raises(Conflict, match="epoch 6, and the leader of epoch 7") as caught:
            again.admit(6)
        assert caught.value.reason == "StaleEpoch"


def test_an_epoch_that_cannot_be_kept_is_not_listened_to(tmp_path: Path) -> None:
    epochs = Epochs(tmp_path / "nowhere" / "epoch")
    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            epochs.admit(2)
        assert caught.value.reason == "EpochUnwritable"


def test_half_a_file_is_no_epoch(tmp_path: Path) -> None:
    (tmp_path / "epoch").write_bytes(b"")
    Epochs(tmp_path / "epoch").admit(1)
