import { type Table, tableFromIPC } from "@uwdata/flechette";

export type { Table };

/** Return the Arrow table in the bytes of a trait or of an answer; null if there are none yet. */
export function table(bytes: DataView | Uint8Array | null | undefined): Table | null {
  if (!bytes?.byteLength) return null;
  const view = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // Columns are typed arrays over these bytes, which have to start at a multiple of eight.
  return tableFromIPC(view.byteOffset % 8 ? view.slice() : view);
}

/** Return the rows of a table as objects. For 100,000 rows, `getChild(name).toArray()` is much faster. */
export function rows<Row>(from: Table | null | undefined): Row[] {
  return from ? (from.toArray() as Row[]) : [];
}
