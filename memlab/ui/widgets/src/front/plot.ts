/** Where the dots and intervals of a front are, in percent of the plot. */
import { type Scale, scale } from "../shared/scale";

export type Point = {
  hash: string;
  size: number;
  value: number | null;
  low: number | null;
  high: number | null;
  best: boolean;
};
export type Dot<P extends Point> = {
  point: P;
  left: number;
  bottom: number;
  low: number;
  high: number;
};

/** Return a dot for each point with a value, the logarithmic scale of sizes, and the scale of values. */
export function placeDots<P extends Point>(
  points: P[],
  start: number | null,
): { dots: Dot<P>[]; sizes: Pick<Scale, "place" | "ticks">; values: Scale } {
  // A correction has hundreds of operations, and policies of a search have a few.
  const logs = scale(points.map((point) => Math.log10(point.size)));
  const place = (size: number) => logs.place(Math.log10(size));
  const ticks = [1, 10, 100, 1_000, 10_000]
    .flatMap((power) => [power, 2 * power, 5 * power])
    .filter((size) => place(size) >= 0 && place(size) <= 1);
  const values = scale([start, ...points.flatMap(({ value, low, high }) => [value, low, high])]);
  const dots = points.flatMap((point) => {
    if (point.value === null) return [];
    const bottom = 100 * values.place(point.value);
    const toPercent = (bound: number | null) =>
      bound === null ? bottom : 100 * values.place(bound);
    const left = 100 * place(point.size);
    return [{ point, left, bottom, low: toPercent(point.low), high: toPercent(point.high) }];
  });
  return { dots, sizes: { place, ticks }, values };
}
