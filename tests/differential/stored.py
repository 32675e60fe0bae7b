"""Texts of programs that keep elements, or places of iterators, in files: save, load, snapshot, checkpoints."""

# ruff: noqa: E501 - each line has one program, or several

from __future__ import annotations

from tests.differential.shapes import Shape, paths
from tests.differential.structures import StructuredPrograms, arguments_of


class StoredPrograms(StructuredPrograms):
    """Makes programs that store a pass or a place, and read on."""

    def _asked(self, text: str, shape: Shape) -> str:
        return self._random.choice((self._saved, self._snapshot, self._resumed, self._resumed))(text, shape)

    def _resumed(self, text: str, shape: Shape) -> str:
        return f"resumed({text}{self._more()}, {self._number(0, 5)})"

    def _more(self) -> str:
        """A stage with its own state, or none."""
        thrice = "lambda *x: Dataset.from_tensors(x).repeat(3)"
        return self._either(
            "", "", ".repeat(2)", ".repeat(3).skip(1)", ".cache()", ".cache().repeat(2)", ".prefetch(2)",
            ".shuffle(1).repeat(2)", ".shuffle(3, seed=1).map(lambda *x: 1)", ".enumerate()",
            ".window(2, 1).map(lambda *x: 1)", ".take(2).repeat(2)", ".cache(folder() + '/c')", ".ignore_errors()",
            ".apply(experimental.snapshot(folder()))", ".snapshot(folder()).repeat(2)", ".rebatch(2)",
            ".take(3).repeat()", f".interleave({thrice}, 2, 1).take(9)",
            f".interleave({thrice}, 2, 2, num_parallel_calls=2)", f".flat_map({thrice})",
            ".group_by_window(lambda *x: np.int64(0), lambda key, window: window, 2)",
        )  # fmt: skip

    def _pack(self) -> str:
        return self._either("", ", compression='GZIP'", ", compression='SNAPPY'", ", compression=None", *([", compression='LZ'"] if self._oddly() else []))  # fmt: skip

    def _shard(self, shape: Shape) -> str:
        path, _ = self._random.choice(paths("x", shape))
        number = self._either("np.int64(0)", f"size({path}) % 3", f"size({path})", "np.int64(1)")
        if self._oddly():
            number = self._either("0", "-1", "1.5", "'a'", "np.int32(1)", "np.int64(-2)", "True")
        return self._either("", f", shard_func=lambda {arguments_of(shape)}: {number}")

    def _reader(self) -> str:
        function = self._either(
            "lambda files: files.flat_map(lambda x: x)",
            "lambda files: files.interleave(lambda x: x, cycle_length=2)",
            "lambda files: files.interleave(lambda x: x.take(1), cycle_length=1)",
            "lambda files: files.take(1).flat_map(lambda x: x)",
            "lambda files: files.shuffle(1).flat_map(lambda x: x).take(3)",
        )
        if self._oddly():
            function = self._either("lambda files: files", "lambda files: 1", "lambda files: None")
        return self._either("", f", reader_func={function}")

    def _saved(self, text: str, shape: Shape) -> str:
        shard, reader = self._shard(shape), self._reader()
        if shard and not reader and self._random.random() < 0.8:
            reader = ", reader_func=lambda files: files.flat_map(lambda x: x)"
        pack = self._pack()
        read = pack  # TensorFlow has to be given it; workbench finds it in the files
        if self._oddly():
            read = self._either(
                f"{pack}, element_spec=Spec([], 'int64')", ", compression='GZIP'", ", compression='LZ'"
            )
        return f"loaded({text}, dict({(pack + shard)[2:]}), dict({(read + reader)[2:]}))"

    def _snapshot(self, text: str, shape: Shape) -> str:
        arguments = "folder()" + self._pack() + self._shard(shape) + self._reader()
        stage = self._either(f".snapshot({arguments})", f".apply(experimental.snapshot({arguments}))")
        return self._either(
            f"twice({text}{stage})",
            f"twice({text}{stage}.repeat(2))",
            f"twice({text}{stage}.take(2))",
            f"{text}{stage}",
        )
