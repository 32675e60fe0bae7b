"""Texts of programs that read from a data service with several workers: what they give whatever its order."""

# ruff: noqa: E501 - each line has one program, or several

from __future__ import annotations

from tests.differential.programs import Drawn


class ServedPrograms(Drawn):
    """Makes programs that give all elements of one or several readers, sorted, or whether a program is refused."""

    def next(self) -> str:
        """The next program, an expression."""
        make = self._random.choice((
            self._read, self._read, self._read, self._read, self._shared, self._again, self._registered, self._spec,
            self._refused, self._refused, self._late, self._cached, self._cached, self._same_trainer,
        ))  # fmt: skip
        return make()

    def _names(self) -> str:
        contents = [
            b"".join(b"%d%d\n" % (file, row) for row in range(self._number(0, 4)))
            for file in range(self._number(1, 5))
        ]
        return f"[{', '.join(f'file({content!r})' for content in contents)}]"

    def _source(self, dealt: bool) -> str:
        """A source. If its elements are distributed, one whose parts do not depend on who has the others."""
        count, other = self._number(0, 9), self._number(1, 5)
        names = self._names()
        alone = (
            f"Dataset.range({count})", f"Dataset.range({count})", f"Dataset.range({count}, {-count}, -2)", f"Dataset.from_tensor_slices(np.arange({count + 1}))",
            f"Dataset.from_tensor_slices({{'a': np.arange({other}), 'b': ['x'] * {other}}})", f"Dataset.from_tensors({count}).repeat({other})", f"Dataset.from_tensors(np.arange({count}))",
            f"Lines({names})", f"Lines({names})", f"Dataset.from_tensor_slices({names}).flat_map(Lines)", f"Dataset.from_tensor_slices({names}).interleave(Lines, cycle_length=2)",
            f"Pieces({names}, 3)", f"Dataset.range({count}).concatenate(Dataset.range(10, {10 + other}))", f"Lines({names}).concatenate(Lines({self._names()}))",
            f"Dataset.range({other}).flat_map(lambda x: Dataset.range(x))", f"Dataset.range({other}).interleave(lambda x: Dataset.from_tensors(x).repeat(2), 3)",
            f"Dataset.choose_from_datasets([Dataset.range({count}), Dataset.range(20, {20 + other})], Dataset.range(2).repeat(), stop_on_empty_dataset=False)",
            f"Dataset.sample_from_datasets([Dataset.range({count}), Dataset.range({other})], [1.0, 0.0])", "Dataset.range(0)",
        )  # fmt: skip
        together = (
            f"Dataset.zip((Dataset.range({count}), Dataset.range({other})))", f"generated([[1] * n for n in range({other})])", f"Dataset.zip({{'u': Lines({names}), 'v': Lines({names})}})",
            f"Dataset.choose_from_datasets([Dataset.range({count}), Dataset.range(20, {20 + other})], Dataset.range(2).repeat())", f"Dataset.counter().take({other})",
        )  # fmt: skip
        return self._either(*alone, *(() if dealt else together))

    def _stages(self, dealt: bool) -> str:
        """Stages. If elements are distributed, only those that look at one element at a time."""
        count = self._number(1, 4)
        alone = (
            ".map(lambda *x: x)", ".filter(lambda *x: True)", ".prefetch(2)", ".ignore_errors()", ".map(lambda *x: x[0])", ".with_options(options())", ".shuffle(5)", f".repeat({count})",
            f".flat_map(lambda *x: Dataset.from_tensors(x).repeat({count}))", f".interleave(lambda *x: Dataset.from_tensors(x).repeat({count}), 2, num_parallel_calls=2)", ".map(lambda *x: x, num_parallel_calls=2)",
            ".batch(1)", f".batch({count}).unbatch()", ".window(2).flat_map(lambda w: w)", ".take_while(lambda *x: True)", ".cache()", ".skip(0)", ".take(-1)", ".apply(experimental.ignore_errors())",
        )  # fmt: skip
        together = (
            f".take({count})", f".skip({count})", f".batch({count})", f".batch({count}, drop_remainder=True)", ".enumerate()", ".shard(2, 1)", ".unbatch()", ".unique()", ".repeat(2).take(3)", f".rebatch({count})",
            ".shard(experimental.SHARD_HINT, experimental.SHARD_HINT)", ".scan(np.int64(0), lambda state, *x: (state + 1, x[0]))",
        )  # fmt: skip
        stages = [stage for stage in alone if dealt or "shuffle" not in stage]
        return "".join(
            self._either(*stages, *(() if dealt else together))
            for _ in range(self._random.choice((0, 0, 1, 1, 2, 3)))
        )

    def _mode(self) -> str:
        return self._either(
            "'parallel_epochs'", "'distributed_epoch'", "'distributed_epoch'", "service.ShardingPolicy.DYNAMIC",
            *(f"service.ShardingPolicy.{name}" for name in ("OFF", "FILE", "DATA", "FILE_OR_DATA", "HINT")),
        )  # fmt: skip

    def _data(self, mode: str) -> str:
        dealt = mode in ("'distributed_epoch'", "service.ShardingPolicy.DYNAMIC")
        return self._source(dealt) + self._stages(dealt)

    def _workers(self) -> str:
        return f"several({self._number(2, 3)}, {self._either(True, True, False)})"

    def _more(self) -> str:
        return self._either(
            "", "", ", max_outstanding_requests=1", ", max_outstanding_requests=9"
        ) + self._either("", "", ", compression=None")

    def _applied(self, more: str = "") -> str:
        mode = self._mode()
        return f"{self._data(mode)}.apply(service.distribute({mode}, {self._workers()}{self._more()}{more}))"

    def _read(self) -> str:
        then = self._either("", "", "", ".batch(2).unbatch()", ".map(lambda *x: x)")
        return f"gathered({self._applied()}{then})"

    def _shared(self) -> str:
        name = f", job_name='shared' + str(number()){self._either('', ' + str(number())')}"
        return f"(lambda dataset: gathered(dataset, dataset))({self._applied(name)})"

    def _again(self) -> str:
        """Two passes: two jobs, with one name or none."""
        name = self._either("", ", job_name='again' + str(number())")
        return self._either(
            f"(lambda dataset: [gathered(dataset), gathered(dataset)])({self._applied(name)})",
            f"gathered({self._applied(name)}.repeat(2))",
        )

    def _registered(self) -> str:
        mode, workers = self._mode(), self._workers()
        name = self._either("", "", ", job_name='known' + str(number())")
        return (
            f"(lambda dataset, workers: gathered(service.from_dataset_id({mode}, workers, "
            f"service.register_dataset(workers, dataset), dataset.element_spec{name})))({self._data(mode)}, {workers})"
        )

    def _spec(self) -> str:
        return f"told({self._applied()}.element_spec)"

    def _late(self) -> str:
        """A reader that comes after the end of a job with its name."""
        mode = self._mode()
        return (
            f"(lambda data, name: [gathered(data.apply(service.distribute({mode}, several(2, True), job_name=name))) "
            f"for _ in range(2)])({self._source(True)}, 'late' + str(number()))"
        )

    def _trainer(self, mode: str, workers: int) -> str:
        return (
            f"lambda trainer: data.apply(service.distribute({mode}, several({workers}, True), job_name=name, "
            f"cross_trainer_cache=service.CrossTrainerCache(trainer){self._more()}))"
        )

    def _cached(self) -> str:
        """Trainers that read what one worker has made, each at its own pace, some of them late."""
        mode = self._mode()
        data = self._source(True) + self._stages(True).replace(".shuffle(5)", "")
        end = self._either(
            ".repeat()", ".filter(lambda *x: True).repeat()", ".repeat().filter(lambda *x: True)", ""
        )
        turns = [(f"t{self._number(1, 3)}", self._number(1, 9)) for _ in range(self._number(1, 6))]
        reads = f"in_turn({self._trainer(mode, 1)}, {turns})"
        return f"(lambda data, name: {reads})({data}{end}, 'cached' + str(number()))"

    def _same_trainer(self) -> str:
        """Two readers of one trainer, and one of another: whether the two share elements, and all are in order."""
        make = self._trainer(self._either("'parallel_epochs'", "'distributed_epoch'"), 1)
        turns = [(reader, self._number(1, 30)) for reader in ("a1", "a2", "a1", "b1", "a2")]
        first, second = "[*found[0], *found[2]]", "[*found[1], *found[4]]"
        told = ", ".join(
            f"list(map(int, {part})) == sorted(map(int, {part}))" for part in (first, second, "found[3]")
        )
        shared = f"len({{*map(int, [*{first}, *{second}])}}) == len([*{first}, *{second}])"
        return (
            f"(lambda data, name: (lambda found: [{shared}, {told}])(in_turn(lambda reader: ({make})(reader[0]), {turns})))"
            "(Dataset.counter(), 'same' + str(number()))"
        )

    def _refused(self) -> str:
        data = self._either(
            "Dataset.range(4)", "Dataset.range(4).repeat()", "Dataset.range(4).window(2)", "Dataset.range(0)",
            "generated([[1]])", "Dataset.range(4).map(refused)", "Dataset.range(4).filter(lambda x: True).repeat()",
        )  # fmt: skip
        wrong = self._either(
            ", job_name=''", ", job_name=1", ", job_name=None", ", max_outstanding_requests=0", ", max_outstanding_requests=-1", ", max_outstanding_requests='a'", ", compression='LZ'",
            ", compression='SNAPPY'", ", compression=1", ", target_workers='x'", ", target_workers='local'", ", target_workers='ANY'", ", target_workers=1", ", data_transfer_protocol='tcp'", ", data_transfer_protocol=''",
            ", consumer_index=0, num_consumers=1", ", consumer_index=0, num_consumers=1, job_name='r' + str(number())", ", consumer_index=2, num_consumers=2, job_name='r' + str(number())",
            ", consumer_index=-1, num_consumers=2, job_name='r' + str(number())", ", consumer_index=0, num_consumers=0, job_name='r' + str(number())", ", consumer_index='a', num_consumers=1, job_name='r' + str(number())",
            ", cross_trainer_cache=1", ", cross_trainer_cache=service.CrossTrainerCache('t')", ", cross_trainer_cache=service.CrossTrainerCache('t'), job_name='c' + str(number())",
            ", cross_trainer_cache=service.CrossTrainerCache(''), job_name='c' + str(number())", ", cross_trainer_cache=service.CrossTrainerCache(1), job_name='c' + str(number())",
            ", cross_trainer_cache=service.CrossTrainerCache('t'), consumer_index=0, num_consumers=1, job_name='c' + str(number())", ", target_workers='LOCAL', consumer_index=0, num_consumers=1, job_name='r' + str(number())",
        )  # fmt: skip
        mode = self._either(self._mode(), self._mode(), "'nothing'", "1", "None", "''", "'PARALLEL_EPOCHS'")
        return f"is_refused(lambda: {data}.apply(service.distribute({mode}, several(2, True){wrong})))"
