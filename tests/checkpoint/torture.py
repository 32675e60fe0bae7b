"""Saves that are killed or run out of space, and checkpoints that are damaged: restored or refused rightly.

    python -m tests.checkpoint.torture --cases 1000 --seed 1

Each case says what it did. `run` returns what went wrong, as text; nothing, if all went right.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from workbench import faults
from workbench.errors import CheckpointInvalid, DataWarning, NotFoundError, StorageFull
from workbench.io.checksums import crc32c

KILL_POINTS = [
    *(("checkpoint.write", nth) for nth in range(1, 8)),
    ("checkpoint.made", 1),
    ("checkpoint.shard_written", 1),
    ("checkpoint.shard_written", 2),
    ("checkpoint.shard", 1),
    ("checkpoint.before_manifest", 1),
    ("checkpoint.manifest_written", 1),
    ("checkpoint.renamed", 1),
    ("checkpoint.committed", 1),
    ("checkpoint.cleaned", 1),
    ("checkpoint.sweep", 1),
    ("checkpoint.manifest_removed", 1),
]
FULL_POINTS = [
    *(("checkpoint.write", nth) for nth in range(1, 6)),
    ("checkpoint.shard_written", 1),
    ("checkpoint.shard_written", 2),
    ("checkpoint.manifest_written", 1),
]
SAMPLE = """
import sys
import workbench as wb
from tests.checkpoint.torture import parts
with wb.connect(replicas=3, processes=False):
    with wb.MirroredStrategy().scope():
        checkpoint = wb.Checkpoint(**parts(0.0))
    manager = wb.CheckpointManager(checkpoint, sys.argv[1], None)
    for generation in (1.0, 2.0):
        for name in "abc":
            getattr(checkpoint, name).assign(getattr(checkpoint, name).numpy() * 0 + generation)
        checkpoint.plain["epoch"] = generation
        manager.save()
"""


def parts(generation: float) -> dict[str, Any]:
    """The state: everything in it has the number of its generation."""
    return {
        "a": wb.Variable(np.full(300, generation)),
        "b": wb.Variable(np.full((4, 5), generation, np.float32)),
        "c": wb.Variable(np.full((2, 2, 2), generation)),
        "array": np.full(3, generation),
        "plain": {"epoch": generation},
    }


def generation_of(checkpoint: wb.Checkpoint) -> float:
    """The generation of a state, which has to be the same everywhere."""
    found = {float(x) for name in "abc" for x in np.unique(getattr(checkpoint, name).numpy())}
    found |= {checkpoint.plain["epoch"]}
    if len(found) != 1:
        raise AssertionError(f"a mix of generations: {found}")
    return found.pop()


def manager_of(folder: Path, generation: float) -> wb.CheckpointManager:
    return wb.CheckpointManager(wb.Checkpoint(**parts(generation)), folder, 1)


def in_child(call: Callable[[], None]) -> int:
    """Calls in a forked process; returns its exit status, negative for a signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            call()
            status = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def arm(*rules: dict[str, Any]) -> None:
    faults._counts.clear()
    os.environ["WB_FAULTS"] = json.dumps(rules)
    faults.arm()


def killed(folder: Path, point: str, nth: int) -> str:
    """A save is killed; then the old or the new checkpoint is whole, and saving goes on."""

    def save() -> None:
        manager = manager_of(folder, 1.0)
        manager.save()
        for name, value in parts(2.0).items():
            setattr(manager.checkpoint, name, value)
        arm({"point": point, "nth": nth, "action": "kill"})
        manager.save()

    status = in_child(save)
    if status not in (0, -9):
        return f"the save ended with {status}"
    return recovered(folder, (2.0,) if status == 0 else (1.0, 2.0))


def recovered(folder: Path, allowed: tuple[float, ...]) -> str:
    manager = manager_of(folder, 0.0)
    manager.restore_or_initialize()
    generation = generation_of(manager.checkpoint)
    if generation not in allowed:
        return f"restored generation {generation}, not one of {allowed}"
    for name, value in parts(3.0).items():
        setattr(manager.checkpoint, name, value)
    path = manager.save()
    other = manager_of(folder, 0.0)
    other.restore_or_initialize()
    left = sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))
    if generation_of(other.checkpoint) != 3.0:
        return "what was saved afterwards is not what was restored"
    if len(left) != 5 or manager.checkpoints != [
        path
    ]:  # the claim, a folder with a lock, a manifest and a shard
        return f"left behind: {left}"
    return ""


def full(folder: Path, point: str, nth: int) -> str:
    """The disk is full at some write; the former checkpoint is whole, and saving goes on once there is room."""
    told = folder / "told"

    def save() -> None:
        manager = manager_of(folder, 1.0)
        manager.save()
        for name, value in parts(2.0).items():
            setattr(manager.checkpoint, name, value)
        arm({"point": point, "nth": nth, "action": "full"})
        try:
            manager.save()
        except StorageFull:
            told.touch()
        arm()
        manager.restore_or_initialize()
        assert generation_of(manager.checkpoint) == (1.0 if told.exists() else 2.0)
        assert len(manager.checkpoints) == 1

    status = in_child(save)
    if status:
        return f"the save ended with {status}"
    allowed = (1.0,) if told.exists() else (2.0,)
    told.unlink(missing_ok=True)
    return recovered(folder, allowed)


def damaged(folder: Path, harm: Callable[[Path, Path], None]) -> str:
    """The newest of two checkpoints is damaged: it is refused, and the one before it is whole."""
    harm(folder / "ckpt-1", folder / "ckpt-2")
    manager = manager_of(folder, 0.0)
    try:
        manager.checkpoint.restore(folder / "ckpt-2")
    except (CheckpointInvalid, NotFoundError):
        pass
    else:
        return "restored what is damaged"
    if generation_of(manager.checkpoint) != 0.0:
        return "changed something"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            manager.restore_or_initialize(fall_back=True)
    except CheckpointInvalid:
        return "" if harm is swap_between else "did not fall back"
    return "" if generation_of(manager.checkpoint) == 1.0 else "fell back on something else"


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def flip(file: Path, offset: int, bit: int) -> None:
    data = bytearray(file.read_bytes())
    data[offset % len(data)] ^= 1 << bit
    file.write_bytes(data)


def swap(one: Path, other: Path) -> None:
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def swap_between(old: Path, new: Path) -> None:
    swap(shards(old)[0], shards(new)[0])


def old_manifest(old: Path, new: Path) -> None:
    shutil.copy(old / "checkpoint.json", new)


def old_manifest_and_names(old: Path, new: Path) -> None:
    for one, other in zip(shards(old), shards(new), strict=True):
        other.rename(new / one.name)
    old_manifest(old, new)


def old_shards(old: Path, new: Path) -> None:
    for one, other in zip(shards(old), shards(new), strict=True):
        shutil.copy(one, other)


def link(old: Path, new: Path) -> None:
    shard = shards(new)[0]
    target = new / "elsewhere"
    shard.rename(target)
    shard.symlink_to(target)


def rewritten(new: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the manifest, with a checksum that fits."""
    file = new / "checkpoint.json"
    manifest = json.loads(file.read_bytes().splitlines()[0])
    change(manifest)
    body = json.dumps(manifest).encode()
    file.write_bytes(body + b"\n%08x\n" % crc32c(body))


HOSTILE: list[Callable[[dict[str, Any]], None]] = [
    lambda m: m["shards"][0].update(name="../../../etc/passwd"),
    lambda m: m["shards"][0].update(name="/etc/passwd"),
    lambda m: m["shards"][0].update(bytes=2**60),
    lambda m: m["shards"][0].update(header_bytes=2**60),
    lambda m: m["arrays"]["a"].update(shape=[2**50]),
    lambda m: m["arrays"]["a"].update(dtype="object"),
    lambda m: m["arrays"]["a"].update(dtype="os.system"),
    lambda m: m["arrays"]["a"]["parts"][0].update(shape=[2**50]),
    lambda m: m["arrays"]["a"]["parts"][0].update(start=[7]),
    lambda m: m["arrays"]["a"]["parts"][0].update(shard=99),
    lambda m: m["arrays"]["a"]["parts"][0].update(shard=-1),
    lambda m: m["arrays"]["a"]["parts"][0]["stored"].update(offset=-8),
    lambda m: m["arrays"]["a"]["parts"][0]["stored"].update(bytes=2**60),
    lambda m: m["arrays"].update(a=None),
    lambda m: m["positions"].update(a={"pipeline": 1}),
    lambda m: m.update(version=2),
    lambda m: m.update(arrays=[]),
]


def cases(seed: int) -> Iterator[tuple[str, Callable[[Path], str], bool]]:
    """What to do, with what, and whether in a folder with two checkpoints; each kind in turn, for ever."""
    draw = random.Random(seed)

    def harmed(name: str, harm: Callable[[Path, Path], None]) -> tuple[str, Callable[[Path], str], bool]:
        return name, lambda folder: damaged(folder, harm), True

    def on_shard(name: str, change: Callable[[Path], None]) -> tuple[str, Callable[[Path], str], bool]:
        number = draw.randrange(4)
        return harmed(f"{name}, shard {number}", lambda _, new: change(shards(new)[number]))

    def cut(file: Path, length: int) -> None:
        file.write_bytes(file.read_bytes()[: length % file.stat().st_size])

    kills, fulls, hostile = (itertools.cycle(each) for each in (KILL_POINTS, FULL_POINTS, HOSTILE))
    for offset in itertools.count():
        point, nth = next(kills)
        yield f"killed at {point} #{nth}", lambda folder, p=point, n=nth: killed(folder, p, n), False
        point, nth = next(fulls)
        yield f"full at {point} #{nth}", lambda folder, p=point, n=nth: full(folder, p, n), False
        place, bit = offset * 7, draw.randrange(8)
        yield harmed(
            f"manifest, byte {place}, bit {bit}",
            lambda _, new, p=place, b=bit: flip(new / "checkpoint.json", p, b),
        )
        place = draw.randrange(10_000)
        yield on_shard(f"byte {place} of a shard", lambda file, p=place, b=bit: flip(file, p, b))
        yield on_shard(f"cut at {place}", lambda file, p=place: cut(file, p))
        yield harmed(f"manifest cut at {place}", lambda _, new, p=place: cut(new / "checkpoint.json", p))
        yield on_shard("longer", lambda file: file.open("ab").write(b"x") and None)
        yield on_shard("missing", lambda file: file.unlink())
        one, other = draw.sample(range(4), 2)
        yield harmed(
            f"shards {one} and {other} swapped",
            lambda _, new, a=one, b=other: swap(shards(new)[a], shards(new)[b]),
        )
        yield harmed("shards of two checkpoints swapped", swap_between)
        yield harmed("an old manifest", old_manifest)
        yield harmed("an old manifest, names of its shards", old_manifest_and_names)
        yield harmed("old shards", old_shards)
        yield harmed("a link in the place of a shard", link)
        change = next(hostile)
        yield harmed("hostile manifest", lambda _, new, c=change: rewritten(new, c))


def run(count: int, seed: int, folder: Path) -> tuple[list[str], Counter[str]]:
    """Goes through so many cases, in a process without threads; returns what went wrong, and how many of each kind."""
    sample = folder / "sample"
    subprocess.run([sys.executable, "-c", SAMPLE, str(sample)], check=True, timeout=100)
    wrong, kinds = [], Counter[str]()
    for number, (name, call, two) in enumerate(itertools.islice(cases(seed), count)):
        place = folder / str(number)
        if two:
            shutil.copytree(sample, place)
        else:
            place.mkdir()
        kinds[re.sub(r"\d+", "N", name)] += 1
        try:
            told = call(place)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        if told:
            wrong.append(f"case {number}, {name}: {told}")
        shutil.rmtree(place)
    return wrong, kinds


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong, kinds = run(options.cases, options.seed, Path(folder))
    for kind, count in sorted(kinds.items()):
        print(f"{count:6} {kind}")
    print(f"{options.cases - len(wrong)} of {options.cases} restored or refused rightly", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
