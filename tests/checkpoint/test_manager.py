"""CheckpointManager: which checkpoints stay, which one is the newest, and what it never touches."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.checkpoint import checkpoint_manager
from workbench.errors import CheckpointInvalid, DataWarning, FailedPreconditionError, InvalidArgumentError


def manager_in(folder: Path, max_to_keep: int | None = 2, **options: Any) -> wb.CheckpointManager:
    checkpoint = wb.Checkpoint(w=wb.Variable(np.zeros(3)), epoch=0)
    return wb.CheckpointManager(checkpoint, folder, max_to_keep, **options)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def test_the_newest_checkpoints_stay(tmp_path: Path) -> None:
    manager = manager_in(tmp_path)
    paths = [manager.save() for _ in range(5)]

    assert manager.checkpoints == paths[3:]
    assert manager.latest_checkpoint == paths[4] == wb.latest_checkpoint(tmp_path)
    assert names(tmp_path) == ["ckpt-4", "ckpt-5"]
    assert repr(manager).endswith("ckpt-5)")


def test_all_stay_without_a_number(tmp_path: Path) -> None:
    manager = manager_in(tmp_path, None)
    assert len([manager.save() for _ in range(4)]) == len(manager.checkpoints) == 4


def test_a_later_process_goes_on_with_what_is_there(tmp_path: Path) -> None:
    first = manager_in(tmp_path)
    first.checkpoint.epoch = 7
    first.save()
    first.save()

    later = manager_in(tmp_path)
    assert later.restore_or_initialize() == str(tmp_path / "ckpt-2")
    assert later.checkpoint.epoch == 7
    later.save()
    assert names(tmp_path) == ["ckpt-2", "ckpt-3"]


def test_a_program_that_starts_anew_overwrites_nothing(tmp_path: Path) -> None:
    manager_in(tmp_path, 5).save()
    again = manager_in(tmp_path, 5)
    assert again.save() == str(tmp_path / "ckpt-2")


def test_numbers_can_be_steps_and_the_one_saved_last_is_the_newest(tmp_path: Path) -> None:
    manager = manager_in(tmp_path, 2)
    for number in (100, 200, 50):
        manager.save(number)
    assert [Path(path).name for path in manager.checkpoints] == ["ckpt-200", "ckpt-50"]
    assert Path(str(manager.latest_checkpoint)).name == "ckpt-50"


def test_the_same_number_replaces_the_checkpoint(tmp_path: Path) -> None:
    manager = manager_in(tmp_path, 2)
    manager.save(1)
    manager.checkpoint.epoch = 3
    path = Path(str(manager.save(1)))
    manager.checkpoint.epoch = 0
    manager.restore_or_initialize()
    assert manager.checkpoint.epoch == 3
    assert len(list(path.glob("*.safetensors"))) == 1


def test_one_stays_for_each_stretch_of_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000 * 3600 * 10**9
    monkeypatch.setattr("time.time_ns", lambda: now)
    manager = manager_in(tmp_path, 1, keep_checkpoint_every_n_hours=2)
    for _ in range(8):
        now += 3600 * 10**9
        manager.save()

    assert names(tmp_path) == ["ckpt-2", "ckpt-4", "ckpt-6", "ckpt-8"]
    assert [Path(path).name for path in manager.checkpoints] == ["ckpt-8"]
    manager_in(tmp_path, 1).save()
    assert names(tmp_path) == ["ckpt-2", "ckpt-4", "ckpt-6", "ckpt-9"], (
        "what stays stays for other managers too"
    )


def test_every_so_many_numbers_one_stays(tmp_path: Path) -> None:
    manager = manager_in(tmp_path, 2, keep_every=1000)
    for step in range(500, 4001, 500):
        manager.save(step)

    assert names(tmp_path) == ["ckpt-1000", "ckpt-2000", "ckpt-3000", "ckpt-3500", "ckpt-4000"]
    assert [Path(path).name for path in manager.checkpoints] == ["ckpt-3500", "ckpt-4000"]
    manager_in(tmp_path, 1).save(4500)
    assert names(tmp_path) == ["ckpt-1000", "ckpt-2000", "ckpt-3000", "ckpt-4500"], (
        "what stays stays for other managers too; 4000 was one of the newest, and is not theirs to keep"
    )


def test_numbers_and_hours_keep_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000 * 3600 * 10**9
    monkeypatch.setattr("time.time_ns", lambda: now)
    manager = manager_in(tmp_path, 1, keep_checkpoint_every_n_hours=2, keep_every=3)
    for _ in range(8):
        now += 3600 * 10**9
        manager.save()

    assert names(tmp_path) == ["ckpt-2", "ckpt-3", "ckpt-5", "ckpt-6", "ckpt-8"], (
        "hours count from one that stays"
    )


def test_managers_that_begin_again_count_the_hours_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000_000 * 3600 * 10**9
    monkeypatch.setattr("time.time_ns", lambda: now)
    for _ in range(8):
        manager = manager_in(tmp_path, 1, keep_checkpoint_every_n_hours=2)
        now += 3600 * 10**9
        manager.save()
    assert names(tmp_path) == ["ckpt-2", "ckpt-4", "ckpt-6", "ckpt-8"]


def test_a_clock_that_goes_back_does_not_change_which_is_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = manager_in(tmp_path, 2)
    manager.save()
    monkeypatch.setattr("time.time_ns", lambda: 1)
    path = manager.save()
    assert manager.latest_checkpoint == path


def test_saving_heeds_the_interval_in_steps(tmp_path: Path) -> None:
    step = wb.Variable(np.int64(0))
    manager = manager_in(tmp_path, None, step_counter=step, checkpoint_interval=3)
    saved = []
    for number in range(8):
        step.assign(np.int64(number))
        if manager.save():
            saved.append(number)
    assert saved == [0, 3, 6]
    assert manager.save(check_interval=False)
    assert manager.save(check_interval=False) is None, "no step is saved twice"
    assert manager.checkpoint_interval == 3
    later = manager_in(tmp_path, None, step_counter=step, checkpoint_interval=3, last_checkpoint_step=5)
    assert later.save() is None
    assert manager_in(tmp_path, None, step_counter=step).save()


def test_an_interval_of_0_saves_each_step_once(tmp_path: Path) -> None:
    step = wb.Variable(np.int64(0))
    manager = manager_in(tmp_path, None, step_counter=step, checkpoint_interval=0)
    assert manager.checkpoint_interval == 0
    assert manager.save()
    assert manager.save() is None, "as in TensorFlow"
    step.assign(np.int64(1))
    assert manager.save()


def test_without_a_checkpoint_the_program_is_initialized(tmp_path: Path) -> None:
    calls: list[int] = []
    assert manager_in(tmp_path / "new", init_fn=lambda: calls.append(1)).restore_or_initialize() is None
    assert calls == [1]
    assert wb.latest_checkpoint(tmp_path / "new") is None


def test_other_files_and_other_names_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "ckpt-0").mkdir()
    (tmp_path / "ckpt-0" / "mine.txt").write_text("mine")
    (tmp_path / "ckpt-x").mkdir()
    other = manager_in(tmp_path, 3, checkpoint_name="other")
    other.save()
    manager = manager_in(tmp_path, 1)
    first = Path(str(manager.save()))
    (first / "notes.txt").write_text("mine")
    for _ in range(3):
        manager.save()

    assert (tmp_path / "ckpt-0" / "mine.txt").read_text() == "mine"
    assert [path.name for path in first.iterdir()] == ["notes.txt"]
    assert names(tmp_path) == ["ckpt-0", "ckpt-1", "ckpt-4", "ckpt-x", "other-1"]


SAVE = """
import sys
import workbench as wb
from workbench.errors import FailedPreconditionError
try:
    wb.CheckpointManager(wb.Checkpoint(epoch=0), sys.argv[1], 1).save()
except FailedPreconditionError as error:
    print(error)
"""


def test_another_process_cannot_save_under_the_same_name(tmp_path: Path) -> None:
    manager = manager_in(tmp_path)
    path = manager.save()
    told = subprocess.run(
        [sys.executable, "-c", SAVE, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert "another process saves checkpoints here" in told.stdout
    assert manager.checkpoints == [path]


def test_a_cell_that_runs_again_makes_a_manager_that_can_save(tmp_path: Path) -> None:
    first = manager_in(tmp_path)
    first.save()
    manager_in(tmp_path).save()
    first.save()
    assert names(tmp_path) == ["ckpt-2", "ckpt-3"]


def test_a_damaged_checkpoint_is_told_and_passed_over_only_if_allowed(tmp_path: Path) -> None:
    manager = manager_in(tmp_path, 3)
    manager.checkpoint.epoch = 1
    good = manager.save()
    bad = Path(str(manager.save()))
    (shard,) = bad.glob("*.safetensors")
    shard.write_bytes(shard.read_bytes()[:-1])

    with pytest.raises(CheckpointInvalid, match=shard.name):
        manager.restore_or_initialize()
    with pytest.warns(DataWarning, match="taking the checkpoint before it"):
        assert manager.restore_or_initialize(fall_back=True) == good
    (bad / "checkpoint.json").write_bytes(b"{}")
    with pytest.raises(CheckpointInvalid, match="manifest"):
        manager.restore_or_initialize()
    with pytest.warns(DataWarning, match="manifest"):
        assert manager.restore_or_initialize(fall_back=True) == good
    assert manager.latest_checkpoint == good
    manager.save()
    assert bad.exists(), "somebody may want to look at it"


@pytest.mark.parametrize(
    ("name", "least", "without"),
    [
        ("max_to_keep", 1, "to keep all"),
        ("keep_every", 1, "to keep only the newest"),
        ("checkpoint_interval", 0, "to save at each call"),
        ("last_checkpoint_step", 0, "for none"),
    ],
)
def test_checkpoints_and_steps_are_counted_by_whole_numbers(
    tmp_path: Path, name: str, least: int, without: str
) -> None:
    for wrong in (least - 1, -3, "3", 1.5, True, np.True_, np.nan, np.array([1, 2])):
        says = f"{name} must be an integer of at least {least}, or None {without}, got {wrong!r}"
        with pytest.raises(InvalidArgumentError, match=f"^{re.escape(says)}$"):
            manager_in(tmp_path, step_counter=1, **{name: wrong})  # type: ignore[arg-type]
    manager_in(tmp_path, step_counter=1, **{name: np.int32(least)})  # type: ignore[arg-type]


def test_bad_arguments_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="counts the steps of step_counter: give both"):
        manager_in(tmp_path, checkpoint_interval=3)
    for name in ("a/b", "", 5):
        with pytest.raises(InvalidArgumentError, match=f"checkpoint_name {name!r} cannot begin the name"):
            manager_in(tmp_path, checkpoint_name=name)  # type: ignore[arg-type]
    for hours in (Decimal(1), "1", float("nan"), -1, 0):
        with pytest.raises(InvalidArgumentError, match="hours must be a number above 0, or None, got"):
            manager_in(tmp_path, keep_checkpoint_every_n_hours=hours)
    for wrong in ({"step_counter": "x"}, {"init_fn": 3}):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            manager_in(tmp_path, **wrong)  # type: ignore[arg-type]
    for number in (-1, "x", "5", 1.7, np.nan, np.array([1, 2])):
        with pytest.raises(InvalidArgumentError, match=r"checkpoint_number must be .*0 or more, got "):
            manager_in(tmp_path).save(number)  # type: ignore[arg-type]
    assert str(manager_in(tmp_path).save(np.float32(7))).endswith("ckpt-7")
    with pytest.raises(TypeError, match=r"CheckpointManager saves a wb\.Checkpoint, got dict"):
        wb.CheckpointManager({"w": 3}, tmp_path, 3)  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(FailedPreconditionError, match="has to be a folder"):
        manager_in(tmp_path / "file").save()


def test_a_number_is_whole_whatever_holds_it(tmp_path: Path) -> None:
    manager = manager_in(tmp_path)
    for wrong in (True, np.True_, np.array(True), np.array(1.7), np.float32(1.7), Decimal("1.7"), np.inf):
        with pytest.raises(
            InvalidArgumentError, match=r"^checkpoint_number must be a whole number, 0 or more, got "
        ):
            manager.save(wrong)  # type: ignore[arg-type]
    for value in (1.7, np.nan, -1.0, True):
        with pytest.raises(
            InvalidArgumentError, match=r"^checkpoint_number must be a whole number, 0 or more, got "
        ):
            manager.save(wb.Variable(value))
    assert names(tmp_path) == []
    large = 2**53 + 1
    for number in (large, np.int64(large), np.array(large), wb.Variable(np.int64(large))):
        assert str(manager.save(number)).endswith(f"ckpt-{large}")  # type: ignore[arg-type]
    for step in (np.array(7.0), wb.Variable(7.0), Decimal(7)):
        assert str(manager.save(step)).endswith("ckpt-7")  # type: ignore[arg-type]


def test_true_is_no_number_of_hours(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="hours must be a number above 0, or None, got True"):
        manager_in(tmp_path, keep_checkpoint_every_n_hours=True)


@pytest.mark.parametrize("wrong", ["no", 1, 0, [False]])
def test_only_true_and_false_are_taken_for_an_answer(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^background must be True or False, got "):
        manager_in(tmp_path, background=wrong)
    manager = manager_in(tmp_path)
    with pytest.raises(TypeError, match=r"^background must be True or False, got "):
        manager.save(background=wrong)
    with pytest.raises(TypeError, match=r"^check_interval must be True or False, got "):
        manager.save(check_interval=wrong)
    checkpoint = wb.Checkpoint(epoch=0)
    path = checkpoint.save("memory://flags/one")
    for restore in (checkpoint.restore, checkpoint.read):
        with pytest.raises(TypeError, match=r"^expect_partial must be True or False, got "):
            restore(path, expect_partial=wrong)
    for name in ("fall_back", "expect_partial"):
        with pytest.raises(TypeError, match=rf"^{name} must be True or False, got "):
            manager.restore_or_initialize(**{name: wrong})
    for save in (checkpoint.save, checkpoint.write):
        with pytest.raises(TypeError, match=r"^background must be True or False, got "):
            save(tmp_path / "x", background=wrong)
    assert names(tmp_path) == []


def test_a_manager_works_behind_a_url() -> None:
    checkpoint = wb.Checkpoint(epoch=0)
    manager = wb.CheckpointManager(checkpoint, "memory://managed", 2)
    for checkpoint.epoch in range(4):
        manager.save()
    checkpoint.epoch = 9
    assert manager.restore_or_initialize() == manager.latest_checkpoint == "memory://managed/ckpt-4"
    assert checkpoint.epoch == 3
    assert len(manager.checkpoints) == 2


def test_the_public_names_are_those_of_the_package() -> None:
    assert wb.CheckpointManager is checkpoint_manager.CheckpointManager
