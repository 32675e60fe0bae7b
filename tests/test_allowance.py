"""Cores and memory as a container's control groups limit them, in both versions of Linux's control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench import allowance
from workbench.allowance import cores_quota, memory_limit_bytes

FIRST = (
    "12:memory:/docker/1f2e\n9:cpu,cpuacct:/docker/1f2e\n3:cpuset:/docker/1f2e\n1:name=systemd:/docker/1f2e\n"
)
SECOND = "0::/\n"
UNLIMITED_IN_THE_FIRST = "9223372036854771712\n"


def group(folder: Path, **files: str) -> None:
    """A control group; a file's name has "__" for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content + "\n", encoding="ascii")


def test_limits_of_the_second_version(tmp_path: Path) -> None:
    group(tmp_path, cpu__max="150000 100000", memory__max="2147483648")

    assert cores_quota(tmp_path, SECOND) == 1.5
    assert memory_limit_bytes(tmp_path, SECOND) == 2 << 30


@pytest.mark.parametrize("folder", ["cpu,cpuacct", "cpu"])
def test_limits_of_the_first_version_are_mounted_at_the_top_of_a_container(
    tmp_path: Path, folder: str
) -> None:
    group(tmp_path / folder, cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    group(tmp_path / "memory", memory__limit_in_bytes="1073741824")

    assert cores_quota(tmp_path, FIRST) == 0.5
    assert memory_limit_bytes(tmp_path, FIRST) == 1 << 30


def test_the_tightest_group_around_the_process_counts(tmp_path: Path) -> None:
    group(tmp_path / "jobs", cpu__max="200000 100000", memory__max="max")
    group(tmp_path / "jobs" / "mine", cpu__max="800000 100000", memory__max="4294967296")

    assert cores_quota(tmp_path, "0::/jobs/mine\n") == 2
    assert memory_limit_bytes(tmp_path, "0::/jobs/mine\n") == 4 << 30


def test_groups_beside_that_of_the_process_do_not_count(tmp_path: Path) -> None:
    group(tmp_path / "jobs" / "other", cpu__max="100000 100000")
    group(tmp_path / "jobs" / "mine", cpu__max="max 100000")

    assert cores_quota(tmp_path, "0::/jobs/mine\n") is None


def test_no_limit_in_either_version(tmp_path: Path) -> None:
    group(tmp_path, cpu__max="max 100000", memory__max="max")
    group(tmp_path / "cpu", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")

    assert cores_quota(tmp_path, SECOND + FIRST) is None
    assert memory_limit_bytes(tmp_path, SECOND + FIRST) is None
    assert cores_quota(tmp_path / "nowhere", SECOND + FIRST) is None
    assert memory_limit_bytes(tmp_path, "") is None


@pytest.mark.parametrize(("quota", "cores"), [("100000", 1), ("20000", 1), ("110000", 2), ("6400000", 2)])
def test_cores_are_the_quota_rounded_up_at_most_those_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores: int
) -> None:
    group(tmp_path, cpu__max=f"{quota} 100000")
    (tmp_path / "membership").write_text(SECOND, encoding="ascii")
    monkeypatch.setattr(allowance, "_FILES", tmp_path)
    monkeypatch.setattr(allowance, "_MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {3, 7}, raising=False)

    assert allowance.cores() == cores


@pytest.mark.parametrize("limit", ["536870912", UNLIMITED_IN_THE_FIRST.strip()])
def test_memory_is_the_limit_at_most_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    group(tmp_path / "memory", memory__limit_in_bytes=limit)
    (tmp_path / "membership").write_text(FIRST, encoding="ascii")
    monkeypatch.setattr(allowance, "_FILES", tmp_path)
    monkeypatch.setattr(allowance, "_MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": 1 << 20, "SC_PAGE_SIZE": 4096}.__getitem__)

    assert allowance.memory_bytes() == min(int(limit), 4 << 30)


def test_without_control_groups_everything_may_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowance, "_MEMBERSHIP", tmp_path / "nothing")
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(64)), raising=False)

    assert allowance.cores() == 64
