/** What memlab/ui/widgets/_player.py puts into traits. */
export type Param = { name: string; value: number; low: number; high: number };
export type About = {
  head: number;
  first: number;
  memories: number;
  drawn: number;
  statuses: string[];
  recallable: string[];
  packs: string[];
  live: string;
  params: Param[];
  generation: number;
};
export type Memory = {
  id: number;
  text: string;
  kind: string;
  created: unknown;
  superseded_by: number | null;
};
export type Happened = {
  event: number;
  at: string;
  kind: string;
  what: string;
  edges: number;
  count: number;
  pack: string;
  memories: unknown;
  deciders: {
    slot: string;
    number: number;
    pack: string;
    hash: string;
    source: string;
    reason: string;
  }[];
};
export type Side = {
  count: number;
  of: number;
  first: { id: number; at: string; to: string; text: string }[];
};
export type Gone = { until?: string; pack: string; sides: Side[] };

/** One instant: columns by memory, for each of two packs. */
export type Frame = {
  event: number;
  ids: ArrayLike<number>;
  status: [ArrayLike<number>, ArrayLike<number>];
  keep: [ArrayLike<number>, ArrayLike<number>];
};
