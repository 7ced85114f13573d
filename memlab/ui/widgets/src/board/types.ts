/** What memlab/ui/widgets/_board.py puts into traits. */
export type Gate = {
  name: string;
  shown: string;
  asked: string;
  state: "open" | "closed" | "untested" | "not needed";
  finding: string;
  advice: string;
  more: number | null;
};
export type Row = {
  policy: string;
  value: number | null;
  low: number | null;
  high: number | null;
  difference: number | null;
  difference_low: number | null;
  difference_high: number | null;
  p: number | null;
  lower: number | null;
  upper: number | null;
  probes: number;
  unsupported: number | null;
  kind: string;
  verdict: string;
  recalls_needed: number | null;
  gates: Gate[];
};
export type Evaluation = {
  rows?: Row[];
  headline: string;
  facts: string;
  method: string;
  refusals: { policy: string; reason: string }[];
  next: string | null;
  notes: string[];
  baseline: string;
  key: unknown;
};
export type Item = {
  memory: string;
  text: string | null;
  rank: number;
  other: number | null;
  shown: boolean;
  reward: number | null;
};
export type Differences = {
  a: string;
  b: string;
  recalls?: { decision: string; query: string | null; shared: number; heads: [Item[], Item[]] }[];
};
export type Design = {
  policy: string;
  design: string;
  extra: number;
  difference: number;
  one_look: number | null;
  every_look: number | null;
  half_width: number;
  recall_cost: number | null;
  unsupported: number;
};
export type Plan = {
  baseline: string;
  recalls: number;
  notes: string[];
  best: Record<string, string>;
  designs?: Design[];
  key: unknown;
};
export type Day = { day: string; recalls: number; difference: number; low: number; high: number };
export type Verdict = {
  challenger: string;
  live: string;
  sentence: string;
  difference: number;
  low: number;
  high: number;
  recalls: number;
  needed: number | null;
  better: string | null;
  withheld: string[];
  days: Day[];
};
export type Challenge = { verdicts?: Verdict[]; facts: string; notes: string[]; key: unknown };
export type About = {
  recalls: number;
  judged: number;
  daily: number | null;
  known: string[];
  challengers: string[];
  challenged: boolean;
  lab: boolean;
  atOnce: boolean;
  head: number;
};
