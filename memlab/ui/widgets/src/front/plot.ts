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

/** Return a dot for each point with a value, and the scales of both axes. */
export function placeDots<P extends Point>(
  points: P[],
  start: number | null,
): { dots: Dot<P>[]; sizes: Scale; values: Scale } {
  const sizes = scale(points.map((point) => point.size));
  const values = scale([start, ...points.flatMap(({ value, low, high }) => [value, low, high])]);
  const dots = points.flatMap((point) => {
    if (point.value === null) return [];
    const bottom = 100 * values.place(point.value);
    const toPercent = (bound: number | null) =>
      bound === null ? bottom : 100 * values.place(bound);
    const left = 100 * sizes.place(point.size);
    return [{ point, left, bottom, low: toPercent(point.low), high: toPercent(point.high) }];
  });
  return { dots, sizes, values };
}
