import { type Table, tableFromIPC } from "@uwdata/flechette";

export type { Table };

/** An Arrow table from the bytes of a trait or of an answer; null where there are none yet. */
export function table(bytes: DataView | Uint8Array | null | undefined): Table | null {
  if (!bytes?.byteLength) return null;
  const given = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return tableFromIPC(given.byteOffset % 8 ? given.slice() : given); // columns are views of numbers, so they are aligned
}

/** The rows of a table as plain objects: for what a person reads. For 100,000 rows take `getChild(name).toArray()`. */
export function rows<Row>(from: Table | null | undefined): Row[] {
  return from ? (from.toArray() as Row[]) : [];
}
