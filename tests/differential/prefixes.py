"""Texts of pipelines that fit together, each followed by its own longer ones: where elements or cardinality go astray.

Sources and stages that join, nest, group, store and divide elements of one component; then what a reader that stops in
mid-epoch, and one that goes on from there, get.
"""

# ruff: noqa: E501 - each line has one program, or several

from __future__ import annotations

from collections import deque

from tests.differential.programs import Drawn

_PARALLEL = "", "", ", num_parallel_calls=2", ", num_parallel_calls=2, deterministic=True"


class PrefixPrograms(Drawn):
    """Makes programs one stage longer than the last, until a pipeline is complete."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._waiting: deque[str] = deque()

    def next(self) -> str:
        """The next program, an expression."""
        if not self._waiting:
            self._waiting.extend(self._pipeline())
        return self._waiting.popleft()

    def _pipeline(self) -> list[str]:
        texts, is_scalar = [self._source()], True
        for _ in range(self._number(2, 5)):
            text, is_scalar = self._scalars(texts[-1]) if is_scalar else self._vectors(texts[-1])
            texts.append(text)
        end = texts[-1]
        return [
            *texts,
            f"resumed({end}, {self._number(0, 6)})",
            self._either(f"twice({end})", f"optional({end})", f"steps({end}, {self._number(1, 9)})",
                         f"resumed({end}.prefetch(2), {self._number(0, 4)})", f"resumed({end}.repeat(2), {self._number(3, 9)})",
                         f"resumed({end}.map(lambda x: x, num_parallel_calls=2, deterministic=True), {self._number(1, 4)})"),
        ]  # fmt: skip

    def _source(self) -> str:
        count = self._number(0, 9)
        return self._either(
            f"Dataset.range({count})", f"Dataset.range({count})", f"Dataset.range({self._number(-4, 3)}, {count}, {self._either(1, 2, 3)})",
            f"Dataset.from_tensor_slices(np.arange({count}))", f"generator({[self._number(0, 6) for _ in range(count)]}, Spec([], 'int64'))",
            f"Dataset.from_tensors(np.int64({count}))", f"Dataset.range({count}).repeat().take({self._number(0, 12)})", f"Dataset.range({count}).repeat({self._number(0, 2)})",
        )  # fmt: skip

    def _inner(self) -> str:
        """A dataset of scalars for a scalar x."""
        count = self._number(0, 3)
        return self._either(
            f"Dataset.range({count})", f"Dataset.from_tensors(x).repeat({count})", f"Dataset.range(x % {count + 1})", f"Dataset.range(x, x + {count})",
            f"Dataset.range({count}).map(lambda y: x * 10 + y)", "Dataset.from_tensor_slices([x, x + 1])", f"Dataset.zip((Dataset.range({count}), Dataset.range(2))).map(lambda a, b: a + b)",
            f"Dataset.range({count}).shuffle(1).prefetch(1)", f"Dataset.range({count + 2}).window(2).flat_map(lambda w: w)", f"Dataset.range({count}).cache().repeat(2)",
        )  # fmt: skip

    def _scalars(self, text: str) -> tuple[str, bool]:
        """A longer pipeline than `text`, and whether its elements are scalars."""
        n, m, k = self._number(0, 4), self._number(1, 4), self._number(1, 3)
        drop, parallel = self._either("", ", drop_remainder=True"), self._either(*_PARALLEL)
        stop = self._either("", ", stop_on_empty_dataset=True", ", stop_on_empty_dataset=False")
        other, choices = self._source(), [self._number(0, 1) for _ in range(self._number(0, 9))]
        if self._random.random() < 0.25:
            batched = self._either(
                f".batch({m}{drop})", f".batch({m}{drop}{parallel})", f".padded_batch({m}{drop})", f".window({m}, shift={k}{drop}).flat_map(lambda w: w.batch({m}{drop}))",
                f".group_by_window(lambda x: x % {k}, lambda key, w: w.batch({m}), {n + 1})", f".bucket_by_sequence_length(lambda x: as32(x % 5), [2, 4], [{m}, {k}, 2]{drop})",
                f".batch({m}).rebatch({k}{drop})", f".batch({m}).rebatch([{k}, {m}]{drop})", f".map(lambda x: numbers(x % {m + 1}))", f".group_by_window(lambda x: x % 2, lambda key, w: w.padded_batch({m}), window_size_func=lambda key: key + {m})",
            )  # fmt: skip
            return text + batched, False
        stages = (
            f"{text}.map(lambda x: x + 1{parallel})", f"{text}.filter(lambda x: x % {k + 1} == 0)", f"{text}.take({n})", f"{text}.skip({n})", f"{text}.repeat({n})", f"{text}.shard({m}, {self._number(0, m - 1)})",
            f"{text}.cache()", f"{text}.prefetch({n})", f"{text}.enumerate({n}).map(lambda a, b: a + b)", f"{text}.concatenate({other})", f"{other}.concatenate({text})",
            f"{text}.interleave(lambda x: {self._inner()}, {m}, {k})", f"{text}.interleave(lambda x: {self._inner()}, {m + 1}, {k}, num_parallel_calls=2{self._either('', ', deterministic=True')})",
            f"{text}.flat_map(lambda x: {self._inner()})", f"{text}.window({m}, shift={self._either(None, 1, 2, 5)}, stride={k}{drop}).flat_map(lambda w: w)",
            f"{text}.window({m}{drop}).map(lambda w: w.reduce(np.int64(0), lambda s, x: s + x))", f"{text}.group_by_window(lambda x: x % {k}, lambda key, w: w.take({m}), {n + 1})",
            f"{text}.group_by_window(lambda x: x % 3, lambda key, w: Dataset.from_tensors(key), window_size_func=lambda key: key + {m})", f"{text}.batch({m}{drop}).unbatch()",
            f"{text}.scan(np.int64(0), lambda s, x: (s + x, s))", f"{text}.take_while(lambda x: x < {n * 2})", f"{text}.unique()", f"{text}.shuffle(1)",
            f"{text}.with_options(options({self._either('deterministic=False', 'deterministic=True', 'experimental_slack=True', 'experimental_warm_start=True')}))", f"{text}.snapshot(folder())", f"{text}.snapshot(folder(), compression={self._either('None', repr('GZIP'))})",
            f"loaded({text}, {{}}, {{}})", f"loaded({text}, dict(compression='GZIP'), dict(compression='GZIP'))", f"{text}.cache(folder() + 'c')", f"{text}.cache(folder() + 'c').repeat(2)",
            f"Dataset.zip(({text}, {other})).map(lambda a, b: a - b)", f"Dataset.zip(({other}, {text})).map(lambda a, b: a)", f"Dataset.zip(({text}, {text})).map(lambda a, b: a + b)",
            f"Dataset.choose_from_datasets([{text}, {other}], Dataset.from_tensor_slices(np.array({choices}, np.int64)){stop})", f"Dataset.choose_from_datasets([{other}, {text}], Dataset.range(2).repeat(){stop}).take(9)",
            f"Dataset.sample_from_datasets([{text}, {other}], [1.0, 0.0], seed=1{stop})", f"Dataset.sample_from_datasets([{text}]{stop})",
            f"Dataset.from_tensor_slices([0, 1]).flat_map(lambda i: {text.replace('lambda x', 'lambda z').replace(' x', ' z') if 'lambda' not in text and 'folder' not in text else other})",
            f"{text}.ignore_errors()", f"{text}.rejection_resample(lambda x: as32(x % 2), [0.5, 0.5], initial_dist=[0.5, 0.5]).map(lambda c, x: x)",
        )  # fmt: skip
        return self._either(*stages), True

    def _vectors(self, text: str) -> tuple[str, bool]:
        """A longer pipeline than `text`, whose elements are vectors, and whether its elements are scalars."""
        m, k = self._number(1, 4), self._number(1, 3)
        drop = self._either("", ", drop_remainder=True")
        stage, is_scalar = self._random.choice((
            (".unbatch()", True), (".flat_map(lambda x: Dataset.from_tensor_slices(x))", True), (".map(lambda x: size(x))", True), (f".interleave(lambda x: Dataset.from_tensor_slices(x), {m}, {k})", True),
            (".map(lambda x: x + x)", False), (f".rebatch({m}{drop})", False), (f".rebatch([{m}, {k}]{drop})", False), (f".take({m})", False), (f".shard({m}, 0)", False), (".repeat(2)", False), (".cache()", False), (".prefetch(1)", False),
            (f".padded_batch({m}{drop}).unbatch()", False), (f".padded_batch({m}, padded_shapes=[{self._either(None, 9, -1)}], padding_values=np.int64({k}){drop}).unbatch()", False), (f".batch({m}{drop}).unbatch()", False),
            (f".bucket_by_sequence_length(lambda x: length(x), [2, {k + 2}], [{m}, {k}, 2]{drop}).unbatch()", False), (f".group_by_window(lambda x: size(x), lambda key, w: w.batch({m}), {k}).unbatch()", False),
            (f".filter(lambda x: size(x) > {k})", False), (".snapshot(folder())", False), (f".window({m}).flat_map(lambda w: w.padded_batch({m})).unbatch()", False),
        ))  # fmt: skip
        return text + stage, is_scalar
