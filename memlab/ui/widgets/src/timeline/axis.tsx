/** Slots, challengers and feedback on one axis of time. */
import { plural, visible } from "../shared/text";

export type Event = {
  slot: string;
  version: number;
  live: boolean;
  pinned: boolean;
  at: number;
  action: string;
  pack: string;
  hash: string;
  reason: string;
  event: number;
  /** The lineage of the version, if its pack states one. */
  parents?: Iterable<string> | null;
  operator?: string | null;
  evidence?: string | null;
  pack_hash?: string | null;
};
export type Span = { name: string; since: number; until: number | null; reason: string };
export type Bin = { since: number; until: number; good: number; count: number };
export type Scale = (time: number) => number;

type Segment = {
  version: number;
  from: number;
  to: number;
  pinned: boolean;
  action: string;
  reason: string;
};

/** Return a scale from 0 to 100 that is even in time, or gives each event the same width. */
export function createScale(times: number[], now: number, even: "time" | "order"): Scale {
  const knots = [...new Set([...times, now])].sort((a, b) => a - b);
  const first = knots[0]!;
  const last = knots.at(-1)!;
  if (even === "time")
    return (time) =>
      last > first ? Math.min(100, Math.max(0, (100 * (time - first)) / (last - first))) : 0;
  const step = 100 / Math.max(1, knots.length - 1);
  return (time) => {
    const next = knots.findIndex((knot) => knot >= time);
    if (next <= 0) return next === 0 ? 0 : 100;
    const [a, b] = [knots[next - 1]!, knots[next]!];
    return step * (next - 1 + (time - a) / (b - a));
  };
}

/** Return whether some version would be too narrow to see or to click. */
export function isCrowded(times: number[], now: number): boolean {
  const scale = createScale(times, now, "time");
  const positions = [...new Set([...times, now])].sort((a, b) => a - b).map(scale);
  return positions.some((position, index) => index > 0 && position - positions[index - 1]! < 1.5);
}

/** Return the periods of the versions of one slot. */
export function listPeriods(events: Event[], now: number): Segment[] {
  const periods: Segment[] = [];
  for (const { version, at, pinned, action, reason } of events) {
    const last = periods.at(-1);
    if (last) last.to = at;
    periods.push({ version, from: at, to: now, pinned, action, reason });
  }
  return periods;
}

export type AxisProps = {
  events: Event[];
  spans: Span[];
  bins: Bin[];
  slot: string;
  picked: number[];
  now: number;
  scale: Scale;
  ticks: number[];
  choose: (slot: string) => void;
  pick: (version: number) => void;
};

export function Axis({
  events,
  spans,
  bins,
  slot,
  picked,
  now,
  scale,
  ticks,
  choose,
  pick,
}: AxisProps) {
  const bySlot = new Map<string, Event[]>();
  for (const event of events) bySlot.set(event.slot, [...(bySlot.get(event.slot) ?? []), event]);
  const lanes = [...bySlot].filter(([name, own]) => name === slot || own.length > 1);
  const largest = Math.max(1, ...bins.map((bin) => Math.max(bin.good, bin.count - bin.good)));
  return (
    <div class="axis">
      {lanes.map(([name, own]) => (
        <div key={name} class={name === slot ? "lane chosen" : "lane"}>
          <button
            type="button"
            class="plain name"
            aria-pressed={name === slot}
            onClick={() => choose(name)}
          >
            {name}
          </button>
          <div class="track">
            {listPeriods(own, now).map((segment, index) => {
              const left = scale(segment.from);
              const description = `${name} version ${segment.version}, ${segment.action}${segment.pinned ? ", pinned" : ""}${segment.reason ? `: ${visible(segment.reason)}` : ""}`;
              const style = {
                left: `${left}%`,
                width: `max(4px, calc(${scale(segment.to) - left}% - 2px))`,
              };
              return name === slot ? (
                <button
                  key={index}
                  type="button"
                  class={`version ${segment.pinned ? "held" : ""}`}
                  style={style}
                  title={description}
                  aria-label={description}
                  aria-pressed={picked.includes(segment.version)}
                  onClick={() => pick(segment.version)}
                >
                  {segment.version}
                  {segment.pinned ? " ⊙" : ""}
                </button>
              ) : (
                <span
                  key={index}
                  class={`version ${segment.pinned ? "held" : ""}`}
                  style={style}
                  title={description}
                >
                  {segment.version}
                  {segment.pinned ? " ⊙" : ""}
                </span>
              );
            })}
          </div>
        </div>
      ))}
      {spans.map((span, index) => {
        const left = scale(span.since);
        return (
          <div key={index} class="lane">
            <span class="name note">challenger</span>
            <div class="track">
              <span
                class={span.until === null ? "span going" : "span"}
                style={{ left: `${left}%`, width: `max(6px, ${scale(span.until ?? now) - left}%)` }}
                title={visible(span.reason)}
              />
              <span
                class="label"
                style={left > 60 ? { right: `${100 - left}%` } : { left: `${left}%` }}
              >{`${visible(span.name)}${span.until === null ? "" : ", ended"}`}</span>
            </div>
          </div>
        );
      })}
      <div class="lane rewards">
        <span class="name note">feedback</span>
        <div class="track" role="img" aria-label={describeFeedback(bins)}>
          {bins.map((bin, index) => {
            const left = scale(bin.since);
            const style = {
              left: `${left}%`,
              width: `max(2px, calc(${scale(bin.until) - left}% - 1px))`,
            };
            return (
              <span
                key={index}
                class="bin"
                style={style}
                title={`${bin.good} helped, ${bin.count - bin.good} did not`}
              >
                <i class="good" style={{ height: `${(50 * bin.good) / largest}%` }} />
                <i class="bad" style={{ height: `${(50 * (bin.count - bin.good)) / largest}%` }} />
              </span>
            );
          })}
          {!bins.length && <span class="label">none yet</span>}
        </div>
      </div>
      <div class="lane ticks" aria-hidden="true">
        <span class="name" />
        <div class="track">
          {ticks.map((time) => (
            <span key={time} style={{ left: `${scale(time)}%` }}>
              {formatTime(time, ticks)}
            </span>
          ))}
        </div>
      </div>
    </div>
  );
}

function describeFeedback(bins: Bin[]): string {
  const good = bins.reduce((sum, bin) => sum + bin.good, 0);
  const count = bins.reduce((sum, bin) => sum + bin.count, 0);
  return count
    ? `${plural(count, "judgement")}: ${good} helped, ${count - good} did not`
    : "No feedback yet";
}

const DATE = { day: "numeric", month: "short" } as const;
const MINUTE = { hour: "2-digit", minute: "2-digit" } as const;
const SECOND = { ...MINUTE, second: "2-digit" } as const;

/**
 * Return a time in the shortest format that tells all times apart: with the year if they are of several years, a time
 * of day alone if all are on one day.
 */
export function formatTime(time: number, times: number[]): string {
  const count = (format: Intl.DateTimeFormatOptions) =>
    new Set(times.map((other) => new Intl.DateTimeFormat("en-GB", format).format(other))).size;
  const date = count({ year: "numeric" }) > 1 ? { ...DATE, year: "numeric" as const } : DATE;
  const isOneDay = times.length > 1 && count({ ...DATE, year: "numeric" }) === 1;
  const formats = isOneDay
    ? [MINUTE, SECOND]
    : [date, { ...date, ...MINUTE }, { ...date, ...SECOND }];
  const all = new Set(times).size;
  const format = formats.find((candidate) => count(candidate) === all) ?? formats.at(-1)!;
  return new Intl.DateTimeFormat("en-GB", format).format(time);
}
