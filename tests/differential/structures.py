"""Texts of random pipelines of nested structures and all dtypes, with arguments that may not fit."""

from __future__ import annotations

from tests.differential.programs import Drawn
from tests.differential.shapes import NAMES, Leaf, Nest, Shape, deeper, leaves, paths, shallower

_NUMBERS = (
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bool"
).split()
_DTYPES = [*_NUMBERS, "string"]


class StructuredPrograms(Drawn):
    """Makes programs whose stages mostly fit the elements before them."""

    def next(self) -> str:
        """The next program, an expression."""
        self._odd = self._random.random() < 0.3
        text, shape = self._source(self._number(0, 1))
        for _ in range(self._number(1, 4)):
            stage, shape = self._stage(shape)
            text += stage
        return self._asked(text, shape)

    def _oddly(self) -> bool:
        """Whether to do something unfitting here; at most once per program, because nothing behind it is tested."""
        if not self._odd or self._random.random() > 0.2:
            return False
        self._odd = False
        return True

    # Sources

    def _source(self, depth: int) -> tuple[str, Shape]:
        make = self._random.choice(
            (self._slices, self._slices, self._generated, self._range, self._whole, self._listed)
        )
        if depth and self._random.random() < 0.4:
            make = self._combined
        return make()

    def _array(self, leaf: Leaf, rows: int | None) -> str:
        sizes = [self._random.choice((0, 1, 2, 2, 3)) for _ in range(leaf.rank)]
        shape = sizes if rows is None else [rows, *sizes]
        return f"filled({shape}, {leaf.dtype!r}, {self._number(0, 9)})"

    def _shape(self, depth: int = 2) -> Shape:
        if not depth or self._random.random() < 0.5:
            return Leaf(self._either(*_DTYPES), self._random.choice((0, 0, 1, 2)))
        kind = self._either("tuple", "dict", "named")
        count = 2 if kind == "named" else self._number(1, 3)
        return Nest(kind, tuple(self._shape(depth - 1) for _ in range(count)))

    def _filled(self, shape: Shape, texts: list[str]) -> str:
        """The text of a value of a structure; `texts` has one for each leaf."""
        if isinstance(shape, Leaf):
            return texts.pop(0)
        parts = [self._filled(part, texts) for part in shape.parts]
        match shape.kind:
            case "tuple":
                return f"({', '.join(parts)},)"
            case "named":
                return f"Point({', '.join(parts)})"
            case _:
                return (
                    "{"
                    + ", ".join(f"{name!r}: {part}" for name, part in zip(NAMES, parts, strict=False))
                    + "}"
                )

    def _slices(self) -> tuple[str, Shape]:
        shape = self._shape()
        rows = self._number(0, 7)
        texts = [self._array(leaf, rows + self._oddly()) for leaf in leaves(shape)]
        return f"Dataset.from_tensor_slices({self._filled(shape, texts)})", shape

    def _whole(self) -> tuple[str, Shape]:
        shape = self._shape()
        texts = [self._array(leaf, None) for leaf in leaves(shape)]
        return f"Dataset.from_tensors({self._filled(shape, texts)})", shape

    def _listed(self) -> tuple[str, Shape]:
        fitting = (
            ("[1, 2, 3]", "int32", 0), ("[1.5, 2]", "float32", 0), ("[True, False]", "bool", 0),
            ("['a', b'bb', '']", "string", 0), ("[['a', 'b'], ['c', 'd']]", "string", 1),
            ("[[1, 2], [3, 4]]", "int32", 1),
            ("[]", "float32", 0), ("[[]]", "float32", 1), ("[1j, 2]", "complex128", 0),
            ("[(1, 2), (3, 4)]", "int32", 1),
            ("[np.zeros(2), np.ones(2)]", "float64", 1),
            ("([1, 2], ['x', 'y'])", "pair", 0), ("{'a': [1, 2], 'b': [3.0, 4.0]}", "dict", 0),
            ("np.array(['a', 'b'])", "string", 0), ("np.array([b'a', b'b'])", "string", 0), ("range(3)", "int32", 0),
        )  # fmt: skip
        odd = (
            ("5", "int32", 0), ("'text'", "string", 0), ("[[1], [2, 3]]", "int32", 1), ("[None]", "int32", 0),
            ("[2 ** 40, 1]", "int64", 0), ("(1, 2)", "int32", 0), ("[1, 'a']", "string", 0), ("[1, 2.5]", "float32", 0),
            ("[True, 2]", "int32", 0), ("None", "int32", 0), ("()", "int32", 0), ("object()", "int32", 0),
            ("([1, 2], [3])", "int32", 0), ("[b'a', 1]", "string", 0),
        )  # fmt: skip
        text, dtype, rank = self._random.choice(odd if self._oddly() else fitting)
        shape: Shape = Leaf(dtype, rank)
        if dtype == "pair":
            shape = Nest("tuple", (Leaf("int32"), Leaf("string")))
        if dtype == "dict":
            shape = Nest("dict", (Leaf("int32"), Leaf("float32")))
        return (
            f"Dataset.{self._either('from_tensor_slices', 'from_tensor_slices', 'from_tensors')}({text})",
            shape,
        )

    def _range(self) -> tuple[str, Shape]:
        dtype = self._either("int64", "int32", "uint8", "float32", "float16", "uint64", "int16", "float64")
        arguments = self._either("5", "7", "2, 9", "9, 2, -2", "0", "1, 9, 3")
        if self._oddly():
            arguments = self._either(
                "-3", "3, 3", "5, 1", "1, 5, -1", "0, 5, 0", "2.5", "300", "np.int32(3)", "True", ""
            )
        keyword = self._either("", f", output_type=np.{dtype}")
        return f"Dataset.range({arguments}{keyword})", Leaf(dtype if keyword else "int64")

    def _generated(self) -> tuple[str, Shape]:
        shape = self._random.choice((
            Leaf("int32"), Leaf("float32"), Leaf("string"), Leaf("int64", 1, True), Leaf("float32", 2, True),
            Leaf("string", 1, True),
            Nest("tuple", (Leaf("int64"), Leaf("int32", 1, True))),
            Nest("dict", (Leaf("string"), Leaf("float32", 1, True))),
            Nest("named", (Leaf("int64"), Leaf("string"))),
        ))  # fmt: skip
        specs = [
            f"Spec({[None] * leaf.varies + [self._either(None, 2)] * (leaf.rank - leaf.varies)}, {leaf.dtype!r})"
            if self._random.random() < 0.9
            else f"Spec(None, {leaf.dtype!r})"
            for leaf in leaves(shape)
        ]
        spec = self._filled(shape, [each.replace("'None'", "None").replace("'2'", "2") for each in specs])
        elements = []
        for _ in range(self._number(0, 5)):
            texts = []
            for leaf in leaves(shape):
                dtype = self._either(*_NUMBERS) if self._oddly() and leaf.dtype != "string" else leaf.dtype
                sizes = [self._number(0, 4)] * leaf.varies + [2] * (leaf.rank - leaf.varies)
                texts.append(f"filled({sizes}, {dtype!r}, {self._number(0, 9)})")
            elements.append(self._filled(shape, texts))
        if self._oddly():
            odd = self._either("1", "'x'", "None", "(1, 2, 3)", "[1, 2]", "FAIL", "FAIL")
            elements.insert(self._number(0, len(elements)), odd)
        return f"generator([{', '.join(elements)}], {spec})", shape

    def _combined(self) -> tuple[str, Shape]:
        (first, one), (second, other) = self._source(0), self._source(0)
        more = self._either(
            f"Dataset.zip({first}, {second})",
            f"Dataset.zip(({first}, {second}))",
            f"Dataset.zip(datasets=({first}, {second}))",
        )
        count = self._number(1, 6)
        choices = [self._number(0, 2) if self._oddly() else self._number(0, 1) for _ in range(count)]
        same = f"{first}.{self._either('take', 'skip')}({self._number(0, 3)})"
        kind = self._random.choice(("zip", "dict", "choose", "sample", "concatenate", "other"))
        if self._oddly():
            kind = self._either("list", "clash")
        match kind:
            case "zip":
                return more, Nest("tuple", (one, other))
            case "dict":
                return f"Dataset.zip({{'a': {first}, 'b': {second}}})", Nest("dict", (one, other))
            case "choose":
                stop = self._either("", ", stop_on_empty_dataset=False", ", stop_on_empty_dataset=True")
                choice = f"Dataset.from_tensor_slices(np.array({choices}, np.int64))"
                return f"Dataset.choose_from_datasets([{first}, {same}], {choice}{stop})", one
            case "sample":
                weights = self._either([1.0, 0.0], [0.0, 1.0], "[0, 2]", "np.array([1, 0], np.float32)")
                if self._oddly():
                    weights = self._either("[1.0]", "[0.0, 0.0]", "[1, -1]", "[[1.0, 0.0]]")
                stop = self._either("", ", stop_on_empty_dataset=False", ", stop_on_empty_dataset=True")
                return f"Dataset.sample_from_datasets([{first}, {same}], {weights}, seed=1{stop})", one
            case "concatenate":
                return f"{first}.concatenate({same})", one
            case "clash":
                return f"{first}.concatenate({second})", one
            case "list":
                return f"Dataset.zip([{first}, {second}])", Nest("tuple", (one, other))
            case _:
                return f"Dataset.zip(({first}, ({second}, {same})))", Nest(
                    "tuple", (one, Nest("tuple", (other, one)))
                )

    # Stages

    def _stage(self, shape: Shape) -> tuple[str, Shape]:
        make = self._random.choice((
            self._mapped, self._mapped, self._chosen, self._chosen, self._batched, self._inner, self._folded,
        ))  # fmt: skip
        return make(shape)

    def _mapped(self, shape: Shape) -> tuple[str, Shape]:
        arguments = arguments_of(shape)
        path, leaf = self._random.choice(paths("x", shape))
        parallel = self._either(
            "",
            "",
            "",
            ", num_parallel_calls=2",
            ", num_parallel_calls=2, deterministic=True",
            ", synchronous=True",
        )
        results: list[tuple[str, Shape]] = [
            ("x", shape),
            (path, leaf),
            (f"({path}, {path})", Nest("tuple", (leaf, leaf))),
            (f"[{path}, {path}]", Nest("tuple", (leaf, leaf))),
            (f"{{'b': {path}, 'a': x}}", Nest("dict", (shape, leaf))),
            (f"Point({path}, 1)", Nest("named", (leaf, Leaf("int32")))),
            (f"({path}, ({path}, 2.5))", Nest("tuple", (leaf, Nest("tuple", (leaf, Leaf("float32")))))),
            (f"({path}, [1, 2])", Nest("tuple", (leaf, Leaf("int32", 1)))),
            ("'text'", Leaf("string")),
            ("1", Leaf("int32")),
            ("True", Leaf("bool")),
            ("2.5", Leaf("float32")),
            ("np.arange(3)", Leaf("int64", 1)),
            ("(1, 'a')", Nest("tuple", (Leaf("int32"), Leaf("string")))),
            ("[1, 2]", Nest("tuple", (Leaf("int32"), Leaf("int32")))),
            (f"size({path})", Leaf("int64")),
            (f"numbers(size({path}))", Leaf("int64", 1, True)),
            (f"checked(size({path}), {path})", leaf),
            (f"({path},)", Nest("tuple", (leaf,))),
        ]
        if leaf.dtype not in ("string", "dataset"):
            results += [
                (f"cast({path}, {dtype!r})", Leaf(dtype, leaf.rank, leaf.varies))
                for dtype in ("int32", "float64", "uint8", "complex64", "float16", "bool")
            ]
        if leaf.dtype not in ("string", "bool", "dataset"):
            results += [(f"{path} + {path}", leaf), (f"{path} * {path}", leaf), (f"-{path}", leaf)]
        if leaf.rank:
            results += [(f"{path}[:1]", leaf), (f"{path}[0]", Leaf(leaf.dtype, leaf.rank - 1))]
        if self._oddly():
            results = [
                ("None", Leaf("int32")),
                ("Dataset.range(2)", Leaf("dataset")),
                ("()", Nest("tuple")),
                ("object", leaf),
            ]
        result, made = self._random.choice(results)
        return f".map(lambda {arguments}: {result}{parallel})", made

    def _chosen(self, shape: Shape) -> tuple[str, Shape]:
        arguments = arguments_of(shape)
        path, leaf = self._random.choice(paths("x", shape))
        small, other = self._number(0, 3), self._number(0, 5)
        simple = [
            f"take({other})", f"skip({small})", f"repeat({small})", f"repeat().take({other})",
            "shard(2, 1)", f"shard({small + 1}, {small})", "cache()", "shuffle(1)", f"prefetch({small})",
            "prefetch(-1)",
            f"filter(lambda {arguments}: size({path}) > {small})",
            f"filter(lambda {arguments}: {self._either('True', 'False', 'np.bool_(True)')})",
            f"take_while(lambda {arguments}: size({path}) > {small})", "ignore_errors()",
            f"take_while(lambda {arguments}: {self._either('True', 'False')})",
            f"with_options(options({self._either('deterministic=False', 'deterministic=True', '')}))",
            "apply(lambda dataset: dataset.take(2))", "prefetch(None)", f"apply(asserted({other}))",
        ]  # fmt: skip
        if leaf.dtype == "bool" and not leaf.rank:
            simple.append(f"filter(lambda {arguments}: {path})")
        if shape in (Leaf("int32"), Leaf("int64"), Leaf("string")):
            simple += ["unique()", "unique()"]
        if self._oddly():
            count = self._either(
                0, -1, -2, 100, "2 ** 40", "np.int64(2)", "np.int32(1)", "1.5", "True", "'1'"
            )
            simple = [
                f"take({count})", f"skip({count})", f"repeat({count}).take(5)", f"shard({count}, 0)",
                f"shard(3, {count})",
                f"shuffle({count})", f"prefetch({count})",
                f"filter(lambda {arguments}: {self._either('1', path, '[True]')})",
                f"take_while(lambda {arguments}: {self._either('1', path)})", "unique()",
                f"apply(lambda dataset: {self._either('None', '1')})", f"enumerate({count})", f"batch({count})",
                f"rebatch({count})", f"window({count})", f"window(2, {count})", f"window(2, 1, {count})",
                f"padded_batch({count})",
            ]  # fmt: skip
        elif self._random.random() < 0.2:
            start = self._either("", 1, -2, "2 ** 40", "np.int32(3)")
            return f".enumerate({start})", Nest("tuple", (Leaf("int64"), shape))
        return f".{self._either(*simple)}", shape

    def _batched(self, shape: Shape) -> tuple[str, Shape]:
        size = self._number(1, 4)
        drop = self._either("", ", drop_remainder=True", ", drop_remainder=False")
        found = leaves(shape)
        kind = self._random.choice(
            ("batch", "batch", "padded", "padded", "unbatch", "unbatch", "rebatch", "bucket")
        )
        if kind in ("unbatch", "rebatch") and not all(leaf.rank for leaf in found) and not self._oddly():
            kind = "batch"
        if kind == "bucket":
            arguments = arguments_of(shape)
            path, leaf = self._random.choice(paths("x", shape))
            length = self._either(f"size({path})", f"length({path})" if leaf.rank else "2", "1", "4")
            pad = self._either("", "", ", no_padding=True")
            boundaries, sizes = self._random.choice(
                (("[2, 4]", "[2, 3, 2]"), ("[3]", "[2, 1]"), ("[2, 3]", "[1, 2, 3]"))
            )
            if self._oddly():
                boundaries, sizes = self._random.choice(
                    (("[2]", "[2]"), ("[4, 2]", "[1, 2, 3]"), ("[2, 3]", "[2, 0, 2]"), ("[3]", "[2, -1]"))
                )
            if self._random.random() < 0.3:
                boundaries, sizes, pad = "[3, 30]", "[2, 2, 1]", ", pad_to_bucket_boundary=True"
            return (
                f".bucket_by_sequence_length(lambda {arguments}: {length}, {boundaries}, {sizes}{pad}{drop})",
                deeper(shape),
            )
        if kind == "unbatch":
            return ".unbatch()", shallower(shape)
        if kind == "rebatch":
            sizes = (
                self._either([], [0], [1, 0], [-1, 2], -1)
                if self._oddly()
                else self._either(size, [size, 1], [1, 2])
            )
            return f".rebatch({sizes}{drop})", shape
        if kind == "batch":
            parallel = self._either("", "", ", num_parallel_calls=2")
            return f".batch({size}{drop}{parallel})", deeper(shape)
        arguments = ""
        if self._flag() == "True":
            room = [[self._random.choice((None, -1, 2, 3, 4)) for _ in range(leaf.rank)] for leaf in found]
            if self._oddly():
                room[0] = [*room[0], 1]
            arguments += f", padded_shapes={self._filled(shape, [str(each) for each in room])}"
        if self._flag() == "True":
            values = []
            for leaf in found:
                fitting = (
                    self._either("'x'", "''", None)
                    if leaf.dtype == "string"
                    else f"np.{_numpy(leaf.dtype)}(1)"
                )
                plain = self._either(-1, 0, 1.5, True, "'x'", None, "np.int64(1)", "7", "300", "[1]")
                values.append(plain if self._oddly() else fitting)
            text = values[0] if self._oddly() else self._filled(shape, values)
            arguments += f", padding_values={text}"
        return f".padded_batch({size}{arguments}{drop})", deeper(shape)

    def _inner(self, shape: Shape) -> tuple[str, Shape]:
        arguments = arguments_of(shape)
        path, leaf = self._random.choice(paths("x", shape))
        cycle, block, count = self._number(1, 3), self._number(1, 3), self._number(0, 3)
        if self._oddly():
            cycle, block = self._random.choice((0, -1, -2, 1)), self._random.choice((0, -1, 2))
        drop = self._either("", ", drop_remainder=True")
        kind = self._random.choice(
            ("flat", "inter", "rows", "count", "window", "window", "group", "group", "windows")
        )
        if self._oddly():
            kind = "plain"
        if kind == "rows" and not leaf.rank and not self._oddly():
            kind = "flat"
        parallel = self._either("", ", num_parallel_calls=2", ", num_parallel_calls=2, deterministic=True")
        cycle = 2 if parallel else cycle
        match kind:
            case "flat":
                return f".flat_map(lambda {arguments}: Dataset.from_tensors(x).repeat({count}))", shape
            case "inter":
                inner = f"Dataset.from_tensors({path}).repeat({count})"
                return f".interleave(lambda {arguments}: {inner}, {cycle}, {block}{parallel})", leaf
            case "rows":
                return f".flat_map(lambda {arguments}: Dataset.from_tensor_slices({path}))", shallower(leaf)
            case "count":
                return (
                    f".interleave(lambda {arguments}: Dataset.range(size({path})), {cycle}, block_length={block})",
                    Leaf("int64"),
                )
            case "plain":
                return f".flat_map(lambda {arguments}: {self._either(path, '1', 'None', '[1, 2]')})", shape
            case "group":
                return self._grouped(shape, path, max(1, cycle))
            case "windows":
                shift = self._either("None", 1, 2, 5)
                return f".window({cycle}, shift={shift}, stride={block}{drop})", Leaf("dataset")
            case _:
                shift = self._either("None", 1, 2, 5)
                text = f".window({cycle}, shift={shift}, stride={block}{drop})"
                if isinstance(shape, Nest):
                    return (
                        f"{text}.flat_map(lambda {arguments}: {path}.batch({cycle}))"
                        if leaf.dtype != "dataset"
                        else text,
                        deeper(leaf),
                    )
                return f"{text}.flat_map(lambda x: x.batch({cycle}{drop}))", deeper(leaf)

    def _grouped(self, shape: Shape, path: str, cycle: int) -> tuple[str, Shape]:
        key = self._either(f"size({path})", f"size({path}) % 2", "np.int64(0)", "0", f"-size({path})")
        reduce = self._either(
            f"window.batch({cycle})",
            "window",
            "window.take(1)",
            "Dataset.from_tensors(key)",
            "window.enumerate()",
        )
        size = self._either(
            "window_size=2",
            f"window_size={cycle}",
            "window_size_func=lambda key: key + 50",
            "window_size_func=lambda key: np.int64(2)",
        )
        if self._oddly():
            key = self._either("1.5", "'k'", f"cast(size({path}), 'int32')", "[1]", "True", "np.float32(1)")
        if self._oddly():
            reduce = self._either("key", "None", "1")
        if self._oddly():
            size = self._either(
                "",
                "window_size=0",
                "window_size=-1",
                "window_size_func=lambda key: key",
                "window_size_func=lambda key: 2",
                "window_size_func=lambda key: 1.5",
            )
        made = {
            "window": shape,
            "window.take(1)": shape,
            "Dataset.from_tensors(key)": Leaf("int64"),
        }.get(reduce, deeper(shape))
        if reduce == "window.enumerate()":
            made = Nest("tuple", (Leaf("int64"), shape))
        return (
            f".group_by_window(lambda {arguments_of(shape)}: {key}, lambda key, window: {reduce}, {size})",
            made,
        )

    def _folded(self, shape: Shape) -> tuple[str, Shape]:
        path, leaf = self._random.choice(paths("x", shape))
        fitting = (
            ("np.int64(0)", f"s + size({path})", Leaf("int64")),
            ("0", "s + 1", Leaf("int32")),
            (
                "(np.int64(0), 'a')",
                f"(s[0] + size({path}), s[1])",
                Nest("tuple", (Leaf("int64"), Leaf("string"))),
            ),
            (
                "{'a': 1.5, 'b': [1, 2]}",
                "{'a': s['a'] * 2, 'b': s['b']}",
                Nest("dict", (Leaf("float32"), Leaf("int32", 1))),
            ),
            (
                "Point(np.float64(1), 2)",
                "Point(s.x + 1, s.y)",
                Nest("named", (Leaf("float64"), Leaf("int32"))),
            ),
            ("[1, 2]", "s", Leaf("int32", 1)),
            ("'a'", "s", Leaf("string")),
            ("np.int64(7)", "7", Leaf("int64")),
            ("np.zeros(0)", "joined(s, np.ones(1))", Leaf("float64", 1, True)),
        )
        odd = (
            ("np.int64(0)", "s + 1.5", Leaf("int64")),
            ("np.int64(0)", "'a'", Leaf("int64")),
            ("np.int64(0)", "(s, s)", Leaf("int64")),
            ("(0, 1)", "[s[1], s[0]]", Leaf("int32")),
            ("{'a': 1}", "{'b': 1}", Leaf("int32")),
            ("np.int32(0)", "np.int64(1)", Leaf("int32")),
            ("0", "np.zeros(2, np.int32)", Leaf("int32")),
        )
        state, after, made = self._random.choice(odd if self._oddly() else fitting)
        output, result = self._random.choice(
            (
                ("s", made),
                ("x", shape),
                (path, leaf),
                ("(s, x)", Nest("tuple", (made, shape))),
                ("1", Leaf("int32")),
            )
        )
        if self._oddly():
            return (
                f".scan({state}, lambda s, x: {self._either(after, f'({after}, {output}, 1)', 'None')})",
                result,
            )
        return f".scan({state}, lambda s, x: ({after}, {output}))", result

    def _asked(self, text: str, shape: Shape) -> str:
        """The program, or a query of it in place of its elements."""
        if self._random.random() < 0.8:
            return text
        path, _ = self._random.choice(paths("x", shape))
        return self._either(
            f"at({text}, {self._either(0, 1, 2, 5, -1, 'np.int64(1)')})",
            f"{text}.get_single_element()",
            f"{text}.take(1).get_single_element()",
            f"{text}.reduce(np.int64(0), lambda s, x: s + size({path}))",
            f"{text}.reduce(0, lambda s, x: s + {self._either(1, 1.5, 'True') if self._oddly() else 1})",
            f"{text}.reduce((0, np.zeros(0)), lambda s, x: (s[0] + 1, joined(s[1], np.ones(1))))",
            f"{text}.reduce({{'n': np.int64(0)}}, lambda s, x: {{'n': s['n'] + size({path})}})",
            f"{text}.reduce([1, 2], lambda s, x: s)",
            f"len({text})",
            f"bool({text})",
            f"list({text}.as_numpy_iterator())",
            f"steps({text}, {self._number(1, 4)})",
            f"resumed({text}, {self._number(0, 4)})",
            f"optional({text})",
        )


def _numpy(dtype: str) -> str:
    return {"bool": "bool_", "string": "bytes_"}.get(dtype, dtype)


def arguments_of(shape: Shape) -> str:
    """The arguments of a function of elements."""
    return "*x" if isinstance(shape, Nest) and shape.kind == "tuple" else "x"
