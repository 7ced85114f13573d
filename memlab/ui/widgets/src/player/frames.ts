/** Key frames: the state of all memories after an event, as columns of one table. */
import type { Table } from "../shared/table";
import type { Frame } from "./types";

/** Split a table that is sorted by event and memory into its frames. */
export function splitFrames(from: Table | null): Frame[] {
  if (!from?.numRows) return [];
  const column = (name: string) => from.getChild(name)!.toArray() as Uint8Array | Int32Array;
  const events = column("event");
  const frames: Frame[] = [];
  let start = 0;
  for (let row = 1; row <= events.length; row++) {
    if (row < events.length && events[row] === events[start]) continue;
    const part = (name: string) => column(name).subarray(start, row);
    frames.push({
      event: events[start]!,
      ids: part("id"),
      status: [part("status_a"), part("status_b")],
      keep: [part("keep_a"), part("keep_b")],
    });
    start = row;
  }
  return frames;
}

/** Return the last frame at or before an event; the first if there is none. */
export function findFrame(frames: Frame[], event: number): Frame | undefined {
  let best = frames[0];
  for (const frame of frames) if (frame.event <= event) best = frame;
  return best;
}
