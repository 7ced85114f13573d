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

/** From 0 to 100 over all that happened: even in time, or, where events are too close for that, even in their order. */
export function scaled(times: number[], now: number, even: "time" | "order"): Scale {
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

/** Whether some version would be too narrow to be seen, or hit. */
export function crowded(times: number[], now: number): boolean {
  const scale = scaled(times, now, "time");
  const places = [...new Set([...times, now])].sort((a, b) => a - b).map(scale);
  return places.some((place, index) => index > 0 && place - places[index - 1]! < 1.5);
}

function segments(events: Event[], now: number): Segment[] {
  const found: Segment[] = [];
  for (const { version, at, pinned, action, reason } of events) {
    const last = found.at(-1);
    if (last) last.to = at;
    found.push({ version, from: at, to: now, pinned, action, reason });
  }
  return found;
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
  const most = Math.max(1, ...bins.map((bin) => Math.max(bin.good, bin.count - bin.good)));
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
            {segments(own, now).map((one, place) => {
              const left = scale(one.from);
              const said = `${name} version ${one.version}, ${one.action}${one.pinned ? ", pinned" : ""}${one.reason ? `: ${visible(one.reason)}` : ""}`;
              const style = {
                left: `${left}%`,
                width: `max(4px, calc(${scale(one.to) - left}% - 2px))`,
              };
              return name === slot ? (
                <button
                  key={place}
                  type="button"
                  class={`version ${one.pinned ? "held" : ""}`}
                  style={style}
                  title={said}
                  aria-label={said}
                  aria-pressed={picked.includes(one.version)}
                  onClick={() => pick(one.version)}
                >
                  {one.version}
                  {one.pinned ? " ⊙" : ""}
                </button>
              ) : (
                <span
                  key={place}
                  class={`version ${one.pinned ? "held" : ""}`}
                  style={style}
                  title={said}
                >
                  {one.version}
                  {one.pinned ? " ⊙" : ""}
                </span>
              );
            })}
          </div>
        </div>
      ))}
      {spans.map((one, place) => {
        const left = scale(one.since);
        return (
          <div key={place} class="lane">
            <span class="name note">challenger</span>
            <div class="track">
              <span
                class={one.until === null ? "span going" : "span"}
                style={{ left: `${left}%`, width: `max(6px, ${scale(one.until ?? now) - left}%)` }}
                title={visible(one.reason)}
              />
              <span
                class="label"
                style={left > 60 ? { right: `${100 - left}%` } : { left: `${left}%` }}
              >{`${visible(one.name)}${one.until === null ? "" : ", ended"}`}</span>
            </div>
          </div>
        );
      })}
      <div class="lane rewards">
        <span class="name note">feedback</span>
        <div class="track" role="img" aria-label={judged(bins)}>
          {bins.map((bin, place) => {
            const left = scale(bin.since);
            const style = {
              left: `${left}%`,
              width: `max(2px, calc(${scale(bin.until) - left}% - 1px))`,
            };
            return (
              <span
                key={place}
                class="bin"
                style={style}
                title={`${bin.good} helped, ${bin.count - bin.good} did not`}
              >
                <i class="good" style={{ height: `${(50 * bin.good) / most}%` }} />
                <i class="bad" style={{ height: `${(50 * (bin.count - bin.good)) / most}%` }} />
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
              {when(time, ticks)}
            </span>
          ))}
        </div>
      </div>
    </div>
  );
}

function judged(bins: Bin[]): string {
  const good = bins.reduce((sum, bin) => sum + bin.good, 0);
  const count = bins.reduce((sum, bin) => sum + bin.count, 0);
  return count
    ? `${plural(count, "feedback")}: ${good} helped, ${count - good} did not`
    : "No feedback yet";
}

const [DATE, MINUTE, SECOND] = [
  { day: "numeric", month: "short" },
  { hour: "2-digit", minute: "2-digit" },
  { hour: "2-digit", minute: "2-digit", second: "2-digit" },
].map((format) => new Intl.DateTimeFormat("en-GB", format as Intl.DateTimeFormatOptions)) as [
  Intl.DateTimeFormat,
  Intl.DateTimeFormat,
  Intl.DateTimeFormat,
];

/** A date, or a time of day where all of it happened on one: with seconds if minutes are the same for some. */
export function when(time: number, among: number[]): string {
  const days = new Set(among.map((one) => new Date(one).toDateString()));
  if (days.size > 1 || among.length < 2) return DATE.format(time);
  const minutes = new Set(among.map((one) => MINUTE.format(one)));
  return (minutes.size < new Set(among).size ? SECOND : MINUTE).format(time);
}
