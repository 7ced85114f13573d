/**
 * A force-directed layout of up to 2,000 nodes: edges attract, near nodes repel. Repulsion ends at a distance, so that a
 * grid finds the near nodes and the cost of a step is linear in the count of nodes.
 */
export type Net = {
  count: number;
  source: ArrayLike<number>;
  target: ArrayLike<number>;
  weight: ArrayLike<number>;
  hops: ArrayLike<number>;
};

const REACH = 90; // Pixels within which nodes repel each other.
const LENGTH = 42; // Pixels of an edge without tension.

export class Force {
  readonly x: Float32Array;
  readonly y: Float32Array;
  heat = 1;
  private readonly vx: Float32Array;
  private readonly vy: Float32Array;
  private readonly degree: Uint16Array;

  constructor(readonly net: Net) {
    const { count } = net;
    this.x = new Float32Array(count);
    this.y = new Float32Array(count);
    this.vx = new Float32Array(count);
    this.vy = new Float32Array(count);
    this.degree = new Uint16Array(count);
    for (let node = 0; node < count; node++) {
      // A spiral that begins with the fewest hops, so that a graph always has the same layout. 2.4 is the golden angle.
      const turn = node * 2.399963;
      const radius = 14 * Math.sqrt(node) + 30 * net.hops[node]!;
      this.x[node] = radius * Math.cos(turn);
      this.y[node] = radius * Math.sin(turn);
    }
    for (let edge = 0; edge < net.source.length; edge++) {
      this.degree[net.source[edge]!]!++;
      this.degree[net.target[edge]!]!++;
    }
  }

  step(): void {
    const { x, y, vx, vy, net } = this;
    const grid = new Map<number, number[]>();
    const cell = (node: number) =>
      Math.floor(x[node]! / REACH) * 8192 + Math.floor(y[node]! / REACH);
    for (let node = 0; node < net.count; node++) {
      const key = cell(node);
      const cellNodes = grid.get(key);
      if (cellNodes) cellNodes.push(node);
      else grid.set(key, [node]);
    }
    for (let node = 0; node < net.count; node++) {
      const key = cell(node);
      // The cell itself and its eight neighbours: a column of cells has 8192 keys.
      for (const offset of [-8193, -8192, -8191, -1, 0, 1, 8191, 8192, 8193]) {
        const cellNodes = grid.get(key + offset);
        if (!cellNodes) continue;
        for (const other of cellNodes) {
          if (other <= node) continue;
          const dx = x[node]! - x[other]! || 0.01 * (node - other);
          const dy = y[node]! - y[other]! || 0.01;
          const square = dx * dx + dy * dy;
          if (square > REACH * REACH) continue;
          const push = (260 * this.heat * (1 - Math.sqrt(square) / REACH)) / (square + 30);
          vx[node]! += dx * push;
          vy[node]! += dy * push;
          vx[other]! -= dx * push;
          vy[other]! -= dy * push;
        }
      }
      vx[node]! -= x[node]! * 0.006 * this.heat;
      vy[node]! -= y[node]! * 0.006 * this.heat;
    }
    for (let edge = 0; edge < net.source.length; edge++) {
      const a = net.source[edge]!;
      const b = net.target[edge]!;
      const dx = x[b]! - x[a]!;
      const dy = y[b]! - y[a]!;
      const distance = Math.hypot(dx, dy) || 1;
      const pull =
        (0.12 * this.heat * (distance - LENGTH)) /
        distance /
        Math.sqrt(Math.min(this.degree[a]!, this.degree[b]!) || 1);
      vx[a]! += dx * pull;
      vy[a]! += dy * pull;
      vx[b]! -= dx * pull;
      vy[b]! -= dy * pull;
    }
    for (let node = 0; node < net.count; node++) {
      const speed = Math.hypot(vx[node]!, vy[node]!);
      const limit = speed > 30 ? 30 / speed : 1;
      x[node]! += vx[node]! * limit;
      y[node]! += vy[node]! * limit;
      vx[node]! *= 0.55;
      vy[node]! *= 0.55;
    }
    this.heat *= 0.985;
  }

  /** Return the box around all nodes: left, top, right, bottom. */
  box(): [number, number, number, number] {
    let [left, top, right, bottom] = [-40, -40, 40, 40];
    for (let node = 0; node < this.net.count; node++) {
      left = Math.min(left, this.x[node]!);
      right = Math.max(right, this.x[node]!);
      top = Math.min(top, this.y[node]!);
      bottom = Math.max(bottom, this.y[node]!);
    }
    return [left, top, right, bottom];
  }
}
