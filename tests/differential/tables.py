"""Texts of programs that read small CSV files, which may not fit the arguments."""

# ruff: noqa: E501 - each line has one program, or several

from __future__ import annotations

from tests.differential.programs import Drawn

_TYPES = ("int32", "int64", "float32", "float64", "string")
_DEFAULTS = {"int32": "[7]", "int64": "np.array([7])", "float32": "[0.5]", "float64": "np.array([0.5])", "string": "['d']"}  # fmt: skip
_FIELDS = {
    "int32": ("1", "-2", "30", "", "x", "1.5", "99999999999", " 4", "+5", "0x1", "NA"),
    "int64": ("1", "-2", "99999999999", "", "x", "NA", "5 "),
    "float32": ("1", "1.5", "-2e3", "", "nan", "inf", "x", ".5", "1e99", "NA"),
    "float64": ("1", "1.5", "-2e3", "", "1e-400", "-inf", "0x1p3", "NA"),
    "string": ("a", "bc", "", '"q"', '"a,b"', '"x""y"', " s ", "é", '"two\nlines"', "NA", "-"),
}


class TablePrograms(Drawn):
    """Makes programs that read one CSV file or two."""

    def next(self) -> str:
        """The next program, an expression."""
        kinds = [self._either(*_TYPES) for _ in range(self._number(1, 3))]
        return self._random.choice((self._columns, self._columns, self._batches))(kinds)

    def _field(self, kind: str) -> str:
        return self._random.choice(_FIELDS[kind][: 3 if self._random.random() < 0.8 else None])

    def _content(self, kinds: list[str], header: bool, delimiter: str) -> bytes:
        end = self._random.choice(("\n", "\n", "\n", "\r\n"))
        rows = [[self._field(kind) for kind in kinds] for _ in range(self._number(0, 4))]
        if self._random.random() < 0.05 and rows:
            self._random.choice(rows).append("more")
        if self._random.random() < 0.05 and rows:
            self._random.choice(rows).pop()
        if header:
            rows.insert(0, [f"c{number}" for number in range(len(kinds))])
        text = end.join(delimiter.join(row) for row in rows)
        return (text + end * (self._random.random() < 0.8) * bool(text)).encode()

    def _files(self, kinds: list[str], header: bool, delimiter: str) -> tuple[str, str]:
        pack = self._random.choice(("", "", "", "GZIP", "ZLIB"))
        names = [
            f"file({self._content(kinds, header, delimiter)!r}, {pack!r})"
            for _ in range(self._random.choice((1, 1, 2)))
        ]
        if self._random.random() < 0.03:
            pack = self._either("GZIP", "LZ", "")
        if self._random.random() < 0.03:
            names.append("'/missing'")
        return (names[0] if len(names) == 1 else f"[{', '.join(names)}]"), pack

    def _wanted(self, kinds: list[str]) -> str:
        found = []
        for kind in kinds:
            if self._random.random() < 0.04:
                kind = self._either(*_TYPES)
            found.append(_DEFAULTS[kind] if self._random.random() < 0.4 else f"dtypes.{kind}")
        if self._random.random() < 0.04:
            found.append(self._either("dtypes.bool", "[[1]]", "None", "dtypes.int32", "[]", "['a', 'b']"))
        return f"[{', '.join(found)}]"

    def _form(self, delimiter: str) -> str:
        text = f", field_delim={delimiter!r}" if delimiter != "," else ""
        if self._random.random() < 0.03:
            text = self._either(", field_delim=''", ", field_delim=';;'", ", field_delim='\"'")
        text += self._either("", "", "", ", use_quote_delim=False", ", use_quote_delim=True")
        return text + self._either("", "", ", na_value='NA'", ", na_value='-'")

    def _columns(self, kinds: list[str]) -> str:
        delimiter = self._either(",", ",", ";", "|", "\t")
        header = self._random.random() < 0.3
        names, pack = self._files(kinds, header, delimiter)
        more = f", header={header}" if header or self._random.random() < 0.2 else ""
        more += f", compression_type={pack!r}" if pack else self._either("", "", ", compression_type=None")
        if self._random.random() < 0.3:
            chosen = sorted(self._random.sample(range(len(kinds)), self._number(1, len(kinds))))
            kinds = [kinds[number] for number in chosen]
            more += f", select_cols={chosen}"
            if self._random.random() < 0.1:
                more = more.replace(f"{chosen}", self._either([0, 0], [-1], [5], [], "None", [1, 0]))
        elif self._random.random() < 0.15 and len(kinds) > 1:
            left_out = self._number(0, len(kinds) - 1)
            kinds = kinds[:left_out] + kinds[left_out + 1 :]
            more += f", exclude_cols=[{left_out}]"
        more += self._either("", "", "", ", buffer_size=1", ", buffer_size=5", ", buffer_size=None")
        stage = self._either("", "", ".batch(2)", ".ignore_errors()", ".take(2)", ".repeat(2)", ".skip(1)")
        return f"experimental.CsvDataset({names}, {self._wanted(kinds)}{more}{self._form(delimiter)}){stage}"

    def _batches(self, kinds: list[str]) -> str:
        delimiter = self._either(",", ",", ";")
        header = self._random.random() < 0.8
        names, pack = self._files(kinds, header, delimiter)
        size = 0 if self._random.random() < 0.03 else self._number(1, 3)
        columns = [f"c{number}" for number in range(len(kinds))]
        more = "" if header else f", header=False, column_names={columns}"
        if self._random.random() < 0.2 and header:
            more += f", column_names={[f'n{number}' for number in range(len(kinds))]}"
            columns = [f"n{number}" for number in range(len(kinds))]
        if self._random.random() < 0.4:
            more += f", label_name={self._random.choice([*columns, *(['none'] if self._random.random() < 0.1 else [])])!r}"
        if self._random.random() < 0.3:
            chosen = self._random.sample(columns, self._number(1, len(columns)))
            if self._random.random() < 0.3:
                chosen = [columns.index(name) for name in chosen]  # type: ignore[misc]
            more += f", select_columns={chosen}"
        elif self._random.random() < 0.5:
            more += f", column_defaults={self._wanted(kinds)}"
        more += self._either(
            "",
            "",
            ", num_rows_for_inference=1",
            ", num_rows_for_inference=0",
            ", num_rows_for_inference=None",
        )
        more += f", compression_type={pack!r}" if pack else ""
        more += self._either(
            "", "", ", ignore_errors=True", ", prefetch_buffer_size=1", ", num_parallel_reads=1"
        )
        epochs = self._either("1", "1", "2", "None")
        text = f"experimental.make_csv_dataset({names}, {size}, shuffle=False, num_epochs={epochs}{more}{self._form(delimiter)})"
        return f"{text}.map(lambda *x: x).take(5)" if epochs == "None" else text
