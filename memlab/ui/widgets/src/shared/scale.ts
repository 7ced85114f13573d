/** A mapping from values to shares of a width, with round numbers as labels. */
export type Scale = {
  low: number;
  high: number;
  place: (value: number) => number;
  ticks: number[];
  digits: number;
};

// Four percent of the range on both sides, so that no dot is cut by the border.
const PADDING = 0.04;

/** Return a scale that contains all finite values, with about `count` labels. */
export function scale(values: (number | null | undefined)[], count = 5): Scale {
  const finite = values.filter((value): value is number => Number.isFinite(value));
  let low = Math.min(...finite);
  let high = Math.max(...finite);
  if (!finite.length) [low, high] = [0, 1];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const padding = (high - low) * PADDING;
  [low, high] = [low - padding, high + padding];
  const smallestStep = (high - low) / count;
  const magnitude = 10 ** Math.floor(Math.log10(smallestStep));
  const step = [1, 2, 5, 10]
    .map((factor) => factor * magnitude)
    .find((candidate) => candidate >= smallestStep)!;
  const ticks: number[] = [];
  // A first index of -0 would become the label of a tick.
  for (let index = Math.ceil(low / step) || 0; index * step <= high; index++)
    ticks.push(index * step);
  return {
    low,
    high,
    ticks,
    digits: Math.max(0, -Math.floor(Math.log10(step))),
    place: (value) => (value - low) / (high - low),
  };
}
