"""Texts of programs about what Python values become as elements, and what arguments of all kinds do."""

# ruff: noqa: E501 - each line has one program, or several

from __future__ import annotations

from tests.differential.programs import Drawn


class ValuePrograms(Drawn):
    """Makes programs with values and arguments of every kind, many of which are refused."""

    def next(self) -> str:
        """The next program, an expression."""
        make = self._random.choice(
            (self._made, self._mapped, self._stage, self._stage, self._stage, self._generated, self._listed, self._applied, self._iterated)
        )  # fmt: skip
        return make()

    def _scalar(self) -> str:
        return self._either(
            0, 1, -1, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63 - 1, 1.5, -0.0, "float('inf')", "float('nan')", 1e30, True, False, repr("a"), repr(""), repr("é"), repr(b"\xff\0"), "1j", "np.int8(3)",
            "np.uint64(2 ** 63)", "np.float16(0.5)", "np.float64(1e300)", "np.bool_(True)", "np.str_('ab')", "np.bytes_(b'c')", "np.complex64(1j)",
        )  # fmt: skip

    def _value(self, depth: int = 0) -> str:
        some = [self._scalar() for _ in range(self._number(0, 3))]
        one = self._scalar()
        plain = self._either(
            one, one, f"[{', '.join([one] * self._number(0, 3))}]", f"[{', '.join(some)}]", f"np.array([{one}])", f"np.array({one})", f"np.zeros({self._number(0, 3)})", "np.zeros((2, 0), np.int32)",
            f"[[{one}, {one}], [{one}, {one}]]", f"[({one}, {one}), ({one}, {one})]", "range(3)", "[]", "[[]]", "[[], []]", f"[np.array({one}), np.array({one})]", f"np.array([{one}, {one}], object)",
            "None", "set()", "object()", "b''.join", "[None]", "[1, [2]]", "np.arange(6).reshape(2, 3)[:, ::-1]", "np.array('ab')", "np.array([b'a', b'bc\\0'])", "np.array(['é', 'x'])",
            "np.array([[1, 2], [3, 4]], '>i4')", "Dataset.range(2)",
        )  # fmt: skip
        if depth > 1 or self._random.random() < 0.5:
            return plain
        parts = [self._value(depth + 1) for _ in range(self._number(1, 2))]
        return self._either(
            f"({', '.join(parts)},)", f"{{'a': {parts[0]}}}", f"Point({parts[0]}, {parts[-1]})", f"{{'b': {parts[0]}, 'a': {parts[-1]}}}", "()", "{}", f"Fields({parts[0]}, {parts[-1]})",
            f"{{1: {parts[0]}}}", f"({parts[0]}, None)", f"[{parts[0]}, {parts[-1]}]", f"Pair({parts[0]}, {parts[-1]})",
        )  # fmt: skip

    def _made(self) -> str:
        return self._either(
            f"Dataset.from_tensors({self._value()})", f"Dataset.from_tensor_slices({self._value()})",
            f"inner(Dataset.from_tensor_slices({self._value()}).batch(2))", f"Dataset.from_tensors({self._value()}).repeat(2).batch(2)",
            f"Dataset.from_tensors({self._value()}).unbatch()", f"Dataset.from_tensors({self._value()}).padded_batch(1)",
            f"Dataset.from_tensors({self._value()}).concatenate(Dataset.from_tensors({self._value()}))", f"Dataset.from_tensors({self._value()}).unique()",
            f"Dataset.from_tensors({self._value()}).cache().repeat(2)", f"Dataset.from_tensors({self._value()}).cache(folder() + 'c').repeat(2)",
        )  # fmt: skip

    def _mapped(self) -> str:
        return self._either(
            f"Dataset.range(2).map(lambda x: {self._value()})", f"Dataset.range(2).map(lambda x: (x, {self._value()}))", f"Dataset.range(2).map(lambda x: [x, {self._scalar()}])",
            f"Dataset.from_tensors({self._value()}).map(lambda *x: x)", f"Dataset.range(3).reduce({self._value()}, lambda state, x: state)", f"Dataset.range(3).reduce(np.int64(0), lambda state, x: {self._value()})",
            f"Dataset.range(2).filter(lambda x: {self._value()})", f"Dataset.range(2).take_while(lambda x: {self._value()})", f"Dataset.range(2).flat_map(lambda x: Dataset.from_tensors({self._value()}))",
            f"Dataset.range(2).scan({self._value()}, lambda state, x: (state, x))", f"Dataset.range(2).scan(np.int64(0), lambda state, x: (state, {self._value()}))",
            f"Dataset.range(2).interleave(lambda x: Dataset.from_tensor_slices({self._value()}))", f"Dataset.range(2).map(lambda x: {{'k': x, 'v': {self._value()}}}).batch(2)",
        )  # fmt: skip

    def _count(self) -> str:
        return self._either(
            0, 1, 2, 3, -1, -2, 1.0, 1.5, "True", "None", "'a'", "np.int32(2)", "np.int64(2)", "np.uint8(2)", "np.array(2)", "np.array([2])", "[2]", "2 ** 31", "2 ** 63", "-2 ** 63", "b'a'",
            "np.array(2, np.int64)", 5,
        )  # fmt: skip

    def _stage(self) -> str:
        n, m, k = self._count(), self._count(), self._count()
        data = self._either(
            "Dataset.range(5)",
            "Dataset.range(5)",
            "Dataset.range(6).batch(2)",
            "Dataset.range(5).map(lambda x: (x, x))",
        )
        stage = self._either(
            f"take({n})", f"skip({n})", f"repeat({n}).take(7)", f"shard({n}, {m})", f"batch({n})", f"batch({n}, drop_remainder={m})", f"batch(2, num_parallel_calls={n})", f"prefetch({n})", f"shuffle({n}).map(lambda *x: 1)",
            f"shuffle(1, seed={n})", f"window({n}, {m}).map(lambda *x: 1)", f"window(2, {m}, {k}).map(lambda *x: 1)", f"window(2, shift={n}, drop_remainder={m}).map(lambda *x: 1)", f"enumerate({n})", f"rebatch({n})",
            f"padded_batch({n})", f"padded_batch(2, padded_shapes={n})", f"padded_batch(2, padding_values={n})", f"interleave(lambda *x: Dataset.range(2), {n}, {m})", f"interleave(lambda *x: Dataset.range(2), 2, 1, {n})",
            f"map(lambda *x: x[0], {n})", f"map(lambda *x: x[0], num_parallel_calls=2, deterministic={n})", f"apply(asserted({n}))", f"assert_cardinality({n})", f"unbatch().take({n})", f"ignore_errors({n})", f"cache({n})",
            f"group_by_window(lambda *x: np.int64(0), lambda key, window: window.batch(2), {n})", f"group_by_window(lambda *x: {self._scalar()}, lambda key, window: window.batch(2), 2)",
            f"bucket_by_sequence_length(lambda *x: 1, [{n}], [{m}, 2])", f"rejection_resample(lambda *x: {n}, [1.0]).take(0)", f"shuffle(2, reshuffle_each_iteration={n}).map(lambda *x: 1)",
            f"concatenate({n})", f"map({n})", f"filter({n})", f"apply({n})", f"flat_map({n})", f"with_options({n})", f"take({n}).cardinality()", f"skip({n}).cardinality()", f"repeat({n}).cardinality()", f"batch({n}).cardinality()",
            f"random_numbers({n})", f"zip({n})", f"get_single_element({n})",
        )  # fmt: skip
        if stage.startswith(("random_numbers", "zip(")):
            return self._either(
                f"Dataset.range({n})", f"Dataset.range({n}, {m})", f"Dataset.range({n}, {m}, {k})", f"Dataset.range(3, output_type={self._either('np.float16', 'np.bool_', 'np.str_', repr('int32'), 3, 'np.complex64', 'np.uint64', repr('string'))})",
                f"Dataset.zip({n})", f"Dataset.zip(Dataset.range(2), {n})", "Dataset.zip(Dataset.range(2), (Dataset.range(3), Dataset.range(2)))", "Dataset.zip([Dataset.range(2), Dataset.range(3)])", f"Dataset.random(seed={n}).take(0)",
                f"Dataset.counter({n}, {m}).take(2)", f"Dataset.choose_from_datasets([Dataset.range(2)], {n})", f"Dataset.from_tensor_slices({n})", f"Dataset.from_generator({n})", f"at(Dataset.range(3), {n})",
                f"Dataset.sample_from_datasets([Dataset.range(2)], {n})", f"Dataset.sample_from_datasets({n})", f"Dataset.load({n})", f"Dataset.list_files({n})", "Dataset.zip()", "Dataset.zip(())",
            )  # fmt: skip
        return f"{data}.{stage}"

    def _generated(self) -> str:
        dtype = self._either(
            "np.int32",
            "np.int64",
            "np.float32",
            "np.bool_",
            "'string'",
            "np.uint8",
            "np.complex64",
            "np.float16",
        )
        shape = self._either("[]", "[None]", "[2]", "None", "()", "[None, None]", "[0]")
        values = ", ".join(self._value() for _ in range(self._number(1, 2)))
        digits = self._either(
            "0.1", "1e300", "2 ** 63 + 1", "2 ** 53 + 1", "2 ** 70", "0", "-1.5", "0.1 + 2j"
        )
        wide = self._either("np.float64", "np.uint64", "np.int64", "np.complex128", "np.float16")
        return self._either(
            f"Dataset.from_generator(lambda: iter([{values}]), {dtype})", f"Dataset.from_generator(lambda: iter([{values}]), {dtype}, {shape})", f"Dataset.from_generator(lambda n: iter([n, n]), {dtype}, args=({self._value()},))",
            f"Dataset.from_generator(lambda: iter([({values},)]), ({dtype}, {dtype}))", f"Dataset.from_generator(lambda: iter([{{'a': {self._value()}}}]), {{'a': {dtype}}}, {{'a': {shape}}})",
            f"Dataset.from_generator(lambda: iter([{values}]), output_signature=Spec({shape}, {dtype}))", f"Dataset.from_generator(lambda a, b: zip([a], [b]), ({dtype}, {dtype}), args=(1, {self._scalar()}))",
            f"Dataset.from_generator(lambda: [{values}], {dtype})", "Dataset.from_generator(lambda: iter([]))", f"Dataset.from_generator(lambda: iter([1]), {dtype}, output_signature=Spec([], {dtype}))",
            f"Dataset.from_generator(lambda: [{digits}], {wide})", f"Dataset.from_generator(lambda: [[{digits}], ({digits}, {digits})], {wide}, [None])",
        )  # fmt: skip

    def _listed(self) -> str:
        pattern = self._either(
            "'*.txt'", "'a*'", "'?.txt'", "'[ab].txt'", "'nothing*'", "'a.txt'", "'*/*'", "'{a,b}.txt'", "'A*'", "'sub/*'", "'[!a].txt'", "'[^a].txt'",
        )  # fmt: skip
        more = self._either(", shuffle=False", ", shuffle=False", ", False", ", shuffle=False, seed=3")
        many = f"Dataset.list_files([tree + '/' + part for part in [{pattern}, 'c*']]{more})"
        one = f"Dataset.list_files(tree + '/' + {pattern}{more})"
        text = self._either(one, one, many)
        return f"(lambda tree: named({text}, tree))(tree())"

    def _applied(self) -> str:
        count = self._number(1, 4)
        return f"Dataset.range({self._number(0, 7)}).apply(experimental." + self._either(
            f"map_and_batch(lambda x: (x, x + 1), {count}))", f"map_and_batch(lambda x: x, {count}, drop_remainder=True))", f"map_and_batch(lambda x: x, {count}, num_parallel_batches=2))",
            f"map_and_batch(lambda x: x, {count}, num_parallel_batches=2, num_parallel_calls=2))", f"parallel_interleave(lambda x: Dataset.range(x), {count}, sloppy=False))",
            f"parallel_interleave(lambda x: Dataset.from_tensors(x).repeat(3), {count}))", f"enumerate_dataset({count}))", "unique())", f"take_while(lambda x: x < {count}))",
            "scan(np.int64(1), lambda state, x: (state + x, state * x)))", "unbatch())", f"assert_cardinality({count}))", "ignore_errors())", "copy_to_device('/cpu:0'))", "prefetch_to_device('/cpu:0'))",
            f"group_by_window(lambda x: x % 2, lambda key, window: window.batch({count}), {count}))", f"snapshot(folder(), {self._either('None', repr('GZIP'), repr('SNAPPY'), repr('AUTO'), repr('AUTO'))}))",
            f"bucket_by_sequence_length(lambda x: 1, [{count}], [2, 2]))", f"shuffle_and_repeat(1, {count}))", "map_and_batch(lambda x: x, 0))",
        )  # fmt: skip

    def _iterated(self) -> str:
        data = self._either(
            "Dataset.range(2)", "Dataset.range(0)", "Dataset.range(3).map(refused)", "Dataset.range(4).batch(3)", "Dataset.from_tensors({'a': 1, 'b': 'x'})", "Dataset.range(2).window(2)",
            "Dataset.range(3).filter(lambda x: x > 0)", "Dataset.range(2).repeat()",
        )  # fmt: skip
        return self._either(
            f"steps({data}, 4)", f"optional({data})", f"list({data}.as_numpy_iterator())[:3]" if "repeat()" not in data else "1", f"len({data})", f"bool({data})", f"[x for x, _ in zip({data}, range(3))]",
            f"told({data}.element_spec)", f"is_refused(lambda: {data} + 1)", f"is_refused(lambda: {data}[0])", f"is_refused(lambda: reversed({data}))", f"is_refused(lambda: {data} == {data})", f"{data}.cardinality() + 1",
            f"iter({data}) is iter({data})", f"told(iter({data}).element_spec)", f"{data}.map(lambda *x: {data}.cardinality())", f"at({data}, {self._number(-1, 4)})", f"hash({data}) is None",
        )  # fmt: skip
