"""Builds the pipelines of the vectors with the public data API."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.reference.interpreter.array_functions import EXPRESSIONS
from tests.reference.interpreter.codec import Json, decode, dtype
from tests.reference.interpreter.pipeline_specs import decode_spec
from tests.reference.outcomes import api, exists, method

Names = Mapping[str, Any]
_DATASET = "wb.data.Dataset"


def build(steps: Sequence[Json], scratch: Path, names: Names | None = None) -> Any:
    """The dataset that `steps` describe.

    Args:
      steps: `{"op": name, ...}` each; the first makes the dataset.
      scratch: The folder of the case's files.
      names: What `"$expr"` arguments may refer to.
    """
    source = _Builder(scratch, names or {}).source(steps[0])
    return apply_steps(source, steps[1:], scratch, names)


def apply_steps(dataset: Any, steps: Sequence[Json], scratch: Path, names: Names | None = None) -> Any:
    """`dataset` after the transformations `steps`."""
    builder = _Builder(scratch, names or {})
    return functools.reduce(builder.transformed, steps, dataset)


def function(expression: str, arg_names: str = "x", names: Names | None = None) -> Callable[..., Any]:
    """The function whose value is `expression` over `arg_names`."""
    compiled: Callable[..., Any] = eval(f"lambda {arg_names}: {expression}", {**EXPRESSIONS, **(names or {})})
    return compiled


class _Builder:
    """Translates single steps. Methods named `_op_...` do more than pass their arguments on."""

    def __init__(self, scratch: Path, names: Names) -> None:
        self._scratch = scratch
        self._names = names

    def source(self, step: Json) -> Any:
        """The dataset that a first step creates."""
        op, given = step["op"], {key: value for key, value in step.items() if key != "op"}
        match op:
            case "range":
                kind = {"output_type": dtype(given["output_type"])} if "output_type" in given else {}
                return self._make("range")(*(self._value(arg) for arg in given["args"]), **kind)
            case "from_tensors" | "from_tensor_slices":
                return self._make(op)(self._value(given["value"]))
            case "from_generator":
                elements = [decode(element) for element in given["elements"]]
                return self._make(op)(
                    lambda: iter(elements), output_signature=decode_spec(given["signature"])
                )
            case "list_files":
                patterns = [str(self._scratch / pattern) for pattern in given.pop("patterns")]
                return self._make(op)(patterns, **self._values(given))
            case "zip":
                return self._make(op)(self._nested(given["datasets"]))
            case "choose_from_datasets":
                make = api("data.experimental.choose_from_datasets", "data.Dataset.choose_from_datasets")
                return make([self._build(steps) for steps in given["datasets"]], self._build(given["choice"]))
            case "TextLineDataset" | "TFRecordDataset" | "FixedLengthRecordDataset":
                return api(f"data.{op}")(self._files(given.pop("files")), **self._values(given))
            case "SqlDataset":
                kinds = [dtype(name) if name != "string" else name for name in given["output_types"]]
                where = str(self._scratch / given["file"])
                return api("data.experimental.SqlDataset")(
                    given.get("driver", "sqlite"), where, given["query"], tuple(kinds)
                )
            case _:
                raise ValueError(f"no rule for the source {op!r}")

    def transformed(self, dataset: Any, step: Json) -> Any:
        """`dataset` with one more step applied."""
        op, given = step["op"], {key: value for key, value in step.items() if key != "op"}
        special = getattr(self, f"_op_{op}", None)
        if special is not None:
            return special(dataset, given)
        if hasattr(dataset, op) or not exists(f"data.experimental.{op}"):
            return method(dataset, op, label=_DATASET)(**self._values(given))
        return _applied(dataset, op, **self._values(given))

    def _op_cache(self, dataset: Any, given: Json) -> Any:
        name = given.get("filename", "")
        where = {"filename": str(self._scratch / name)} if name else {}
        return method(dataset, "cache", label=_DATASET)(**where)

    def _op_map(self, dataset: Any, given: Json) -> Any:
        return method(dataset, "map", label=_DATASET)(self._function(given), **self._values(given))

    def _op_filter(self, dataset: Any, given: Json) -> Any:
        return method(dataset, "filter", label=_DATASET)(self._function(given), **self._values(given))

    def _op_take_while(self, dataset: Any, given: Json) -> Any:
        return _applied(dataset, "take_while", self._function(given))

    def _op_unique(self, dataset: Any, given: Json) -> Any:
        return _applied(dataset, "unique")

    def _op_assert_cardinality(self, dataset: Any, given: Json) -> Any:
        return _applied(dataset, "assert_cardinality", given["expected"])

    def _op_flat_map(self, dataset: Any, given: Json) -> Any:
        return method(dataset, "flat_map", label=_DATASET)(self._nested_function(given))

    def _op_interleave(self, dataset: Any, given: Json) -> Any:
        return method(dataset, "interleave", label=_DATASET)(
            self._nested_function(given), **self._values(given)
        )

    def _op_concatenate(self, dataset: Any, given: Json) -> Any:
        return method(dataset, "concatenate", label=_DATASET)(self._build(given["ds"]))

    def _op_padded_batch(self, dataset: Any, given: Json) -> Any:
        shapes = {"padded_shapes": _shapes(given.pop("padded_shapes"))} if "padded_shapes" in given else {}
        return method(dataset, "padded_batch", label=_DATASET)(**shapes, **self._values(given))

    def _op_window_batch(self, dataset: Any, given: Json) -> Any:
        return method(dataset, "flat_map", label=_DATASET)(lambda window: window.batch(given["size"]))

    def _op_group_by_window(self, dataset: Any, given: Json) -> Any:
        rows = given.get("reduce_batch_size") or given.get("window_size")

        def reduced(key: Any, window: Any) -> Any:
            match given["reduce"]:
                case "batch":
                    return window.batch(rows)
                case "key_batch":
                    return self._make("zip")((self._make("from_tensors")(key), window.batch(rows)))
                case "sum":
                    return self._make("from_tensors")(window.reduce(0, lambda total, x: total + x))
                case other:
                    raise ValueError(f"no rule for the reduction {other!r}")

        if "window_size_fn" in given:
            size: dict[str, Any] = {"window_size_func": function(given["window_size_fn"], "key")}
        else:
            size = {"window_size": given["window_size"]}
        keys = function(given["key_fn"], given.get("arg_names", "x"))
        return _applied(dataset, "group_by_window", keys, reduced, **size)

    def _op_bucket_by_sequence_length(self, dataset: Any, given: Json) -> Any:
        length = function(given.pop("length_fn"), given.pop("arg_names", "x"))
        boundaries, sizes = given.pop("boundaries"), given.pop("batch_sizes")
        return _applied(dataset, "bucket_by_sequence_length", length, boundaries, sizes, **given)

    def _op_options(self, dataset: Any, given: Json) -> Any:
        options = api("data.Options")()
        if "auto_shard_policy" in given:
            policy = getattr(api("data.experimental.AutoShardPolicy"), given["auto_shard_policy"])
            options.experimental_distribute.auto_shard_policy = policy
        if "deterministic" in given:
            options.experimental_deterministic = given["deterministic"]
        return method(dataset, "with_options", label=_DATASET)(options)

    def _make(self, name: str) -> Any:
        return api(f"data.Dataset.{name}")

    def _build(self, steps: Sequence[Json], names: Names | None = None) -> Any:
        return build(steps, self._scratch, {**self._names, **(names or {})})

    def _function(self, given: Json) -> Callable[..., Any]:
        return function(given.pop("fn"), given.pop("arg_names", "x"))

    def _nested_function(self, given: Json) -> Callable[..., Any]:
        steps, arg_names = given.pop("ds"), given.pop("arg_names", "x")
        bound = ", ".join(f"{name.strip()!r}: {name.strip()}" for name in arg_names.split(","))
        return function(f"build({{{bound}}})", arg_names, {"build": lambda names: self._build(steps, names)})

    def _nested(self, datasets: Json) -> Any:
        match datasets:
            case {"tuple": items}:
                return tuple(self._nested(item) for item in items)
            case {"dict": items}:
                return {key: self._nested(item) for key, item in items.items()}
            case list():
                return self._build(datasets)
            case _:
                raise ValueError(f"no rule for the datasets {datasets!r}")

    def _files(self, files: Json) -> Any:
        match files:
            case {"ds": steps}:
                scratch = self._scratch
                return self._build(steps).map(lambda name: str(scratch / _text(name)))
            case list():
                return [str(self._scratch / name) for name in files]
            case _:
                return str(self._scratch / _text(self._value(files)))

    def _values(self, given: Json) -> dict[str, Any]:
        return {key: self._value(value) for key, value in given.items()}

    def _value(self, value: Json) -> Any:
        if isinstance(value, str) and value.startswith("$"):
            return eval(value[1:], {**EXPRESSIONS, **self._names})
        return decode(value)


def _applied(dataset: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """`dataset` after a transformation of `wb.data.experimental`, or after the method with that name."""
    if exists(f"data.experimental.{name}"):
        return dataset.apply(api(f"data.experimental.{name}")(*args, **kwargs))
    return method(dataset, name, label=_DATASET)(*args, **kwargs)


def _text(value: Any) -> str:
    plain = value.item() if hasattr(value, "item") else value
    return plain.decode() if isinstance(plain, bytes) else str(plain)


def _shapes(value: Json) -> Any:
    match value:
        case {"tuple": items}:
            return tuple(_shapes(item) for item in items)
        case {"dict": items}:
            return {key: _shapes(item) for key, item in items.items()}
        case _:
            return value
