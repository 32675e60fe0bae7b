"""Texts of programs about datasets of datasets, choices among them, buckets, states, and classes as elements."""

# ruff: noqa: E501 - each line has one program, or several

from __future__ import annotations

from tests.differential.programs import Drawn


class ChoicePrograms(Drawn):
    """Makes programs whose stages take arguments of all kinds, some of which do not fit."""

    def next(self) -> str:
        """The next program, an expression."""
        make = self._random.choice((
            self._sampled, self._chosen, self._numbers, self._resampled, self._buckets, self._buckets, self._scanned,
            self._unique, self._random_access, self._nested, self._nested, self._nested, self._records, self._records,
            self._grouped, self._again,
        ))  # fmt: skip
        return make()

    def _odd(self, fitting: str, *odd: object) -> str:
        """Usually the fitting text, rarely an odd one."""
        return self._either(*odd) if self._random.random() < 0.07 else fitting

    def _some(self) -> str:
        """A dataset of scalars."""
        count = self._number(0, 6)
        return self._either(
            f"Dataset.range({count})", f"Dataset.range({count}, {count + self._number(0, 4)})",
            f"Dataset.range({count}).map(refused)", f"Dataset.range({count}).filter(lambda x: x % 2 == 0)",
            f"Dataset.range({count}).repeat(2)", f"Dataset.range({count}).shuffle(1)", "Dataset.range(3).repeat()",
        )  # fmt: skip

    def _stop(self) -> str:
        return self._either(
            "",
            "",
            ", stop_on_empty_dataset=True",
            ", stop_on_empty_dataset=False",
            self._odd("", ", stop_on_empty_dataset=1"),
        )

    def _several(self) -> list[str]:
        found = [self._some() for _ in range(self._number(1, 3))]
        if self._random.random() < 0.06:
            odd = (
                "Dataset.from_tensors('a')",
                "Dataset.range(2).batch(2)",
                "1",
                "Dataset.range(3, output_type=np.int32)",
            )
            found.append(self._random.choice(odd))
        return found if self._random.random() > 0.03 else []

    def _sampled(self) -> str:
        several = self._several()
        one = self._number(0, max(0, len(several) - 1))
        weights = [float(number == one) for number in range(len(several))]
        given = self._odd(
            self._either(weights, f"np.array({weights})", f"np.array({weights}, np.float32)", [int(w) for w in weights],
                f"Dataset.from_tensors({weights}).repeat()", f"Dataset.from_tensors({weights}).repeat(2)"),
            weights[1:], [*weights, 0.0], [0.0] * len(weights), [-1.0] * len(weights), [2.5] * len(weights), "'a'",
            [weights], f"Dataset.from_tensors({weights[1:]}).repeat()", "[float('nan')]", "Dataset.range(3)",
        )  # fmt: skip
        seed = self._either("", ", seed=1", ", seed=np.int64(2)")
        again = self._either(
            "", "", ", rerandomize_each_iteration=True", ", rerandomize_each_iteration=False"
        )
        name = self._either("Dataset.", "experimental.")
        again = again if name == "Dataset." else ""
        return f"{name}sample_from_datasets([{', '.join(several)}], {given}{seed}{self._stop()}{again})"

    def _chosen(self) -> str:
        several = self._several()
        choices = [self._number(0, max(0, len(several) - 1)) for _ in range(self._number(0, 9))]
        if self._random.random() < 0.08:
            choices.insert(self._number(0, len(choices)), self._random.choice((-1, len(several), 9)))
        given = self._odd(
            self._either(
                f"Dataset.from_tensor_slices(np.array({choices}, np.int64))",
                f"Dataset.range({max(1, len(several))}).repeat({self._number(1, 3)})",
            ),
            "Dataset.range(2, output_type=np.int32)", "[0, 1]", "Dataset.range(2).batch(1)", "None",
            "Dataset.from_tensors(('a',))", "Dataset.from_tensors(0.5)",
        )  # fmt: skip
        name = self._either("Dataset.", "experimental.")
        return f"{name}choose_from_datasets([{', '.join(several)}], {given}{self._stop()})"

    def _numbers(self) -> str:
        start = self._odd(
            self._either("", "2", "-3", "start=5", "np.int64(4)"), "1.5", "'a'", "None", "2 ** 70"
        )
        step = self._odd(self._either("", "step=2", "step=-1", "step=0"), "step=0.5", "step='a'")
        dtype = self._odd(
            self._either("", "dtype=np.int32", "dtype=np.float32", "dtype=np.uint8"),
            "dtype=np.bool_",
            "dtype='string'",
        )
        name = self._either("Dataset.counter", "experimental.Counter")
        return (
            f"{name}({', '.join(part for part in (start, step, dtype) if part)}).take({self._number(0, 5)})"
        )

    def _again(self) -> str:
        """Whether several passes over randomly drawn elements agree."""
        seed = self._either("seed=1", "seed=2, ", "seed=None", "").strip(", ")
        again = self._either("", "rerandomize_each_iteration=True", "rerandomize_each_iteration=False")
        arguments = ", ".join(part for part in (seed, again) if part)
        drawn = self._either(
            f"Dataset.random({arguments}).take(5)",
            f"experimental.RandomDataset({seed}).take(5)",
            f"Dataset.sample_from_datasets([Dataset.range(40), Dataset.range(100, 140)]{', ' * bool(arguments)}{arguments})",
            f"Dataset.range(40).shuffle(40{', ' * bool(seed)}{seed})",
            f"Dataset.range(40).shuffle(40{', ' * bool(seed)}{seed}, reshuffle_each_iteration={self._flag()})",
            f"Dataset.range(40).rejection_resample(lambda x: as32(x % 2), [0.5, 0.5]{', ' * bool(seed)}{seed})",
            "Dataset.range(9).apply(experimental.shuffle_and_repeat(9, 2, seed=3))",
        )
        if "seed=None" in drawn or "seed" not in drawn:
            return f"agree({drawn}.map(lambda *x: size(x[0])))"
        return f"agree({drawn}{self._either('', '', '.repeat(2)', '.cache()', '.prefetch(2)', '.batch(3)')})"

    def _resampled(self) -> str:
        count = self._number(1, 3)
        target = self._odd(
            self._either(f"[{1 / count}] * {count}", f"np.full({count}, {1 / count}, np.float32)"),
            "[1.0, 0.0, 0.0]", "[2.0]", "'a'", "[[1.0]]", "[-1.0, 2.0]", "[]", "[1, 1]",
        )  # fmt: skip
        initial = self._odd(
            self._either("", f", initial_dist=[{1 / count}] * {count}", f", [{1 / count}] * {count}, seed=3"),
            ", initial_dist=[1.0]", ", initial_dist=[0.0] * 3", ", initial_dist='a'",
        )  # fmt: skip
        key = self._odd("as32(x % " + str(count) + ")", "x", "as32(x)", "'a'", "as32(-x)", "as32(99)")
        data = self._either("Dataset.range(9)", "Dataset.range(0)", "Dataset.range(5).repeat(2)")
        arguments = f"lambda x: {key}, {target}{initial}"
        text = self._either(
            f"{data}.rejection_resample({arguments})",
            f"{data}.apply(experimental.rejection_resample({arguments}))",
        )
        if "initial" in initial or "seed" in initial:
            return text  # target and initial distribution agree, so all elements are taken
        return f"{text}.take(0)"

    def _buckets(self) -> str:
        lengths = [self._number(0, 6) for _ in range(self._number(0, 8))]
        kind = self._either("int64", "int64", "float32", "string")
        source = {
            "int64": f"generated([[1] * n for n in {lengths}])",
            "float32": f"generator([np.ones((n, 2), np.float32) for n in {lengths}], Spec([None, 2], 'float32'))",
            "string": f"generator([[b'x'] * n for n in {lengths}], Spec([None], 'string'))",
        }[kind]
        value = {"int64": "np.int64(9)", "float32": "np.float32(9)", "string": "'z'"}[kind]
        room = {"int64": "[None]", "float32": "[None, 2]", "string": "[None]"}[kind]
        if self._random.random() < 0.3:
            source += ".map(lambda x: (x, size(x)))"
            value, room = f"({value}, np.int64(0))", f"({room}, [])"
        elif self._random.random() < 0.2:
            source += ".map(lambda x: {'k': x})"
            value, room = f"{{'k': {value}}}", f"{{'k': {room}}}"
        function = (
            "lambda x, y: length(x)"
            if "size" in source
            else "lambda x: length(x['k'])"
            if "'k'" in source
            else "lambda x: length(x)"
        )
        function = self._odd(
            function,
            "lambda *x: 1",
            "lambda *x: np.int64(2)",
            "lambda *x: 1.5",
            "lambda *x: 'a'",
            "lambda *x: -1",
        )
        boundaries, sizes = self._random.choice(
            (
                ("[3]", "[2, 2]"),
                ("[2, 4]", "[3, 2, 1]"),
                ("[2, 4, 6]", "[1, 2, 2, 1]"),
                ("(3, 5)", "(2, 2, 2)"),
                ("[7]", "[2, 1]"),
                ("[7]", "[3, 1]"),
            )
        )
        if self._random.random() < 0.1:
            boundaries, sizes = self._random.choice((
                ("[3]", "[2]"), ("[]", "[2]"), ("[4, 2]", "[1, 2, 3]"), ("[3, 3]", "[2, 2, 2]"), ("[0]", "[1, 1]"),
                ("[3]", "[0, 1]"), ("[3]", "[1, -1]"), ("3", "2"), ("[2.5]", "[1, 1]"), ("[3]", "[1.5, 1]"),
                ("np.array([3])", "np.array([2, 2])"), ("[-1, 3]", "[1, 2, 3]"),
            ))  # fmt: skip
        more = self._either(
            "", "", "", f", padded_shapes={self._odd(room, '[5]', '[1]', '[None, None]', 'None')}"
        )
        more += self._either("", "", f", padding_values={self._odd(value, '0', repr('q'), '1.5', 'None')}")
        more += self._either("", "", ", pad_to_bucket_boundary=True", ", pad_to_bucket_boundary=False")
        more += self._either("", "", "", ", no_padding=True")
        more += self._either("", "", ", drop_remainder=True", ", drop_remainder=False")
        text = f"bucket_by_sequence_length({function}, {boundaries}, {sizes}{more})"
        return f"{source}.{self._either(text, text, f'apply(experimental.{text})')}"

    def _scanned(self) -> str:
        state, after = self._random.choice((
            ("np.int64(0)", "s + x"), ("(np.int64(0), np.int64(1))", "(s[1], s[0] + x)"), ("{'n': np.int64(0)}", "{'n': s['n'] + x}"),
            ("Point(np.int64(0), 'a')", "Point(s.x + 1, s.y)"), ("Pair(np.int64(1), 2)", "Pair(s.x + x, s.y)"),
            ("np.int64(0)", "refused(x)"), ("Dataset.range(2)", "s"), ("None", "s"), ("np.float32(1)", "s * 2"),
        ))  # fmt: skip
        output = self._odd(
            self._either(
                "s", "x", "(s, x)", "{'a': s}", "Point(x, s)", "Pair(s, x)", "1", "[x, x]", "Dataset.range(x)"
            ),
            "None",
            "()",
            "object()",
        )
        result = self._odd(
            f"({after}, {output})", after, f"[{after}, {output}]", f"({after},)", f"({after}, {output}, 1)"
        )
        text = f"scan({state}, lambda s, x: {result})"
        return (
            f"{self._some()}.{self._either(text, f'apply(experimental.{text})')}.take({self._number(1, 9)})"
        )

    def _unique(self) -> str:
        values = [self._number(0, 4) for _ in range(self._number(0, 8))]
        data = self._either(
            f"Dataset.from_tensor_slices({values or [1]})",
            f"Dataset.from_tensor_slices([str(x) for x in {values or [1]}])",
            f"Dataset.from_tensor_slices(np.array({values}, np.int64))",
            f"Dataset.from_tensor_slices(np.array({values}) % 2 == 0)",
            f"Dataset.from_tensor_slices(np.array({values}, np.{self._either('float32', 'int16', 'uint8', 'float64', 'complex64')}))",
            f"Dataset.from_tensor_slices((np.array({values}, np.int64), np.array({values}, np.int64)))",
            f"Dataset.from_tensor_slices(np.array({values} * 2, np.int64).reshape(-1, 2))",
        )
        return f"{data}{self._either('.unique()', '.unique()', '.apply(experimental.unique())', '.repeat(2).unique()')}"

    def _random_access(self) -> str:
        index = self._odd(
            self._either(0, 1, 2, 4, "np.int64(1)", "np.int32(2)"),
            -1,
            100,
            "1.0",
            "'a'",
            "None",
            "True",
            "[0]",
        )
        count = self._number(1, 8)
        data = self._either(
            f"Dataset.range({count})", f"Dataset.range(1, {count + 4}, 2)", f"Dataset.from_tensor_slices(np.arange({count * 2}).reshape(-1, 2))",
            f"Dataset.from_tensors(np.arange({count}))", f"Dataset.range({count}).concatenate(Dataset.range(3))",
            f"Dataset.zip((Dataset.range({count}), Dataset.range(3)))", "Dataset.from_tensor_slices({'a': [1, 2, 3]})",
        )  # fmt: skip
        stages = "".join(
            self._either(
                ".map(lambda *x: x[0])", ".map(lambda *x: x[0], num_parallel_calls=2)", ".batch(2)", ".batch(3, drop_remainder=True)",
                ".take(2)", ".take(-1)", ".skip(1)", ".shard(2, 1)", ".repeat(2)", ".repeat()", ".prefetch(1)", ".cache()", ".shuffle(1)",
                ".shuffle(5, seed=1, reshuffle_each_iteration=False).map(lambda *x: size(x[0]))", ".unbatch()", ".filter(lambda *x: True)", ".enumerate()",
                ".window(2)", ".padded_batch(2)", ".rebatch(2)", ".interleave(lambda *x: Dataset.range(2))", ".map(lambda *x: refused(x[0]))",
                ".with_options(options())", ".apply(asserted(3))",
            )
            for _ in range(self._number(0, 3))
        )  # fmt: skip
        return f"at({data}{stages}, {index})"

    def _nested(self) -> str:
        made = self._either(
            "Dataset.range(5).window(2)", "Dataset.range(6).window(2, shift=1, drop_remainder=True)", "Dataset.range(4).map(lambda x: Dataset.range(x))",
            "Dataset.range(4).map(lambda x: (x, Dataset.range(x)))", "Dataset.range(3).map(lambda x: {'d': Dataset.range(x), 'n': x})",
            "Dataset.from_tensors(Dataset.range(3))", "Dataset.from_tensors((Dataset.range(3), 1))", "Dataset.from_tensors({'d': Dataset.range(3)})",
            "Dataset.from_tensor_slices([Dataset.range(2), Dataset.range(3)])", "Dataset.from_tensor_slices((np.arange(2), [Dataset.range(2), Dataset.range(3)]))",
            "Dataset.range(6).window(4).map(lambda w: w.window(2))", "Dataset.from_tensor_slices((np.arange(5), np.arange(5) * 2)).window(2)",
            "Dataset.from_tensor_slices({'a': np.arange(5)}).window(3, 2)", "Dataset.zip((Dataset.range(6).window(2), Dataset.range(2)))",
            "Dataset.range(4).group_by_window(lambda x: x % 2, lambda key, w: Dataset.from_tensors(w), 2)",
            "Dataset.from_generator(lambda: iter([Dataset.range(2)]), output_signature=DatasetSpec(Spec([], 'int64')))",
        )  # fmt: skip
        stages = "".join(
            self._either(
                ".flat_map(lambda *x: x[-1])", ".interleave(lambda *x: x[-1], 2, 1)", ".flat_map(lambda x: x)", ".flat_map(lambda x: x['d'])",
                ".map(lambda *x: x[-1])", ".flat_map(lambda *x: x[-1].batch(2))", ".flat_map(lambda *x: Dataset.zip(x))", ".flat_map(lambda x: Dataset.zip(x))",
                ".take(2)", ".skip(1)", ".repeat(2)", ".concatenate(Dataset.range(5).window(2))", ".enumerate()", ".cache()", ".prefetch(1)", ".shuffle(1)",
                ".batch(2)", ".batch(1).unbatch()", ".padded_batch(2)", ".filter(lambda *x: True)", ".unbatch()", ".window(2)", ".rebatch(1)", ".unique()",
                ".map(lambda *x: x[-1].reduce(np.int64(0), lambda s, y: s + 1))", ".map(lambda *x: x[-1].cardinality())", ".map(lambda *x: x[-1].get_single_element())",
                ".map(lambda *x: x[-1].map(lambda y: y + 1))", ".scan(np.int64(0), lambda s, *x: (s, x[-1]))", ".ignore_errors()", ".shard(2, 0)",
                ".take_while(lambda *x: True)", ".snapshot(folder())", ".group_by_window(lambda *x: np.int64(0), lambda k, w: w, 2)",
            )
            for _ in range(self._number(0, 3))
        )  # fmt: skip
        return self._either(
            f"{made}{stages}",
            f"{made}{stages}",
            f"told({made}{stages}.element_spec)",
            f"inner({made}{stages})",
            f"resumed({made}{stages}, 1)",
            f"list({made}{stages}.as_numpy_iterator())",
        )

    def _records(self) -> str:
        made = self._either(
            "Dataset.from_tensors({R}(1, 'a'))", "Dataset.from_tensor_slices({R}(np.arange(4), np.arange(4) * 2))", "Dataset.range(4).map(lambda x: {R}(x, x + 1))",
            "Dataset.from_tensor_slices({R}([1, 2, 3], {'k': [1., 2., 3.]}))", "Dataset.range(3).map(lambda x: {'r': {R}(x, 1)})",
            "Dataset.range(3).map(lambda x: ({R}(x, {R}(x, 1)), x))", "Dataset.zip({R}(Dataset.range(3), Dataset.range(4)))",
            "Dataset.zip((Dataset.from_tensors({R}(1, 2)), Dataset.range(2)))", "Dataset.from_tensors({R}(None, 1))",
            "Dataset.from_tensors([{R}(1, 2), {R}(3, 4)])", "Dataset.from_tensors({R}(Dataset.range(2), 1))",
        ).replace("{R}", self._either("Point", "Pair", "Fields"))  # fmt: skip
        kind = self._either("Point", "Pair", "Fields")
        stages = "".join(
            self._either(
                ".batch(2)", ".padded_batch(2)", ".map(lambda x: x.x)", ".map(lambda x: x)", ".map(lambda *x: x[0])", ".filter(lambda x: x.x > 0)", ".take(2)", ".repeat(2)",
                ".shuffle(1)", ".enumerate()", ".cache()", ".unbatch()", ".batch(3).unbatch()", ".window(2).flat_map(lambda w: w.x.batch(2))", ".prefetch(1)",
                f".map(lambda x: {kind}(x, x))", f".map(lambda x: {kind}(x.y, x.x))", ".interleave(lambda x: Dataset.from_tensors(x).repeat(2), 2)",
                ".concatenate(Dataset.from_tensors({R}(np.int64(1), np.int64(2))))".replace("{R}", kind), ".unique()", ".rebatch(1)", ".group_by_window(lambda x: np.int64(0), lambda k, w: w.batch(2), 2)",
                f".scan(np.int64(0), lambda s, x: (s + 1, {kind}(s, x)))", ".snapshot(folder())", ".ignore_errors()", ".take_while(lambda x: True)",
            )
            for _ in range(self._number(0, 3))
        )  # fmt: skip
        return self._either(
            f"{made}{stages}", f"{made}{stages}", f"{made}{stages}", f"told({made}{stages}.element_spec)", f"list({made}{stages}.as_numpy_iterator())",
            f"resumed({made}{stages}, 1)", f"loaded({made}{stages}, {{}}, {{}})", f"optional({made}{stages})",
            f"{made}{stages}.reduce({kind}(0, 1), lambda s, x: {kind}(s.x + 1, s.y))",
        )  # fmt: skip

    def _grouped(self) -> str:
        key = self._odd(
            self._either("x % 2", "x % 3", "-x", "np.int64(0)"), "as32(x)", "'a'", "1.5", "x > 1", "[x]", "0"
        )
        fold = self._either(
            "np.int64(0), lambda s, x: s + x, lambda s: s",
            "(np.int64(0), np.int64(1)), lambda s, x: (s[0] + 1, s[1] * x), lambda a, b: (b, a)",
            "np.int64(0), lambda s, x: s + 1, lambda s: (s, s)",
            "{'n': np.int64(0)}, lambda s, x: {'n': s['n'] + x}, lambda s: s",
            "Point(np.int64(0), np.int64(0)), lambda s, x: Point(s.x + 1, x), lambda s: s.y",
            self._odd("np.int64(0), lambda s, x: s, lambda s: 'a'", "np.int64(0), lambda s, x: s + 1.5, lambda s: s", "0, lambda s, x: (s, s), lambda s: s", "1, 2, 3"),
        )  # fmt: skip
        start, step, end = fold.split(", lambda ", 2) if fold.count(", lambda ") == 2 else (fold, "", "")
        if step:
            reducer = f"experimental.Reducer(lambda key: {start}, lambda {step}, lambda {end})"
        else:
            reducer = f"experimental.Reducer({start})"
        return f"{self._some()}.take(9).apply(experimental.group_by_reducer(lambda x: {key}, {reducer}))"
