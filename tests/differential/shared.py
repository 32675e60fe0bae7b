"""Texts of programs that divide datasets: among hosts by files or elements, into batches, by a data service."""

# ruff: noqa: E501 - each line has one program, or several

from __future__ import annotations

from tests.differential.programs import Drawn


class SharedPrograms(Drawn):
    """Makes programs that give what one host or reader gets, or all of them in turn."""

    def next(self) -> str:
        """The next program, an expression."""
        make = self._random.choice((self._part, self._part, self._part, self._cut, self._sizes, self._served))
        return make()

    def _names(self, count: int) -> str:
        contents = [
            b"".join(b"%d%d\n" % (file, row) for row in range(self._number(0, 3))) for file in range(count)
        ]
        return f"[{', '.join(f'file({content!r})' for content in contents)}]"

    def _source(self) -> str:
        count = self._number(1, 4)
        names = self._names(count)
        return self._either(
            f"Dataset.range({self._number(0, 9)})",
            f"Dataset.range({self._number(0, 9)})",
            f"Dataset.from_tensor_slices(np.arange({self._number(1, 9)}))",
            f"Lines({names})",
            f"Lines({names})",
            f"Pieces({names}, 3)",
            f"Dataset.from_tensor_slices({names}).flat_map(Lines)",
            f"Dataset.from_tensor_slices({names}).interleave(Lines, cycle_length=2)",
            f"Dataset.from_tensor_slices({names}).interleave(Lines, cycle_length=2, num_parallel_calls=2)",
            f"Dataset.from_tensor_slices({names}).shuffle(1).flat_map(Lines)",
            f"Dataset.from_tensor_slices({names}).map(lambda x: x).flat_map(lambda x: Lines(x).map(lambda y: y))",
            f"Dataset.zip((Lines({names}), Lines({names})))",
            f"Dataset.zip((Lines({names}), Dataset.range({self._number(0, 9)})))",
            f"Lines({names}).concatenate(Lines({self._names(2)}))",
            f"Lines({names}).concatenate(Dataset.from_tensors('a'))",
            f"Dataset.choose_from_datasets([Lines({names}), Lines({names})], Dataset.range(2).repeat(3))",
            f"Dataset.from_tensor_slices({names})",
            f"generated([[1] * n for n in range({count})])",
            f"Dataset.range({count}).flat_map(lambda x: Dataset.range(x))",
            f"experimental.CsvDataset({names}, [dtypes.string])",
            f"Records({names})",
            f"Dataset.sample_from_datasets([Lines({names}), Lines({names})], [1.0, 0.0])",
        )

    def _stages(self) -> str:
        return "".join(
            self._either(
                ".take(4)", ".skip(1)", ".repeat(2)", ".shuffle(1)", ".prefetch(2)", ".cache()", ".batch(2)", ".map(lambda *x: x)", ".enumerate()", ".shard(2, 0)",
                ".filter(lambda *x: True)", ".batch(3, drop_remainder=True)", ".prefetch(1).map(lambda *x: x[0])", ".ignore_errors()", ".window(2).flat_map(lambda w: w)",
                ".with_options(options())", ".snapshot(folder())",
            )
            for _ in range(self._random.choice((0, 1, 1, 2, 3)))
        )  # fmt: skip

    def _part(self) -> str:
        hosts = self._number(1, 4)
        policy = self._either("AUTO", "AUTO", "FILE", "DATA", "OFF", "HINT")
        data = self._source()
        if policy == "HINT":
            data += self._either(
                "", ".shard(experimental.SHARD_HINT, experimental.SHARD_HINT)", ".shard(-1, -1).shard(-1, -1)"
            )
        index = (
            self._number(0, hosts - 1) if self._random.random() > 0.04 else self._random.choice((-1, hosts))
        )
        return f"auto_shard({data}{self._stages()}, {policy!r}, {hosts if self._random.random() > 0.03 else 0}, {index})"

    def _rows(self) -> str:
        count = self._number(0, 9)
        return self._either(
            f"Dataset.range({count})", f"Dataset.from_tensor_slices(np.arange({2 * count}).reshape(-1, 2))", f"Dataset.from_tensor_slices((np.arange({count}), np.zeros(({count}, 2))))",
            f"Dataset.from_tensor_slices({{'a': np.arange({count}), 'b': [str(n) for n in range({count})]}})", f"Dataset.from_tensor_slices(np.zeros(({count}, 2, 0)))",
            f"generated([[n] * 2 for n in range({count})])",
        )  # fmt: skip

    def _batched(self) -> str:
        text = f"{self._rows()}.batch({self._number(1, 5)}{self._either('', ', drop_remainder=True')})"
        return text + self._either(
            "", "", ".map(lambda *x: x)", ".take(2)", ".repeat(2)", ".prefetch(1)", ".filter(lambda *x: True)", ".shuffle(1)", ".unbatch().batch(3)", ".batch(2)", ".unbatch()",
            f".concatenate({self._rows()}.batch(2))", ".cache()", ".skip(1)", ".rebatch(2)", ".padded_batch(2)", ".enumerate()",
        )  # fmt: skip

    def _cut(self) -> str:
        data = self._batched()
        sizes = self._random.choice((1, 2, 3, 4, [1], [2, 1], [0, 2], [1, 0, 1], [3, 2, 1], [4]))
        if self._random.random() < 0.1:
            sizes = self._random.choice((0, -1, [], [0], [-1, 1], 1.5, "a", [[1]], True))
        drop = self._either("", ", drop_remainder=True", ", drop_remainder=False")
        return self._either(
            f"{data}.rebatch({sizes!r}{drop})", f"{data}.rebatch({sizes!r}{drop})", f"{data}.rebatch(np.array({sizes!r}){drop})",
        )  # fmt: skip

    def _sizes(self) -> str:
        return self._either(
            f"batch_size({self._batched()})",
            f"batch_size({self._source()}{self._stages()})",
            f"sizes({self._number(0, 12)}, {self._number(1, 4)}, {self._number(1, 4)}, {self._number(0, 4)})",
        )

    def _served(self) -> str:
        """With one worker, so that the order is that of the dataset."""
        mode = self._either(
            "'parallel_epochs'", "'distributed_epoch'", "service.ShardingPolicy.OFF", "service.ShardingPolicy.DYNAMIC", "'parallel_epochs'",
            *(("'nothing'", "1", "None", "service.ShardingPolicy.FILE", "service.ShardingPolicy.HINT", "'PARALLEL_EPOCHS'") if self._random.random() < 0.15 else ()),
        )  # fmt: skip
        data = self._either(
            "Dataset.range(7)", "Dataset.range(0)", "Dataset.range(5).map(lambda x: (x, x))", "Dataset.range(6).batch(4)", "Dataset.range(4).map(lambda x: {'a': x})", "Dataset.range(5).map(refused)",
            "Dataset.range(4).repeat(2)", f"Lines({self._names(2)})", "Dataset.range(6).filter(lambda x: x > 2)", "Dataset.from_tensor_slices(['a', 'b'])", "Dataset.range(5).shuffle(1)",
            "Dataset.zip((Dataset.range(3), Dataset.range(4)))", "Dataset.range(3).concatenate(Dataset.range(2))", "Dataset.range(6).window(2)", "Dataset.range(3).flat_map(lambda x: Dataset.range(x))",
            "Dataset.range(4).enumerate()", "Dataset.range(3).cache()", "Dataset.range(3).take(2)", "Dataset.range(3).interleave(lambda x: Dataset.range(x), 2)",
        )  # fmt: skip
        more = self._either("", "", ", job_name='j' + str(number())", ", job_name=None")
        if self._random.random() < 0.06:
            more = self._either(", job_name=''", ", job_name=1")
        more += self._either("", "", ", max_outstanding_requests=1", ", max_outstanding_requests=8")
        more += self._either("", "", ", compression=None", ", compression='AUTO'")
        more += self._either(
            "",
            "",
            "",
            ", target_workers='ANY'",
            ", target_workers='AUTO'",
            ", target_workers='LOCAL'",
            ", data_transfer_protocol='grpc'",
        )
        if self._random.random() < 0.15:
            more += self._either(
                ", consumer_index=0", ", num_consumers=1", ", consumer_index=0, num_consumers=1", ", consumer_index=1, num_consumers=1", ", consumer_index=-1, num_consumers=2",
            )  # fmt: skip
        if self._random.random() < 0.05:
            more = self._either(
                ", compression='LZ'",
                ", target_workers='x'",
                ", max_outstanding_requests=0",
                ", max_outstanding_requests=-1",
            )
        then = self._either("", ".take(3)", ".map(lambda *x: x)", ".repeat(2)", ".batch(2)", ".skip(1)")
        applied = f"{data}.apply(service.distribute({mode}, target(){more}))"
        if self._random.random() < 0.25:
            known = self._either("", f", element_spec={data}.element_spec")
            applied = f"service.from_dataset_id({mode}, target(), service.register_dataset(target(), {data}){known}{more.replace(', compression=None', '').replace(', compression=' + repr('AUTO'), '')})"
        return f"{applied}{then}"
