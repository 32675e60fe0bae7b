"""How policies divide datasets among hosts, and the reasons they give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workbench.data import SHARD_HINT, AutoShardPolicy, Dataset, Options, TextLineDataset, auto_shard
from workbench.data.sharding.autoshard import choose_policy, is_file_based
from workbench.data.stages.ordering.select import Shard
from workbench.data.stages.prefetch import Prefetch
from workbench.errors import InvalidArgumentError, NotFoundError, OutOfRangeError


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"f{number}.txt" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_text(f"{number}0\n{number}1\n")
    return [str(path) for path in paths]


def with_policy(dataset: Dataset, policy: str) -> Dataset:
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[policy]
    return dataset.with_options(options)


def parts(dataset: Dataset, hosts: int) -> list[list[Any]]:
    return [
        [getattr(x, "tolist", lambda x=x: x)() for x in auto_shard(dataset, hosts, h).dataset]
        for h in range(hosts)
    ]


def test_auto_takes_data_for_sources_in_memory_and_says_why() -> None:
    choice = choose_policy(Dataset.from_tensor_slices([1, 2]))
    assert (str(choice), choice.reason) == ("AUTO→DATA", "source is in memory")
    assert parts(Dataset.range(5), 2) == [[0, 2, 4], [1, 3]]


def test_auto_deals_files_to_hosts(files: list[str]) -> None:
    dataset = TextLineDataset(files)
    assert str(choose_policy(dataset)) == "AUTO→FILE"
    assert parts(dataset, 2) == [[b"00", b"01", b"20", b"21"], [b"10", b"11"]]
    assert parts(with_policy(TextLineDataset(files), "DATA"), 2)[0] == [b"00", b"10", b"20"]


def test_hosts_of_one_process_do_not_share_what_is_cached_of_their_files(files: list[str]) -> None:
    assert parts(TextLineDataset(files).cache(), 3) == [[b"00", b"01"], [b"10", b"11"], [b"20", b"21"]]
    zipped = Dataset.zip((TextLineDataset(files).cache(), TextLineDataset(files))).map(lambda x, y: x)
    assert parts(zipped, 3) == [[b"00", b"01"], [b"10", b"11"], [b"20", b"21"]]


@pytest.mark.parametrize("method", ["flat_map", "interleave"])
def test_files_are_dealt_before_the_readers_that_a_function_makes(files: list[str], method: str) -> None:
    names = Dataset.from_tensor_slices(files)
    dataset = getattr(names, method)(lambda name: TextLineDataset(name))
    assert is_file_based(dataset)
    assert [sorted(part) for part in parts(dataset, 3)] == [[b"00", b"01"], [b"10", b"11"], [b"20", b"21"]]


@pytest.mark.parametrize("method", ["flat_map", "interleave"])
@pytest.mark.parametrize("policy", ["AUTO", "FILE"])
def test_fewer_files_than_hosts_are_refused_also_where_a_function_makes_the_readers(
    files: list[str], method: str, policy: str
) -> None:
    names = Dataset.from_tensor_slices(files)
    dataset = with_policy(getattr(names, method)(lambda name: TextLineDataset(name)), policy)
    count = len(files)
    says = rf"{count} file\(s\) cannot be divided among {count + 1} hosts; use at least {count + 1} files"
    with pytest.raises(InvalidArgumentError, match=says):
        parts(dataset, count + 1)


def test_shuffled_file_lists_are_dealt_without_loss_or_duplicates(files: list[str], tmp_path: Path) -> None:
    dataset = Dataset.list_files(str(tmp_path / "*.txt")).interleave(TextLineDataset, cycle_length=2)
    first, second = parts(dataset, 2)
    assert sorted(first + second) == sorted(TextLineDataset(files))


def test_concatenated_and_zipped_readers_are_dealt_each_on_their_own(files: list[str]) -> None:
    joined = TextLineDataset(files).concatenate(TextLineDataset(files[:2]))
    assert parts(joined, 2)[1] == [b"10", b"11", b"10", b"11"]
    zipped = Dataset.zip((TextLineDataset(files), TextLineDataset(files)))
    assert is_file_based(zipped)
    mixed = Dataset.zip((TextLineDataset(files), Dataset.range(9)))
    assert not is_file_based(mixed)
    assert "zip" in choose_policy(mixed).reason
    with pytest.raises(NotFoundError, match="zip"):
        auto_shard(with_policy(mixed, "FILE"), 2, 0)


def test_choices_among_readers_are_made_for_the_elements_of_all_files(files: list[str]) -> None:
    reader = TextLineDataset(files)
    chosen = Dataset.choose_from_datasets([reader, reader], Dataset.range(2).repeat(2))
    assert choose_policy(chosen).used is AutoShardPolicy.DATA
    assert (
        choose_policy(chosen).reason
        == "the choices of choose_from_datasets are for the elements of all files"
    )
    assert [element for host in parts(chosen, 2) for element in host] == [b"00", b"01", b"00", b"01"]
    with pytest.raises(NotFoundError, match="choose_from_datasets"):
        auto_shard(with_policy(chosen, "FILE"), 2, 0)


def test_the_reason_names_choices_only_where_these_keep_files_from_being_divided(files: list[str]) -> None:
    def chosen(dataset: Dataset) -> Dataset:
        return Dataset.choose_from_datasets([dataset, dataset], Dataset.range(2))

    reader, numbers = TextLineDataset(files), Dataset.range(2)
    named = Dataset.from_tensor_slices(files)
    choices = "the choices of choose_from_datasets are for the elements of all files"
    reasons = [
        (Dataset.zip((reader, chosen(reader))), choices),
        (reader.concatenate(chosen(reader).map(lambda x: x)), choices),
        (Dataset.zip((reader, chosen(numbers))), "not all datasets of the zip read files"),
        (
            Dataset.zip((chosen(named).interleave(TextLineDataset), numbers)),
            "not all datasets of the zip read files",
        ),
        (chosen(numbers), "source is choose_from_datasets, not files"),
    ]
    for dataset, reason in reasons:
        assert choose_policy(dataset).reason == reason


@pytest.mark.parametrize(("hosts", "host"), [(2, 2), (2, -1), (0, 0), (1, 1)])
def test_a_host_that_is_not_there_is_refused(hosts: int, host: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"index is {host} of {hosts} hosts"):
        auto_shard(Dataset.range(4), hosts, host)


def test_a_list_without_files_is_no_file_source() -> None:
    def refuses_made_up_names(name: bytes) -> Dataset:
        return {b"known": Dataset.range(3)}[name]

    empty = Dataset.from_tensor_slices(["known"]).take(0).flat_map(refuses_made_up_names)
    assert not is_file_based(empty)
    with pytest.raises(OutOfRangeError, match="refuses made-up values"):
        _ = empty.element_spec


def test_fewer_files_than_hosts_is_an_error_for_those_that_have_one(files: list[str]) -> None:
    dataset = TextLineDataset(files)
    for host in range(3):
        with pytest.raises(InvalidArgumentError, match="3 file"):
            list(auto_shard(dataset, 5, host).dataset)
    assert list(auto_shard(dataset, 5, 4).dataset) == []


def test_file_without_reader_is_refused_unless_there_is_one_host() -> None:
    dataset = with_policy(Dataset.range(4), "FILE")
    with pytest.raises(NotFoundError, match="DATA"):
        auto_shard(dataset, 2, 0)
    assert auto_shard(dataset, 1, 0).dataset is dataset


def test_off_gives_everything_to_everyone() -> None:
    assert parts(with_policy(Dataset.range(3), "OFF"), 2) == [[0, 1, 2], [0, 1, 2]]


def test_data_shards_before_a_final_prefetch() -> None:
    stages = auto_shard(Dataset.range(8).batch(2).prefetch(2), 2, 1).dataset.stages
    assert isinstance(stages[-1], Prefetch)
    assert stages[-2] == Shard(2, 1)


def test_hint_fills_in_the_marked_place() -> None:
    hinted = with_policy(Dataset.range(6).shard(SHARD_HINT, SHARD_HINT).batch(2), "HINT")
    assert parts(hinted, 2) == [[[0, 2], [4]], [[1, 3], [5]]]
    unmarked = with_policy(Dataset.range(2), "HINT")
    assert parts(unmarked, 2) == [[0, 1], [0, 1]]
    assert "no shard" in choose_policy(unmarked).reason
    assert len(Dataset.range(6).shard(SHARD_HINT, SHARD_HINT)) == 6
