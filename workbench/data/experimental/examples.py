"""Serialized examples under the names of tf.data.experimental: parses batches, and reads files for training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.arguments import flag
from workbench.backends.numpy import STRING
from workbench.data.dataset import Dataset
from workbench.data.experimental.applied import Transformation
from workbench.data.formats.csv.reference import Labelled
from workbench.data.options import AUTOTUNE
from workbench.data.readers.files import TFRecordDataset
from workbench.data.spec import TensorSpec, spec_if_learnt, spec_unread
from workbench.data.stages.computing.examples import ParseExamples
from workbench.data.stages.prefetch import check_parallel_calls
from workbench.errors import InvalidArgumentError

_TEXT = TensorSpec((), STRING)


def parse_example_dataset(
    features: Mapping[str, Any], num_parallel_calls: int = 1, deterministic: bool | None = None
) -> Transformation:
    """For `Dataset.apply`: parses batches of serialized examples, as `wb.io.parse_example`.

    Args:
      features: A description of each wanted feature, by name.
      num_parallel_calls: Batches parsed at a time.
      deterministic: Whether they keep their order; None for what the options say.

    Raises:
      InvalidArgumentError: if there is no feature, or one is requested as views, or the number of calls is less than 1.
      ValueError: if a feature has another description, or is a sequence that must not be missing.
      TypeError: if the features are not a mapping; by `apply`, if elements are not batches of text.

    >>> records = wb.data.Dataset.from_tensor_slices([wb.io.encode_example({"x": [x]}) for x in range(3)])
    >>> parse = wb.data.experimental.parse_example_dataset({"x": wb.io.FixedLenFeature((), np.int64)})
    >>> list(records.batch(2).apply(parse))
    [{'x': array([0, 1])}, {'x': array([2])}]
    """
    check_parallel_calls("parse_example_dataset", num_parallel_calls)
    stage = ParseExamples.of(features, None if num_parallel_calls == 1 else num_parallel_calls, deterministic)

    def parsed(dataset: Dataset) -> Dataset:
        stage.check(spec_unread(dataset))
        return dataset.with_stage(stage)

    return parsed


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[..., Dataset] | None = None,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Shuffled batches of the examples in files: dicts of features, or pairs of such a dict and the labels.

    Args:
      file_pattern: A shell pattern, or a list of them.
      batch_size: Examples per batch.
      features: A description of each wanted feature, by name; see `wb.io.parse_example`.
      reader: Returns the dataset of a file's examples, or of pairs of a key and an example; None for `TFRecordDataset`.
      label_key: The feature that is the label; None for no labels.
      reader_args: Arguments for the reader after the name of a file.
      num_epochs: How often to read the files; None for endlessly.
      shuffle: Whether files and examples are shuffled.
      shuffle_buffer_size: Examples that are shuffled at a time.
      shuffle_seed: Makes the order repeatable.
      prefetch_buffer_size: Batches made ahead; None to let AUTOTUNE choose.
      reader_num_threads: Files that are read at a time, by threads; their examples come in turn. None for one.
      parser_num_threads: Batches that are parsed at a time, by threads; None for two.
      sloppy_ordering: Whether the order of files that are read at a time may differ from pass to pass.
      drop_final_batch: Whether to leave out a smaller last batch; without `num_epochs`, there is none.

    Raises:
      InvalidArgumentError: if no file matches, there is no feature, the label is not one of them, or a number of
        threads is invalid.
      ValueError: if a feature has another description.
      TypeError: if the features are not a mapping.
    """
    name = "make_batched_features_dataset"
    shuffle = flag(shuffle, f"{name}: shuffle")
    in_order = not flag(sloppy_ordering, f"{name}: sloppy_ordering")
    drop = flag(drop_final_batch, f"{name}: drop_final_batch")
    check_parallel_calls(name, reader_num_threads, "reader_num_threads")
    check_parallel_calls(name, parser_num_threads, "parser_num_threads")
    parsing = parse_example_dataset(features, 2 if parser_num_threads is None else parser_num_threads)
    if label_key is not None and label_key not in features:
        raise InvalidArgumentError(
            f"{name}: label_key {label_key!r} is none of the features {', '.join(features)}"
        )
    threads = 1 if reader_num_threads is None else reader_num_threads
    records = Dataset.list_files(file_pattern, shuffle, shuffle_seed).interleave(
        _Opens(TFRecordDataset if reader is None else reader, tuple(reader_args or ())),
        threads,
        num_parallel_calls=None if threads == 1 else threads,
        deterministic=in_order,
    )
    if spec_if_learnt(records) == (_TEXT, _TEXT):
        records = records.map(_second)
    if shuffle:
        records = records.shuffle(shuffle_buffer_size, shuffle_seed)
    batches = records.repeat(num_epochs).batch(batch_size, drop or num_epochs is None)
    dataset = batches.apply(parsing)
    if label_key is not None:
        dataset = dataset.map(Labelled(label_key))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


@dataclass(frozen=True, slots=True)
class _Opens:
    """Returns the dataset of one file."""

    reader: Callable[..., Dataset]
    args: tuple[Any, ...]

    def __call__(self, name: Any) -> Dataset:
        return self.reader(name, *self.args)


def _second(key: Any, value: Any) -> Any:
    return value
