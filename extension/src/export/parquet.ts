// A table as a Parquet file: one row group, plain pages without compression, every column optional. The smallest part
// of the format that every reader understands; npm's writers are half as large as all views together.
import { known, sumOf } from "../format";
import type { Cell, Row } from "./sheet";

type Kind = "INT64" | "DOUBLE" | "BOOLEAN" | "BYTE_ARRAY";
const TYPES: Record<Kind, number> = { BOOLEAN: 0, INT64: 2, DOUBLE: 5, BYTE_ARRAY: 6 };
const MAGIC = new TextEncoder().encode("PAR1");
const PLAIN = 0;
const RLE = 3;
const OPTIONAL = 1;
const UTF8 = 0;
const DATA_PAGE = 0;

interface Chunk {
  name: string;
  kind: Kind;
  offset: number;
  bytes: number;
}

export function parquet(rows: readonly Row[]): Uint8Array<ArrayBuffer> {
  const file = new Bytes();
  file.raw(MAGIC);
  const chunks = Object.keys(rows[0] ?? {}).map((name): Chunk => {
    const cells = rows.map((row) => row[name] ?? null);
    const kind = kindOf(cells);
    const page = pageOf(cells, kind);
    const offset = file.length;
    file.raw(header(page.length, cells.length).taken());
    file.raw(page.taken());
    return { name, kind, offset, bytes: file.length - offset };
  });
  const footer = footerOf(chunks, rows.length).taken();
  file.raw(footer);
  file.int32(footer.length);
  file.raw(MAGIC);
  return file.taken();
}

function kindOf(cells: readonly Cell[]): Kind {
  const there = known(cells);
  if (there.length && there.every((cell) => typeof cell === "boolean")) return "BOOLEAN";
  if (!there.length || there.some((cell) => typeof cell !== "number")) return "BYTE_ARRAY";
  return there.every((cell) => Number.isSafeInteger(cell)) ? "INT64" : "DOUBLE";
}

/** Which cells exist (definition levels, one bit each), followed by their values. */
function pageOf(cells: readonly Cell[], kind: Kind): Bytes {
  const levels = new Bytes();
  const groups = Math.ceil(cells.length / 8);
  levels.varint((groups << 1) | 1); // a run of bit-packed levels
  bits(
    levels,
    cells.map((cell) => cell !== null),
  );
  const page = new Bytes();
  page.int32(levels.length);
  page.raw(levels.taken());
  const there = known(cells);
  if (kind === "BOOLEAN") bits(page, there.map(Boolean));
  else for (const cell of there) page.value(cell, kind);
  return page;
}

function bits(to: Bytes, flags: readonly boolean[]): void {
  for (let at = 0; at < flags.length; at += 8) {
    to.byte(flags.slice(at, at + 8).reduce((byte, flag, bit) => byte | (Number(flag) << bit), 0));
  }
}

function header(size: number, count: number): Bytes {
  return new Bytes().struct((page) => {
    page.i32(1, DATA_PAGE);
    page.i32(2, size);
    page.i32(3, size);
    page.inner(5, (data) => {
      data.i32(1, count);
      data.i32(2, PLAIN);
      data.i32(3, RLE);
      data.i32(4, RLE);
    });
  });
}

function footerOf(chunks: readonly Chunk[], rows: number): Bytes {
  const total = sumOf(chunks, (chunk) => chunk.bytes);
  return new Bytes().struct((meta) => {
    meta.i32(1, 1);
    meta.structs(2, chunks.length + 1, (element, index) => {
      const chunk = chunks[index - 1];
      if (!chunk) {
        element.text(4, "rows");
        element.i32(5, chunks.length);
        return;
      }
      element.i32(1, TYPES[chunk.kind]);
      element.i32(3, OPTIONAL);
      element.text(4, chunk.name);
      if (chunk.kind === "BYTE_ARRAY") element.i32(6, UTF8);
    });
    meta.i64(3, rows);
    meta.structs(4, 1, (group) => {
      group.structs(1, chunks.length, (column, index) => {
        const { name, kind, offset, bytes } = chunks[index]!;
        column.i64(2, offset);
        column.inner(3, (about) => {
          about.i32(1, TYPES[kind]);
          about.i32s(2, [PLAIN, RLE]);
          about.texts(3, [name]);
          about.i32(4, 0);
          about.i64(5, rows);
          about.i64(6, bytes);
          about.i64(7, bytes);
          about.i64(9, offset);
        });
      });
      group.i64(2, total);
      group.i64(3, rows);
    });
    meta.text(6, "workbench");
  });
}

/** Bytes that grow, and the structs of Thrift's compact protocol, in which Parquet describes itself. */
class Bytes {
  #parts = new Uint8Array(1024);
  #field = 0;
  length = 0;

  taken(): Uint8Array<ArrayBuffer> {
    return this.#parts.slice(0, this.length);
  }

  byte(value: number): void {
    this.raw(Uint8Array.of(value));
  }

  raw(bytes: Uint8Array): void {
    if (this.length + bytes.length > this.#parts.length) {
      const larger = new Uint8Array(2 * (this.length + bytes.length));
      larger.set(this.#parts);
      this.#parts = larger;
    }
    this.#parts.set(bytes, this.length);
    this.length += bytes.length;
  }

  int32(value: number): void {
    this.#fixed(4, (view) => view.setInt32(0, value, true));
  }

  value(cell: Exclude<Cell, null>, kind: Kind): void {
    if (kind === "INT64") this.#fixed(8, (view) => view.setBigInt64(0, BigInt(cell), true));
    else if (kind === "DOUBLE") this.#fixed(8, (view) => view.setFloat64(0, Number(cell), true));
    else {
      const text = new TextEncoder().encode(String(cell));
      this.int32(text.length);
      this.raw(text);
    }
  }

  varint(value: number | bigint): void {
    let rest = BigInt(value);
    while (rest >= 0x80n) {
      this.byte(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.byte(Number(rest));
  }

  struct(write: (fields: Bytes) => void): this {
    const before = this.#field;
    this.#field = 0;
    write(this);
    this.byte(0);
    this.#field = before;
    return this;
  }

  i32(field: number, value: number): void {
    this.#head(field, 5);
    this.#zigzag(value);
  }

  i64(field: number, value: number): void {
    this.#head(field, 6);
    this.#zigzag(value);
  }

  text(field: number, value: string): void {
    this.#head(field, 8);
    this.#string(value);
  }

  inner(field: number, write: (fields: Bytes) => void): void {
    this.#head(field, 12);
    this.struct(write);
  }

  structs(field: number, count: number, write: (fields: Bytes, index: number) => void): void {
    this.#list(field, 12, count);
    for (let index = 0; index < count; index += 1) this.struct((fields) => write(fields, index));
  }

  i32s(field: number, values: readonly number[]): void {
    this.#list(field, 5, values.length);
    for (const value of values) this.#zigzag(value);
  }

  texts(field: number, values: readonly string[]): void {
    this.#list(field, 8, values.length);
    for (const value of values) this.#string(value);
  }

  #head(field: number, type: number): void {
    this.byte(((field - this.#field) << 4) | type);
    this.#field = field;
  }

  #list(field: number, type: number, count: number): void {
    this.#head(field, 9);
    if (count < 15) this.byte((count << 4) | type);
    else {
      this.byte(0xf0 | type);
      this.varint(count);
    }
  }

  #zigzag(value: number): void {
    const wide = BigInt(value);
    this.varint(wide >= 0n ? 2n * wide : -2n * wide - 1n);
  }

  #string(value: string): void {
    const text = new TextEncoder().encode(value);
    this.varint(text.length);
    this.raw(text);
  }

  #fixed(size: number, write: (view: DataView) => void): void {
    const bytes = new Uint8Array(size);
    write(new DataView(bytes.buffer));
    this.raw(bytes);
  }
}
