/** Which letter and colour each term has: the same for all hits of a recall. */
export type Term = { term: string; value: number };
export type Key = { text: string; letter: string; place: number; order: number };

const COLOURS = 8;

/** The terms in the order in which they first stand; the largest eight have a letter and a colour. */
export function keyed(terms: Term[]): Map<string, Key> {
  const sizes = new Map<string, number>();
  for (const { term, value } of terms)
    sizes.set(term, (sizes.get(term) ?? 0) + (Number.isFinite(value) ? Math.abs(value) : 0));
  const largest = new Set(
    [...sizes]
      .sort((a, b) => b[1] - a[1])
      .slice(0, COLOURS)
      .map(([term]) => term),
  );
  const keys = new Map<string, Key>();
  let place = 0;
  for (const text of sizes.keys()) {
    const own = largest.has(text);
    keys.set(text, {
      text,
      letter: own ? String.fromCharCode(65 + place) : "…",
      place: own ? place : -1,
      order: own ? place : COLOURS,
    });
    if (own) place++;
  }
  return keys;
}

export function colour(key: Key | undefined): string {
  return key === undefined ? "var(--c0)" : key.place < 0 ? "var(--rest)" : `var(--c${key.place})`;
}
