"""Batches: what goes in comes out, and damaged ones are refused instead of believed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.telemetry.simulation import Replicas, steps
from workbench.errors import DataCorruption
from workbench.telemetry.recording import batches


def one_batch() -> bytes:
    replicas = Replicas(["a"])
    replicas.record(*steps(3, [0]))
    replicas.rings[0].emit("log", "stdout", "hello <b>", step=2)
    (data,) = replicas.drain()
    return data


def test_a_batch_survives_the_way_there_and_back() -> None:
    header, columns = batches.decode(one_batch())
    again_header, again = batches.decode(batches.encode(columns, header))
    assert again_header == header
    assert batches.to_table(again).equals(batches.to_table(columns))


@pytest.mark.parametrize("data", [b"x", b"\0" * 100, b"ARROW1\0\0" + b"\xff" * 40])
def test_what_is_no_batch_is_refused(data: bytes) -> None:
    with pytest.raises(DataCorruption, match="not a telemetry batch"):
        batches.decode(data)


def test_an_arrow_stream_of_something_else_is_refused() -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"x": [1]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(DataCorruption):
        batches.decode(bytes(sink.getvalue()))


def test_a_batch_cut_anywhere_is_refused() -> None:
    data = one_batch()
    for length in range(1, len(data) - 8, 7):  # the last 8 bytes only say that nothing follows
        with pytest.raises(DataCorruption):
            batches.decode(data[:length])


def test_a_batch_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "VERSION", 4)
    data = one_batch()
    monkeypatch.undo()
    with pytest.raises(DataCorruption, match="version 4, this workbench reads 3"):
        batches.decode(data)


def test_a_table_that_lacks_columns_is_refused() -> None:
    with pytest.raises(DataCorruption, match="lacks columns"):
        batches.from_batch(pa.record_batch({"seq": [1]}))


def test_text_columns_may_also_be_plain_strings() -> None:
    _, columns = batches.decode(one_batch())
    table = batches.to_table(columns)
    plain = table.set_column(table.column_names.index("op"), "op", table.column("op").cast(pa.utf8()))
    assert batches.to_table(batches.from_batch(plain.to_batches()[0])).equals(table)


def test_codes_without_a_text_are_refused() -> None:
    _, columns = batches.decode(one_batch())
    (batch,) = batches.to_table(columns).to_batches()
    index = batch.schema.names.index("op")
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, 1, 7], pa.int32()), ["reduce", "send"], safe=False)
    with pytest.raises(DataCorruption, match="column 'op' refers to texts it does not contain"):
        batches.from_batch(batch.set_column(index, "op", wrong))


@pytest.mark.parametrize("values", [["1", "2", "3"], [1.0, 2.0, 3.0]])
def test_numbers_of_another_type_are_refused(values: list[object]) -> None:
    _, columns = batches.decode(one_batch())
    (batch,) = batches.to_table(columns).to_batches()
    with pytest.raises(DataCorruption, match="column 'seq' has type"):
        batches.from_batch(batch.set_column(batch.schema.names.index("seq"), "seq", pa.array(values)))


def test_a_part_of_a_batch_has_its_own_rows() -> None:
    _, columns = batches.decode(one_batch())
    (batch,) = batches.to_table(columns).to_batches()
    part = batches.from_batch(batch.slice(1, 2))
    assert part["step"].tolist() == columns["step"].tolist()[1:]
    assert part["op"].tolist() == ["all_reduce"] * 2


def test_texts_of_any_language_survive() -> None:
    _, columns = batches.decode(one_batch())
    texts = ("", "ü€𝄞", "a" * 1000)
    sites = batches.Text(np.array([2, 0, 1], np.int32), texts)
    table = batches.to_table(columns | {"site": sites})
    table.validate(full=True)
    assert batches.from_batch(table.to_batches()[0])["site"].tolist() == [texts[2], texts[0], texts[1]]


def test_an_empty_batch_has_all_columns() -> None:
    assert batches.to_table(batches.empty()).num_rows == 0
