/** The points that a user selects: the nearest one, and those within a lasso. */
type Points = { id: Int32Array; x: Float32Array; y: Float32Array };

/** Return the index of the point nearest to (x, y) within a distance; -1 if there is none. `stretch` is the unit of x. */
export function nearest(points: Points, x: number, y: number, within: number, stretch = 1): number {
  let best = -1;
  let smallest = within * within;
  for (let index = 0; index < points.x.length; index++) {
    const dx = (points.x[index]! - x) * stretch;
    const dy = points.y[index]! - y;
    const square = dx * dx + dy * dy;
    if (square < smallest) [best, smallest] = [index, square];
  }
  return best;
}

/** Return the ids of the points within a closed path: a ray from a point inside crosses an odd number of sides. */
export function selectWithin(points: Points, path: [number, number][]): number[] {
  const xs = path.map(([x]) => x);
  const ys = path.map(([, y]) => y);
  const [left, right, low, high] = [
    Math.min(...xs),
    Math.max(...xs),
    Math.min(...ys),
    Math.max(...ys),
  ];
  const ids: number[] = [];
  for (let index = 0; index < points.x.length; index++) {
    const x = points.x[index]!;
    const y = points.y[index]!;
    if (x < left || x > right || y < low || y > high) continue;
    let inside = false;
    for (let a = 0, b = path.length - 1; a < path.length; b = a++) {
      if (
        ys[a]! > y !== ys[b]! > y &&
        x < ((xs[b]! - xs[a]!) * (y - ys[a]!)) / (ys[b]! - ys[a]!) + xs[a]!
      )
        inside = !inside;
    }
    if (inside) ids.push(points.id[index]!);
  }
  return ids;
}

/** Return a colour such as `#3f73b5` as three numbers from 0 to 1. */
export function parseColour(css: string): [number, number, number] {
  const hex = css.trim().replace("#", "");
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255) as [
    number,
    number,
    number,
  ];
}
