"""Texts of programs whose elements fail: inside of `interleave`, behind `prefetch`, between parallel calls, in windows."""

# ruff: noqa: E501 - each line has one program, or several

from __future__ import annotations

from tests.differential.programs import Drawn


class FailingPrograms(Drawn):
    """Makes programs of scalars, some of which fail, at several depths."""

    def next(self) -> str:
        """The next program, an expression."""
        text = self._source(self._number(0, 1))
        for _ in range(self._number(1, 3)):
            text += self._stage()
        return self._either(
            *[text] * 5, f"resumed({text}, {self._number(0, 6)})", f"steps({text}.ignore_errors(), 9)"
        )

    def _count(self) -> int:
        return self._number(0, 6)

    def _source(self, depth: int) -> str:
        count = self._count()
        failing = ", ".join(self._random.choices(("FAIL", *map(str, range(count))), k=count) if count else ())
        plain = (
            f"Dataset.range({count})", f"Dataset.range({count})", f"Dataset.range({count}).map(refused)", f"Dataset.range({count}).map(refused).ignore_errors()",
            f"generator([{failing}], Spec([], 'int64'))", f"Dataset.range({count}).repeat(2)", f"Dataset.range({count}).map(lambda x: checked(x, x), num_parallel_calls=2, deterministic=True)",
        )  # fmt: skip
        if not depth:
            return self._either(*plain)
        one, other = self._source(0), self._source(0)
        return self._either(
            *plain, f"{one}.concatenate({other})", f"Dataset.zip(({one}, {other})).map(lambda x, y: x + y)",
            f"Dataset.choose_from_datasets([{one}, {other}], Dataset.from_tensor_slices(np.array({[self._number(0, 1) for _ in range(self._count())]}, np.int64)), stop_on_empty_dataset={self._flag()})",
        )  # fmt: skip

    def _inner(self, depth: int = 1) -> str:
        """A dataset of scalars for a scalar x."""
        count = self._number(0, 4)
        text = self._either(
            f"Dataset.from_tensors(x).repeat({count})", f"Dataset.range({count}).map(lambda y: checked(x + y, y))", f"Dataset.range({count}).map(refused)", f"Dataset.range(x % {count + 1})",
            f"Dataset.from_tensors(checked(x, x)).repeat({count})", f"Dataset.range({count}).map(lambda y: x * 10 + y)", f"Dataset.range({count}).map(lambda y: checked(y, x * 10 + y), num_parallel_calls=2, deterministic=True)",
        )  # fmt: skip
        more = self._either(
            "",
            "",
            "",
            ".prefetch(1)",
            ".ignore_errors()",
            ".take(2)",
            ".repeat(2)",
            ".cache()",
            ".batch(2).unbatch()",
            ".enumerate().map(lambda n, y: y + n)",
            ".filter(lambda y: y % 2 == 0)",
        )
        if depth and self._random.random() < 0.15:
            inner = f"Dataset.range({count}).map(lambda z: checked(y + z, z))"
            return f"{text}.interleave(lambda y: {inner}, {self._number(1, 3)}, {self._number(1, 2)})"
        return text + more

    def _interleave(self) -> str:
        cycle, block = self._number(1, 4), self._number(1, 3)
        calls = self._either(
            "",
            "",
            ", num_parallel_calls=1",
            f", num_parallel_calls={cycle}",
            f", num_parallel_calls={cycle}, deterministic=True",
            ", num_parallel_calls=-1",
        )
        return f".interleave(lambda x: {self._inner()}, {cycle}, {block}{calls})"

    def _stage(self) -> str:
        size, low = self._number(1, 4), self._number(0, 4)
        if self._random.random() < 0.4:
            return self._interleave() + self._either(
                "",
                "",
                ".prefetch(2)",
                ".ignore_errors()",
                ".prefetch(1).ignore_errors()",
                ".ignore_errors().prefetch(1)",
            )
        return self._either(
            f".flat_map(lambda x: {self._inner()})", f".prefetch({low})", ".ignore_errors()", ".map(refused)", ".map(lambda x: x + x, num_parallel_calls=3, deterministic=True)",
            ".map(refused, num_parallel_calls=2, deterministic=True)", f".prefetch(1).batch({size}).unbatch()", f".prefetch(1).batch({size}, drop_remainder=True).unbatch()", f".prefetch(2).padded_batch({size}).unbatch()",
            f".window({size}, shift={self._number(1, 3)}).flat_map(lambda w: w)", f".window({size}).flat_map(lambda w: w.batch({size})).unbatch()", f".group_by_window(lambda x: x % 2, lambda key, w: w.take({size}), {size})",
            ".scan(np.int64(0), lambda s, x: (s + x, s))", ".scan(np.int64(0), lambda s, x: (s + 1, checked(s, x)))", f".take({low})", f".shard({size}, {self._number(0, size - 1)})", ".repeat(2)", ".cache()", ".cache().repeat(2)", ".enumerate().map(lambda n, x: n + x)",
            f".take_while(lambda x: x < {low * 3})", f".take_while(lambda x: checked(x, x) < {low * 3})", ".filter(lambda x: checked(x, x) % 2 == 0)", ".unique()", ".shuffle(1)", ".filter(lambda x: x % 2 == 0)",
            f".concatenate({self._source(0)})", f".bucket_by_sequence_length(lambda x: as32(x), [2, {size + 2}], [1, {size}, 2], no_padding=True).unbatch()",
        )  # fmt: skip
