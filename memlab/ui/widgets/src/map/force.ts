/**
 * A layout by forces for up to 2,000 nodes: edges pull, near nodes push. Pushing ends at a distance, so that a grid
 * finds who is near, and a step costs as much as there are nodes.
 */
export type Net = {
  count: number;
  source: ArrayLike<number>;
  target: ArrayLike<number>;
  weight: ArrayLike<number>;
  hops: ArrayLike<number>;
};

const REACH = 90; // pixels within which nodes push each other
const LENGTH = 42;

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
    for (let at = 0; at < count; at++) {
      // on a spiral, those of few hops within: the same picture each time
      const turn = at * 2.399963;
      const away = 14 * Math.sqrt(at) + 30 * net.hops[at]!;
      this.x[at] = away * Math.cos(turn);
      this.y[at] = away * Math.sin(turn);
    }
    for (let edge = 0; edge < net.source.length; edge++) {
      this.degree[net.source[edge]!]!++;
      this.degree[net.target[edge]!]!++;
    }
  }

  step(): void {
    const { x, y, vx, vy, net } = this;
    const grid = new Map<number, number[]>();
    const cell = (at: number) => Math.floor(x[at]! / REACH) * 8192 + Math.floor(y[at]! / REACH);
    for (let at = 0; at < net.count; at++) {
      const key = cell(at);
      const there = grid.get(key);
      if (there) there.push(at);
      else grid.set(key, [at]);
    }
    for (let at = 0; at < net.count; at++) {
      const key = cell(at);
      for (const beside of [-8193, -8192, -8191, -1, 0, 1, 8191, 8192, 8193]) {
        const there = grid.get(key + beside);
        if (!there) continue;
        for (const other of there) {
          if (other <= at) continue;
          const dx = x[at]! - x[other]! || 0.01 * (at - other);
          const dy = y[at]! - y[other]! || 0.01;
          const square = dx * dx + dy * dy;
          if (square > REACH * REACH) continue;
          const push = (260 * this.heat * (1 - Math.sqrt(square) / REACH)) / (square + 30);
          vx[at]! += dx * push;
          vy[at]! += dy * push;
          vx[other]! -= dx * push;
          vy[other]! -= dy * push;
        }
      }
      vx[at]! -= x[at]! * 0.006 * this.heat;
      vy[at]! -= y[at]! * 0.006 * this.heat;
    }
    for (let edge = 0; edge < net.source.length; edge++) {
      const a = net.source[edge]!;
      const b = net.target[edge]!;
      const dx = x[b]! - x[a]!;
      const dy = y[b]! - y[a]!;
      const away = Math.hypot(dx, dy) || 1;
      const pull =
        (0.12 * this.heat * (away - LENGTH)) /
        away /
        Math.sqrt(Math.min(this.degree[a]!, this.degree[b]!) || 1);
      vx[a]! += dx * pull;
      vy[a]! += dy * pull;
      vx[b]! -= dx * pull;
      vy[b]! -= dy * pull;
    }
    for (let at = 0; at < net.count; at++) {
      const speed = Math.hypot(vx[at]!, vy[at]!);
      const most = speed > 30 ? 30 / speed : 1;
      x[at]! += vx[at]! * most;
      y[at]! += vy[at]! * most;
      vx[at]! *= 0.55;
      vy[at]! *= 0.55;
    }
    this.heat *= 0.985;
  }

  /** The box around all nodes. */
  box(): [number, number, number, number] {
    let [left, top, right, bottom] = [-40, -40, 40, 40];
    for (let at = 0; at < this.net.count; at++) {
      left = Math.min(left, this.x[at]!);
      right = Math.max(right, this.x[at]!);
      top = Math.min(top, this.y[at]!);
      bottom = Math.max(bottom, this.y[at]!);
    }
    return [left, top, right, bottom];
  }
}
