"""Texts of programs that ask for descriptions: options of datasets, specs and what they cover, optionals."""

# ruff: noqa: E501 - each line has one program, or several

from __future__ import annotations

from tests.differential.programs import Drawn

_VALUES: dict[str, tuple[object, ...]] = {
    "deterministic": (True, False),
    "dataset_name": ("'a'", "'b'"),
    "experimental_deterministic": (True, False),
    "experimental_slack": (True, False),
    "experimental_symbolic_checkpoint": (True, False),
    "experimental_warm_start": (True, False),
    "experimental_external_state_policy": ("policy('WARN')", "policy('FAIL')"),
    "framework_type": (["a"], ["a", "b"]),
    "autotune.enabled": (True, False),
    "autotune.cpu_budget": (1, 2),
    "autotune.ram_budget": (100, 200),
    "autotune.initial_parallelism": (1, 2),
    "autotune.min_parallelism": (1, 2),
    "experimental_distribute.num_devices": (1, 2),
    "experimental_distribute.auto_shard_policy": ("shards('FILE')", "shards('OFF')", "shards('AUTO')", "shards('DATA')"),
    "experimental_optimization.map_fusion": (True, False),
    "experimental_optimization.noop_elimination": (True, False),
    "experimental_optimization.apply_default_optimizations": (True, False),
    "threading.private_threadpool_size": (1, 2, 0),
    "threading.max_intra_op_parallelism": (1, 2),
    "experimental_threading.private_threadpool_size": (3,),
}  # fmt: skip
_WRONG = ("1.5", "'x'", "object()", "[1]", "1", "True", "-1", "options()", "0")


class DescribedPrograms(Drawn):
    """Makes programs that give texts."""

    def next(self) -> str:
        """The next program, an expression."""
        make = self._random.choice((self._options, self._options, self._options, self._specs, self._specs, self._optional, self._structure, self._shown))  # fmt: skip
        return make()

    # Options

    def _set(self) -> str:
        names = self._random.sample(sorted(_VALUES), self._number(0, 3))
        if self._random.random() < 0.3:
            names = [
                self._either(
                    "deterministic", "autotune.cpu_budget", "experimental_distribute.auto_shard_policy"
                )
            ]
        values = {name: self._either(*_VALUES[name]) for name in names}
        if self._random.random() < 0.08:
            values[self._either(*_VALUES)] = self._either(*_WRONG)
        if self._random.random() < 0.03:
            values[self._either("autotune", "threading", "experimental_distribute")] = self._either(
                "1", "None", "options()"
            )
        return f"set_options({{{', '.join(f'{name!r}: {value}' for name, value in values.items())}}})"

    def _with(self, dataset: str) -> str:
        return f"{dataset}.with_options({self._set()})"

    def _pipeline(self, depth: int = 2) -> str:
        if not depth:
            return self._either("Dataset.range(3)", self._with("Dataset.range(3)"))
        one, other = self._pipeline(depth - 1), self._pipeline(depth - 1)
        return self._either(
            one, self._with(one), self._with(self._with(one)), f"{one}.map(lambda *x: 1)", f"Dataset.zip(({one}, {other}))", f"{one}.concatenate({other})",
            f"{one}.flat_map(lambda *x: {other})", f"{one}.interleave(lambda *x: {other})", f"Dataset.choose_from_datasets([{one}, {one}], {other})",
            f"Dataset.sample_from_datasets([{one}, {other}])", f"{one}.batch(2).unbatch()", f"{one}.apply(lambda d: {self._with('d')})", f"{one}.window(2).flat_map(lambda *x: {other})",
            f"{one}.repeat(2).take(3).cache().prefetch(1)", f"Dataset.zip({{'a': {one}, 'b': ({other}, {one})}})", f"{one}.snapshot(folder())",
            f"{one}.group_by_window(lambda *x: np.int64(0), lambda k, w: {other}, 2)", f"{one}.map(lambda *x: {other}).flat_map(lambda x: x)",
        )  # fmt: skip

    def _options(self) -> str:
        dataset = self._pipeline(self._number(1, 2))
        return self._either(
            f"settings({dataset}.options())",
            f"settings({dataset}.options())",
            f"settings({dataset}.options())",
            f"settings({self._set()}.merge({self._set()}))",
            f"settings({self._set()})",
            f"{self._set()} == {self._set()}",
            f"{self._set()} != {self._set()}",
            f"settings({self._with('Dataset.range(2)')}.with_options({self._either('None', '1', '{}', 'options()')}).options())",
            f"changed({self._with('Dataset.range(2)')}.options(), {self._either(*map(repr, _VALUES))})",
        )

    # Specs

    def _shape(self) -> str:
        return self._either(
            "[]", "[]", "[2]", "[None]", "[3]", "None", "[2, None]", "[None, None]", "[2, 3]", "(1,)", "[0]"
        )

    def _tensor(self) -> str:
        name = self._either("", "", "", ", 'n'", ", name='m'")
        return (
            f"Spec({self._shape()}, {self._either('int32', 'int64', 'string', 'float32', 'int32')!r}{name})"
        )

    def _spec(self, depth: int = 2) -> str:
        if not depth or self._random.random() < 0.4:
            return self._tensor()
        inner, other = self._spec(depth - 1), self._spec(depth - 1)
        kind = self._either("DatasetSpec", "OptionalSpec", "IteratorSpec", "DatasetSpec")
        return self._either(f"{kind}({inner})", f"{kind}({inner})", f"{kind}(({inner}, {other}))", f"{kind}({{'a': {inner}}})", f"DatasetSpec({inner}, [{self._either('', 2, None)}])")  # fmt: skip

    def _value(self) -> str:
        return self._either(
            "1", "np.int32(1)", "[1, 2]", "np.zeros((2, 3), np.float32)", "'a'", "Dataset.range(3)", "Dataset.range(4).batch(2)", "iter(Dataset.range(2))",
            "Optional.from_value(1)", "Optional.empty(Spec([], 'int32'))", "None", "(1, 2)", "Dataset.zip((Dataset.range(2), Dataset.range(3)))", "object()",
            "Dataset.range(4).window(2)", "Optional.from_value((1, 'a'))",
        )  # fmt: skip

    def _specs(self) -> str:
        one, other = self._spec(), self._spec()
        if self._random.random() < 0.5:  # usually of one kind
            shape = self._shape()
            other = one.replace(shape, self._shape(), 1) if shape in one else one
        return self._either(
            f"{one}.is_compatible_with({other})", f"{one}.is_compatible_with({other})", f"{one} == {other}", f"{one} != {other}", f"hash({one}) == hash({other})",
            f"told({one}.most_specific_compatible_type({other}))", f"told({one}.most_specific_compatible_type({other}))",
            f"{one}.is_compatible_with({self._value()})", f"told({one})",
            f"told({self._either('Spec', 'DatasetSpec', 'OptionalSpec', 'IteratorSpec')}.from_value({self._value()}))",
            f"told(experimental.get_structure({self._value()}))", f"{one} == {one}",
        )  # fmt: skip

    def _optional(self) -> str:
        value = self._value()
        made = self._either(f"Optional.from_value({value})", f"Optional.empty({self._spec(1)})", f"Optional.from_value(({value}, {{'k': {value}}}))", f"experimental.get_next_as_optional(iter({self._either('Dataset.range(2)', 'Dataset.range(0)', 'Dataset.range(1).map(lambda x: (x, x))', value)}))")  # fmt: skip
        return self._either(
            f"{made}.has_value()", f"{made}.get_value()", f"told({made}.element_spec)", f"told(OptionalSpec.from_value({made}))", f"OptionalSpec({self._spec(1)}).is_compatible_with({made})",
            f"Dataset.from_tensors({made}).map(lambda x: x.get_value())", "Dataset.range(2).map(lambda x: Optional.from_value(x)).map(lambda x: x.has_value())",
        )  # fmt: skip

    def _structure(self) -> str:
        dataset = self._pipeline(1).replace("settings", "")
        return self._either(
            f"told({dataset}.element_spec)", f"told(iter({dataset}).element_spec)", f"told(DatasetSpec.from_value({dataset}))", f"told(experimental.get_structure(iter({dataset})))",
            f"int(experimental.cardinality({dataset}))", f"len({dataset})", f"experimental.from_variant(experimental.to_variant({dataset}), {dataset}.element_spec)",
            f"DatasetSpec({self._spec(1)}).is_compatible_with({dataset})", f"told({dataset}.map(lambda *x: Dataset.range(2)).element_spec)",
        )  # fmt: skip

    def _shown(self) -> str:
        return self._either(
            f"iter({self._pipeline(1)}).get_next()", "iter(Dataset.range(0)).get_next()", f"steps({self._pipeline(1)}, 4)", f"optional({self._pipeline(1)})",
            f"bool({self._pipeline(1)})", "Dataset.range(3)[0]", "Dataset.range(2) + Dataset.range(2)",
            "1 in Dataset.range(3)", f"settings({self._pipeline(2)}.options())",
        )  # fmt: skip
