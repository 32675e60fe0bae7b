"""Kinds about record files and the encoding of tensors and examples."""

from __future__ import annotations

import base64
import os
import struct
from typing import Any

from tests.reference.compare import Comparison
from tests.reference.interpreter.codec import Json, as_bytes, decode, dtype
from tests.reference.interpreter.files import decompressed, record_file, records_in
from tests.reference.interpreter.pipelines import build
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import Mismatch, api


def tfrecord_write(given: Json, world: World, observed: Observed) -> None:
    path, compression = world.scratch / "written", given.get("compression")
    with api("io.TFRecordWriter")(str(path), compression) as writer:
        for record in given["records"]:
            writer.write(as_bytes(record))
    written = path.read_bytes()
    plain = decompressed(written, compression)
    observed.fields |= {
        "uncompressed_b64": _b64(plain),
        "uncompressed_length": len(plain),
        "frames": _frames(plain),
        "magic": written.hex()[: 4 if compression == "GZIP" else 2],
        "file_b64": _Reader(world, compression, given["records"]),
    }


def masked_crc32c(given: Json, world: World, observed: Observed) -> None:
    data = (
        as_bytes(given["data"]) if "data" in given else bytes([given["repeat_byte"]]) * given["repeat_count"]
    )
    observed.fields |= {"crc32c": api("io.crc32c")(data), "masked_crc": api("io.masked_crc32c")(data)}


def tfrecord_writer_dataset(given: Json, world: World, observed: Observed) -> None:
    path = world.scratch / "written"
    if given.get("existing"):
        path.write_bytes(record_file([b"an older file", b"with more records", b"than the new one"]))
    compression = given.get("compression_type")
    writer = api("data.experimental.TFRecordWriter")(str(path), compression)
    source = (
        decode(given["not_a_dataset"])
        if "not_a_dataset" in given
        else build(given["pipeline"], world.scratch)
    )
    observed.fields["returns"] = writer.write(source)
    observed.fields["records"] = records_in(decompressed(path.read_bytes(), compression))


def serialize_tensor(given: Json, world: World, observed: Observed) -> None:
    value = given["value"]
    encoded = api("io.serialize_tensor")(decode(value))
    kind = value["t"] if value["t"] == "string" else dtype(value["t"])
    observed.fields["bytes_b64"] = _b64(_bytes(encoded))
    observed.fields["round_trip"] = api("io.parse_tensor")(encoded, kind)


def parse_tensor(given: Json, world: World, observed: Observed) -> None:
    observed.fields["result"] = api("io.parse_tensor")(base64.b64decode(given["b64"]), dtype(given["dtype"]))


def example_encode(given: Json, world: World, observed: Observed) -> None:
    features = {name: _feature(feature) for name, feature in given["features"].items()}
    observed.fields["bytes_b64"] = _b64(_bytes(api("io.encode_example")(features)))


class _Reader:
    """The library's reader, compared with a recorded compressed file.

    A writer need not reproduce the file byte for byte, but a reader must find the given records in it.
    """

    def __init__(self, world: World, compression: str | None, records: Json) -> None:
        self._path = world.scratch / "recorded"
        self._compression, self._records = compression, [as_bytes(record) for record in records]

    def judge(self, expected: Json, path: str, comparison: Comparison) -> None:
        """Raises `Mismatch` unless the file `expected` (in base64) contains the records."""
        self._path.write_bytes(base64.b64decode(expected))
        read = api("data.TFRecordDataset")(os.fspath(self._path), compression_type=self._compression)
        found = [_bytes(record) for record in read]
        if found != self._records:
            raise Mismatch(f"{path}: expected the records {self._records!r}, read {found!r}")


def _frames(raw: bytes) -> list[dict[str, Any]]:
    frames = []
    while raw:
        length, length_crc = struct.unpack_from("<QI", raw)
        data, (data_crc,) = raw[12 : 12 + length], struct.unpack_from("<I", raw, 12 + length)
        if len(raw) < 16 + length:
            raise Mismatch(f"the file ends inside a record of {length} bytes")
        numbers = {"length": length, "masked_crc_of_length": length_crc, "masked_crc_of_data": data_crc}
        frames.append({**numbers, "data": data})
        raw = raw[16 + length :]
    return frames


def _feature(feature: Json) -> dict[str, Any]:
    ((kind, values),) = feature.items()
    return {kind: [as_bytes(value) for value in values] if kind == "bytes" else values}


def _bytes(value: Any) -> bytes:
    return bytes(value.item()) if hasattr(value, "item") else bytes(value)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


KINDS = {
    fn.__name__: fn
    for fn in (
        tfrecord_write,
        masked_crc32c,
        tfrecord_writer_dataset,
        serialize_tensor,
        parse_tensor,
        example_encode,
    )
}
