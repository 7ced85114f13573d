/** The charts above the columns: the count of rows for each value, which also filter by it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "../shared/text";

export type Bar = {
  column: string;
  value: string | null;
  low: number | null;
  high: number | null;
  all: number;
  shown: number;
};
export type Wanted = (string | number | null)[];

/** A bar for each word, most frequent first. A click adds the word to the filter or removes it. */
export function Words({
  column,
  bars,
  wanted,
  change,
}: {
  column: string;
  bars: Bar[];
  wanted: Wanted | undefined;
  change: (to: Wanted | undefined) => void;
}) {
  const largest = Math.max(1, ...bars.map((bar) => bar.all));
  const toggle = (value: string | null) => {
    const next = wanted?.includes(value)
      ? wanted.filter((other) => other !== value)
      : [...(wanted ?? []), value];
    change(next.length ? next : undefined);
  };
  return (
    <ul class="words" aria-label={`Filter by ${column}`}>
      {bars.map((bar) => {
        const on = wanted?.includes(bar.value) ?? false;
        const name = bar.value === null ? "none" : visible(bar.value);
        return (
          <li key={String(bar.value)}>
            <button
              type="button"
              aria-pressed={on}
              class={wanted && !on ? "out" : ""}
              onClick={() => toggle(bar.value)}
              title={`${name}: ${bar.shown.toLocaleString("en")} of ${bar.all.toLocaleString("en")}`}
            >
              <i class="all" style={{ width: `${(100 * bar.all) / largest}%` }} />
              <i class="part moves" style={{ width: `${(100 * bar.shown) / largest}%` }} />
              <span class={bar.value === null ? "value none" : "value"}>{name}</span>
              <span class="hidden">, </span>
              <span class="count">{short(bar.shown)}</span>
              <span class="hidden">{` of ${short(bar.all)}`}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** A range of numbers or times: drag over the bars, or move either end with the keyboard. */
export function Span({
  column,
  bars,
  wanted,
  change,
}: {
  column: string;
  bars: Bar[];
  wanted: Wanted | undefined;
  change: (to: Wanted | undefined) => void;
}) {
  const isTime = column === "created";
  const edges = bars.length ? [...bars.map((bar) => bar.low!), bars.at(-1)!.high!] : [];
  const selected = findEnds(wanted, edges, isTime);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const plot = useRef<HTMLDivElement>(null);
  const [low, high] = drag ? [Math.min(...drag), Math.max(...drag) + 1] : selected;
  const select = (from: number, to: number) => {
    const whole = from <= 0 && to >= bars.length;
    const bound = (at: number) =>
      at <= 0 || at >= bars.length
        ? null
        : isTime
          ? new Date(edges[at]!).toISOString()
          : edges[at]!;
    change(whole ? undefined : [bound(from), bound(to)]);
  };
  const barAt = (event: PointerEvent) => {
    const box = plot.current!.getBoundingClientRect();
    return Math.max(
      0,
      Math.min(bars.length - 1, Math.floor((bars.length * (event.clientX - box.left)) / box.width)),
    );
  };
  const largest = Math.max(1, ...bars.map((bar) => bar.all));
  const label = (at: number) => formatEdge(edges[at], isTime, edges);
  const step = (end: "from" | "to", by: number) =>
    end === "from"
      ? select(Math.max(0, Math.min(low + by, high - 1)), high)
      : select(low, Math.min(bars.length, Math.max(high + by, low + 1)));
  useEffect(() => setDrag(null), [wanted]);
  if (!bars.length) return <p class="none">no values</p>;
  return (
    <div class="span" role="group" aria-label={`Filter by ${column}`}>
      <div
        class="plot"
        ref={plot}
        title="Drag to filter"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag([barAt(event), barAt(event)]);
        }}
        onPointerMove={(event) => drag && setDrag([drag[0], barAt(event)])}
        onPointerUp={() => {
          if (!drag) return;
          const [from, to] = [Math.min(...drag), Math.max(...drag) + 1];
          if (from === selected[0] && to === selected[1]) setDrag(null);
          select(from, to);
        }}
      >
        {bars.map((bar, at) => (
          <span key={at} class={at < low || at >= high ? "bin out" : "bin"}>
            <i class="all" style={{ height: `${height(bar.all, largest)}%` }} />
            <i class="part" style={{ height: `${height(bar.shown, largest)}%` }} />
          </span>
        ))}
      </div>
      <div class="ends">
        {(["from", "to"] as const).map((end) => (
          <button
            key={end}
            type="button"
            class="plain"
            role="slider"
            aria-label={`${column} ${end}`}
            title="Move this bound with the arrow keys"
            aria-valuemin={0}
            aria-valuemax={bars.length}
            aria-valuenow={end === "from" ? low : high}
            aria-valuetext={label(end === "from" ? low : high)}
            onKeyDown={(event) => {
              const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
              if (!by) return;
              event.preventDefault();
              step(end, by);
            }}
          >
            {label(end === "from" ? low : high)}
          </button>
        ))}
      </div>
    </div>
  );
}

/** Return the height of a bar in per cent; a count above zero is always visible. */
function height(count: number, largest: number): number {
  return count ? 4 + (96 * count) / largest : 0;
}

/** Return the indexes of the edges between which the filter selects. */
export function findEnds(
  wanted: Wanted | undefined,
  edges: number[],
  isTime: boolean,
): [number, number] {
  const last = edges.length - 1;
  const nearest = (value: unknown, fallback: number) => {
    if (value === null || value === undefined) return fallback;
    const number = isTime ? new Date(value as string).getTime() : (value as number);
    let best = 0;
    edges.forEach((edge, at) => {
      if (Math.abs(edge - number) < Math.abs(edges[best]! - number)) best = at;
    });
    return best;
  };
  return [nearest(wanted?.[0], 0), nearest(wanted?.[1], last)];
}

/** Format the edge of a bar: a number, or a time as precise as the range of all edges needs. */
export function formatEdge(edge: number | undefined, isTime: boolean, edges: number[]): string {
  if (edge === undefined) return "";
  if (!isTime) return edge.toLocaleString("en");
  const days = (edges.at(-1)! - edges[0]!) / 86_400_000;
  const text = new Date(edge).toISOString();
  if (days < 3) return text.slice(5, 16).replace("T", " ");
  if (days > 300) return text.slice(0, 7);
  return new Date(edge).toLocaleDateString("en-GB", {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  });
}

/** Format a count in few characters: `12,345` as `12k`. */
export function short(count: number): string {
  return count >= 1e6
    ? `${(count / 1e6).toFixed(1)}M`
    : count >= 10_000
      ? `${Math.round(count / 1000)}k`
      : count.toLocaleString("en");
}
