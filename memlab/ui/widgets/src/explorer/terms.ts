/** The parts of a score: terms in groups, with a letter and a colour each, and the segments of stacked bars. */

/** One term of a score. Snapshots of older versions have no label and no group. */
export type Term = { term: string; value: number; label?: string; group?: string };

/** A group of terms, or a single term that belongs to no group. */
export type Part = {
  id: string;
  name: string;
  isGroup: boolean;
  letter: string;
  /** The number of the colour; -1 for the parts that share grey. */
  colour: number;
  order: number;
  /** The distinct terms of the part. */
  terms: Term[];
};
export type Palette = Map<string, Part>;

/** A piece of a stacked bar: a part, or one term of a part that is open. */
export type Segment = { key: string; name: string; value: number; part: Part | undefined };

// The themes define eight colours that remain distinguishable next to each other.
const COLOURS = 8;
// Four decimals are printed: a smaller contribution would read +0.0000.
const SMALLEST_SHOWN = 0.00005;

/** Return what a reader sees for a term: its label, or its expression if it has none. */
export function nameTerm(term: Term): string {
  return term.label || term.term;
}

/** Return the id of the part that a term belongs to. */
export function identifyPart(term: Term): string {
  return term.group ? `group ${term.group}` : `term ${term.term}`;
}

/** Return whether a contribution rounds to zero. */
export function isNegligible(term: Term): boolean {
  return Math.abs(term.value) < SMALLEST_SHOWN;
}

/** Return the parts of all terms in the order of their appearance; the largest eight have a letter and a colour. */
export function buildPalette(terms: Term[]): Palette {
  const palette: Palette = new Map();
  const sizes = new Map<string, number>();
  for (const term of terms) {
    const id = identifyPart(term);
    const part = palette.get(id);
    if (!part) {
      const name = term.group || nameTerm(term);
      const isGroup = !!term.group;
      palette.set(id, {
        id,
        name,
        isGroup,
        letter: "…",
        colour: -1,
        order: COLOURS,
        terms: [term],
      });
    } else if (part.terms.every((other) => other.term !== term.term)) part.terms.push(term);
    const size = Number.isFinite(term.value) ? Math.abs(term.value) : 0;
    sizes.set(id, (sizes.get(id) ?? 0) + size);
  }
  const largest = new Set(
    [...sizes]
      .sort((a, b) => b[1] - a[1])
      .slice(0, COLOURS)
      .map(([id]) => id),
  );
  let index = 0;
  for (const part of palette.values()) {
    if (!largest.has(part.id)) continue;
    part.letter = String.fromCharCode(65 + index);
    part.colour = part.order = index++;
  }
  return palette;
}

/** Return the CSS colour of a part. */
export function colour(part: Part | undefined): string {
  return part === undefined
    ? "var(--c0)"
    : part.colour < 0
      ? "var(--rest)"
      : `var(--c${part.colour})`;
}

/** Return the terms of one score by part, in the order of the palette. */
export function groupTerms(terms: Term[], palette: Palette): [Part, Term[]][] {
  const groups = new Map<Part, Term[]>();
  for (const term of terms) {
    const part = palette.get(identifyPart(term));
    if (part) groups.set(part, [...(groups.get(part) ?? []), term]);
  }
  return [...groups].sort(([a], [b]) => a.order - b.order);
}

/** Return the sum of the values of terms. */
export function sumTerms(terms: Term[]): number {
  return terms.reduce((sum, term) => sum + term.value, 0);
}

/** Return the segments of one score: one for each part, and one for each term of the parts that are open. */
export function splitScore(terms: Term[], palette: Palette, open: Set<string>): Segment[] {
  return groupTerms(terms, palette)
    .flatMap(([part, members]) =>
      open.has(part.id)
        ? members.map((term) => ({
            key: `${part.id} ${term.term}`,
            name: nameTerm(term),
            value: term.value,
            part,
          }))
        : [{ key: part.id, name: part.name, value: sumTerms(members), part }],
    )
    .filter((segment) => Number.isFinite(segment.value) && segment.value !== 0);
}

/** Return the lowest and the highest end of all bars, so that they share one scale. */
export function measureExtent(bars: Segment[][]): [number, number] {
  let low = 0;
  let high = 0;
  for (const segments of bars) {
    const sum = (sign: number) =>
      segments
        .filter((segment) => segment.value * sign > 0)
        .reduce((total, segment) => total + segment.value, 0);
    low = Math.min(low, sum(-1));
    high = Math.max(high, sum(1));
  }
  return [low, high];
}
