/** From values to shares of a width, and round numbers to label them. */
export type Scale = {
  low: number;
  high: number;
  place: (value: number) => number;
  ticks: number[];
  digits: number;
};

/** A scale that holds all values (those that are no numbers left aside), with about `count` labels. */
export function scale(values: (number | null | undefined)[], count = 5): Scale {
  const known = values.filter((value): value is number => Number.isFinite(value));
  let low = Math.min(...known);
  let high = Math.max(...known);
  if (!known.length) [low, high] = [0, 1];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const pad = (high - low) * 0.04;
  [low, high] = [low - pad, high + pad];
  const rough = (high - low) / count;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * size).find((one) => one >= rough)!;
  const ticks: number[] = [];
  for (let at = Math.ceil(low / step); at * step <= high; at++) ticks.push(at * step);
  return {
    low,
    high,
    ticks,
    digits: Math.max(0, -Math.floor(Math.log10(step))),
    place: (value) => (value - low) / (high - low),
  };
}
