"""Texts of random pipelines, in the names that `evaluate.py` gives them."""

from __future__ import annotations

import random
from collections.abc import Callable


class Drawn:
    """What programs are made of, drawn at random; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def _number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def _either(self, *texts: object) -> str:
        return str(self._random.choice(texts))

    def _flag(self) -> str:
        return self._either(True, False)


class Programs(Drawn):
    """Makes programs: a source, and some stages that may or may not fit what comes before them."""

    def next(self) -> str:
        """The next program, an expression."""
        stages = "".join(self._stage() for _ in range(self._number(1, 5)))
        return self._source() + stages

    def _source(self, depth: int = 0) -> str:
        count = self._number(1, 12)
        dtype = self._either("int32", "int64", "float32", "float64", "uint8")
        plain = [
            f"Dataset.range({self._number(0, 20)})",
            f"Dataset.range({self._number(-3, 5)}, {self._number(0, 20)}, {self._either(1, 2, 3, -1, -2)})",
            f"Dataset.range({count}, output_type=np.{dtype})",
            f"Dataset.from_tensor_slices(np.arange({count}, dtype=np.{dtype}))",
            f"Dataset.from_tensor_slices(np.arange({2 * count}, dtype=np.float32).reshape(-1, 2))",
            f"Dataset.from_tensor_slices({{'a': np.arange({count}), 'b': np.ones(({count}, 2), np.float32)}})",
            f"Dataset.from_tensor_slices((np.arange({count}, dtype=np.int32), np.arange({count}) * 2))",
            f"Dataset.from_tensors(np.arange({self._number(0, 6)}))",
            "Dataset.from_tensor_slices([[1, 2, 3], [4, 5, 6]])",
            f"generated([[1] * n for n in {[self._number(0, 4) for _ in range(count)]}])",
        ]
        if depth:
            return self._either(*plain)
        first, second = self._source(1), self._source(1)
        choices = [self._number(0, 1) for _ in range(count)]
        combined = [
            f"Dataset.zip(({first}, {second})).map(lambda *x: x[{self._number(0, 1)}])",
            f"Dataset.zip({{'u': {first}, 'v': {second}}})",
            f"Dataset.choose_from_datasets([Dataset.range({count}), Dataset.range({count}, {2 * count})], "
            f"Dataset.from_tensor_slices(np.array({choices}, np.int64)), stop_on_empty_dataset={self._flag()})",
        ]
        return self._either(*plain, *combined)

    def _stage(self) -> str:
        stage: Callable[[], str] = self._random.choice(
            (self._function, self._whole, self._batches, self._inner)
        )
        return stage()

    def _function(self) -> str:
        return "." + self._either(
            "map(lambda *x: x)",
            "map(lambda *x: x[0])",
            "map(lambda *x: (x[-1], x[-1]))",
            "map(lambda *x: {'k': x[0]})",
            "map(lambda x: x + x)",
            "map(lambda x: -x)",
            "map(lambda x: x + x, num_parallel_calls=2, deterministic=True)",
            "map(lambda x: refused(x))",
            "map(lambda x: refused(x)).ignore_errors()",
            f"map(lambda x: numbers(as_int(x) % {self._number(2, 5)}))",
            f"filter(lambda x: x % {self._number(2, 4)} == {self._number(0, 1)})",
            "filter(lambda *x: True)",
            f"take_while(lambda x: x < {self._number(0, 12)})",
            "scan(np.int64(0), lambda state, x: (state + as_int(x), state))",
            "scan(np.int64(0), lambda state, *x: (state + 1, x[0]))",
        )

    def _whole(self) -> str:
        low, high = self._number(-2, 6), self._number(0, 3)
        return "." + self._either(
            f"take({low})",
            f"skip({low})",
            f"shard({self._number(1, 4)}, {high})",
            f"repeat({high})",
            f"skip({high}).repeat().take({self._number(0, 9)})",
            "cache()",
            f"prefetch({high})",
            f"enumerate({low}).map(lambda number, *x: number)",
            "enumerate()",
            "unique()",
            f"concatenate({self._source(1)})",
            f"apply(lambda dataset: dataset.take({high}))",
        )

    def _batches(self) -> str:
        size, drop = self._number(1, 5), self._flag()
        return "." + self._either(
            f"batch({size}, drop_remainder={drop})",
            f"batch({size})",
            f"batch({size}).map(lambda *x: x[0])",
            f"padded_batch({size}, drop_remainder={drop})",
            f"padded_batch({size}, padded_shapes=[{self._number(0, 4)}])",
            "unbatch()",
            f"rebatch({size}, drop_remainder={drop})",
            f"rebatch([{size}, {self._number(1, 4)}], drop_remainder={drop})",
            "bucket_by_sequence_length(lambda *x: 1, [2], [2, 2])",
            f"bucket_by_sequence_length(lambda x: length(x), [2, 4], [2, {size}, 3], drop_remainder={drop})",
        )

    def _inner(self) -> str:
        cycle, block, count = self._number(1, 4), self._number(1, 3), self._number(0, 4)
        shift = self._either(None, 1, 2, 6)
        return "." + self._either(
            f"interleave(lambda *x: Dataset.from_tensors(x).repeat({count}), {cycle}, {block})",
            f"interleave(lambda x: Dataset.range(as_int(x) % {block + 1}), {cycle}, {block})",
            f"flat_map(lambda *x: Dataset.from_tensors(x).repeat({count}))",
            "flat_map(lambda x: Dataset.from_tensor_slices(x))",
            f"window({cycle}, shift={shift}, stride={block}, drop_remainder={self._flag()})"
            f".flat_map(lambda window: window.batch({self._number(1, 5)}, drop_remainder={self._flag()}))",
            f"group_by_window(lambda x: as_int(x) % {block}, lambda key, window: window.batch({cycle}), {cycle + 1})",
            f"group_by_window(lambda *x: np.int64(0), lambda key, window: window.batch({cycle}), {cycle})",
        )
