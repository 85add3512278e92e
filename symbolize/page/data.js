// Reads what the program put into the page: base64 of gzip of a JSON header and typed columns (packing.py).
"use strict";

const COLUMN_TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };
const WORD = 8;

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** The bytes of a block of the page, as an ArrayBuffer. The block leaves the document: it is needed once. */
async function unpack(id) {
  const element = document.getElementById(id);
  const packed = fromBase64(element.textContent.trim());
  element.remove();
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** A column whose bytes are in planes: all lowest bytes first. */
function unplane(bytes, type, count) {
  const width = type.BYTES_PER_ELEMENT;
  if (width === 1) return bytes.slice();
  const result = new Uint8Array(count * width);
  for (let plane = 0; plane < width; plane++) {
    for (let i = 0, from = plane * count, to = plane; i < count; i++, from++, to += width) result[to] = bytes[from];
  }
  return new type(result.buffer);
}

/** The header, with `column(name)`. */
async function readData() {
  const buffer = await unpack("data");
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, WORD, size)));
  const columns = new Map();
  let start = WORD + size;
  for (const [name, dtype, count, factor] of header.columns) {
    const type = COLUMN_TYPES[dtype];
    const length = count * type.BYTES_PER_ELEMENT;
    columns.set(name, { type, count, factor, bytes: new Uint8Array(buffer, start, length) });
    start += Math.ceil(length / WORD) * WORD;
  }
  header.column = (name) => {
    const { type, count, factor, bytes } = columns.get(name);
    const numbers = unplane(bytes, type, count);
    return factor === 1 ? numbers : Float64Array.from(numbers, (number) => number * factor);
  };
  header.has = (name) => columns.has(name);
  header.names = header.names.map(shown);
  return header;
}

async function readSources() {
  return JSON.parse(new TextDecoder().decode(await unpack("sources")));
}
