/** Which points are meant: the nearest, and those within a lasso. */
type At = { id: Int32Array; x: Float32Array; y: Float32Array };

/** The place of the point nearest to (x, y) within a distance; -1 if there is none. */
export function nearest(at: At, x: number, y: number, within: number): number {
  let best = -1;
  let least = within * within;
  for (let index = 0; index < at.x.length; index++) {
    const dx = at.x[index]! - x;
    const dy = at.y[index]! - y;
    const square = dx * dx + dy * dy;
    if (square < least) [best, least] = [index, square];
  }
  return best;
}

/** The ids of the points within a closed path, by counting the sides that a ray crosses. */
export function lassoed(at: At, path: [number, number][]): number[] {
  const xs = path.map(([x]) => x);
  const ys = path.map(([, y]) => y);
  const [left, right, low, high] = [
    Math.min(...xs),
    Math.max(...xs),
    Math.min(...ys),
    Math.max(...ys),
  ];
  const found: number[] = [];
  for (let index = 0; index < at.x.length; index++) {
    const x = at.x[index]!;
    const y = at.y[index]!;
    if (x < left || x > right || y < low || y > high) continue;
    let inside = false;
    for (let a = 0, b = path.length - 1; a < path.length; b = a++) {
      if (
        ys[a]! > y !== ys[b]! > y &&
        x < ((xs[b]! - xs[a]!) * (y - ys[a]!)) / (ys[b]! - ys[a]!) + xs[a]!
      )
        inside = !inside;
    }
    if (inside) found.push(at.id[index]!);
  }
  return found;
}

/** `#3f73b5` as three numbers from 0 to 1. */
export function rgb(css: string): [number, number, number] {
  const hex = css.trim().replace("#", "");
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255) as [
    number,
    number,
    number,
  ];
}
