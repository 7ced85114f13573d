/** Key frames from one table: sorted by event, then by memory. */
import type { Table } from "../shared/table";
import type { Frame } from "./types";

export function frames(from: Table | null): Frame[] {
  if (!from?.numRows) return [];
  const column = (name: string) => from.getChild(name)!.toArray() as Uint8Array | Int32Array;
  const events = column("event");
  const found: Frame[] = [];
  let start = 0;
  for (let row = 1; row <= events.length; row++) {
    if (row < events.length && events[row] === events[start]) continue;
    const part = (name: string) => column(name).subarray(start, row);
    found.push({
      event: events[start]!,
      ids: part("id"),
      status: [part("status_a"), part("status_b")],
      keep: [part("keep_a"), part("keep_b")],
    });
    start = row;
  }
  return found;
}

/** The last frame at or before an event, or else the first. */
export function nearest(all: Frame[], event: number): Frame | undefined {
  let best = all[0];
  for (const one of all) if (one.event <= event) best = one;
  return best;
}
