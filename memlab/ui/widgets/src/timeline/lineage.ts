/** The origin of a version: the operator, the parents, and the evidence that the operator read. */
import type { Event } from "./axis";

// Digits of a hash: as many as everywhere else in memlab.
const DIGITS = 12;

/** Return the origin in words, or "" without one. Parents that were active before are named by their version. */
export function describeLineage(event: Event, slotEvents: Event[]): string {
  const parents = [...(event.parents ?? [])];
  if (!event.operator && !parents.length) return "";
  const earlier = slotEvents.filter((other) => other.event < event.event);
  const names = parents.map((hash) => {
    const parent = earlier.filter((other) => other.pack_hash === hash).at(-1);
    return parent ? `version ${parent.version}` : hash.slice(0, DIGITS);
  });
  const evidence = event.evidence ? `, evidence ${event.evidence.slice(0, DIGITS)}` : "";
  return `${event.operator || "made"} of ${names.join(", ") || "no parent"}${evidence}`;
}
