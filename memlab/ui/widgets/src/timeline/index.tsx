/** Version timeline: the versions of each slot over time, two of them side by side, their ranks, and restoring one. */
import { useMemo, useState } from "preact/hooks";
import { HEAD, Minis, type Move, Slope, type Sum, summarizeMoves } from "../ranks/moves";
import moved from "../ranks/moves.css";
import { type Quality, QualityPanel } from "../ranks/quality";
import qualities from "../ranks/quality.css";
import { plural, RECORDED, UserText, visible } from "../shared/text";
import { useAsk, useHint, useOfflineReason, useRows, useTrait, widget } from "../shared/widget";
import { Axis, type Bin, createScale, type Event, formatTime, isCrowded, type Span } from "./axis";
import { Diff, type Line } from "./diff";
import diffs from "./diff.css";
import { describeLineage } from "./lineage";
import css from "./timeline.css";

type About = {
  now: number;
  slots: string[];
  doc: string;
  ranks: boolean;
  writable: boolean;
  pins: Record<string, number>;
};
type Judged = {
  version: number;
  recalls: number;
  success: number;
  fail: number;
  rate: number | null;
  low: number | null;
  high: number | null;
};
type Difference = { verdict?: string; rows?: Line[]; changes?: string[] };

function Timeline() {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [slot, setSlot] = useTrait<string>("slot");
  const [picked, setPicked] = useTrait<number[]>("picked");
  const [about] = useTrait<About>("_about");
  const [spans] = useTrait<Span[]>("_challenges");
  const [diff] = useTrait<Difference>("_diff");
  const [sums] = useTrait<Sum[]>("_sums");
  const [note] = useTrait<string>("_note");
  const [quality] = useTrait<Quality>("_quality");
  const events = useRows<Event>("_events");
  const bins = useRows<Bin>("_rewards");
  const judged = useRows<Judged>("_judged");
  const moves = useRows<Move>("_moves");
  const [even, setEven] = useState<"time" | "order" | null>(null);
  const [chosen, setChosen] = useState(0);

  const slotEvents = events.filter((event) => event.slot === slot);
  const { now } = about;
  const lanes = new Set([
    slot,
    ...events
      .filter((event, index) =>
        events.some((other, position) => position !== index && other.slot === event.slot),
      )
      .map((event) => event.slot),
  ]);
  const times = useMemo(() => {
    const drawn = events.filter((event) => lanes.has(event.slot)).map((event) => event.at);
    return [
      ...drawn,
      ...spans.flatMap(({ since, until }) => (until === null ? [since] : [since, until])),
      ...bins.slice(0, 1).map((bin) => bin.since),
    ];
  }, [events, spans, bins, slot]);
  const way = even ?? (isCrowded(times, now) ? "order" : "time");
  const scale = useMemo(() => createScale(times, now, way), [times, now, way]);
  const ticks = useMemo(() => chooseTicks(times, now, way), [times, now, way]);
  const pick = (version: number) =>
    setPicked(
      (picked.includes(version)
        ? picked.filter((other) => other !== version)
        : [...picked, version].slice(-2)
      ).sort((a, b) => a - b),
    );
  const query = Math.min(chosen, Math.max(0, sums.length - 1));
  const changed = sums.filter((sum) => sum.new).length;
  const [a, b] = picked;
  return (
    <div class="timeline">
      <div class="controls">
        <label>
          Slot
          <select
            value={slot}
            disabled={!!offline}
            onChange={(event) => setSlot(event.currentTarget.value)}
          >
            {(about.slots ?? []).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          Axis
          <select
            value={way}
            onChange={(event) => setEven(event.currentTarget.value as "time" | "order")}
          >
            <option value="time">even in time</option>
            <option value="order">one step per event</option>
          </select>
        </label>
        <p class="note doc">{about.doc}</p>
        <button type="button" disabled={!!offline} onClick={() => ask("look")}>
          Refresh
        </button>
      </div>
      <Axis
        events={events}
        spans={spans}
        bins={bins}
        slot={slot}
        picked={picked}
        now={now}
        scale={scale}
        ticks={ticks}
        choose={setSlot}
        pick={pick}
      />
      <Versions
        slotEvents={slotEvents}
        judged={judged}
        picked={picked}
        pick={pick}
        about={about}
        slot={slot}
        offline={offline}
        times={times}
      />
      {(note || offline) && (
        <p class="note" role="status">
          {visible(offline || note)}
        </p>
      )}
      {picked.length < 2 && (
        <p class="note">
          {slotEvents.length > 1
            ? "Pick two versions to compare them."
            : "There is only one version, so there is nothing to compare yet."}
        </p>
      )}
      {picked.length === 2 && diff.rows && (
        <section class="two" aria-label={`Versions ${a} and ${b}`}>
          {diff.verdict && <p class="notice">{visible(diff.verdict)}</p>}
          <QualityPanel quality={quality} />
          <Diff rows={diff.rows} heads={[`version ${a}`, `version ${b}`]} />
          {about.ranks ? (
            <>
              <h3>
                {sums.length
                  ? `${summarizeMoves(sums)}`
                  : "There are no queries to rank. Set timeline.questions to compare ranks."}
              </h3>
              <Minis sums={sums} moves={moves} chosen={query} choose={setChosen} />
              {sums[query] && (
                <>
                  <p class="question">
                    <UserText text={sums[query].question} />
                    {` · ${plural(sums[query].new, "memory", "memories")} new in the top 5`}
                  </p>
                  <Slope
                    moves={moves.filter((move) => move.question === query)}
                    heads={[`version ${a}`, `version ${b}`]}
                    open={null}
                  />
                </>
              )}
              {sums.length > 0 && !changed && (
                <p class="note">{`Both versions return the same top 5 for every query. The chart shows the top ${HEAD}.`}</p>
              )}
            </>
          ) : (
            <p class="note">{`${slot} does not affect ranks, so there is no comparison of queries.`}</p>
          )}
        </section>
      )}
    </div>
  );
}

type VersionsProps = {
  slotEvents: Event[];
  judged: Judged[];
  picked: number[];
  pick: (version: number) => void;
  about: About;
  slot: string;
  offline: string;
  times: number[];
};

function Versions({
  slotEvents,
  judged,
  picked,
  pick,
  about,
  slot,
  offline,
  times,
}: VersionsProps) {
  const ask = useAsk();
  const hint = useHint();
  const [reason, setReason] = useState("");
  const pin = about.pins?.[slot];
  const blocked =
    offline ||
    (about.writable ? "" : "This lab is read-only.") ||
    (pin === undefined ? "" : `The slot is pinned to version ${pin}. Unpin it first.`);
  const numbers = [...new Set(slotEvents.map((event) => event.version))].reverse();
  const live = slotEvents.at(-1)?.version;
  return (
    <div class="versions">
      <table>
        <thead>
          <tr>
            <th scope="col">pick</th>
            <th scope="col" class="number">
              version
            </th>
            <th scope="col">since</th>
            <th scope="col">action</th>
            <th scope="col">reason</th>
            <th scope="col" class="number">
              recalls
            </th>
            <th scope="col">helped (95% interval)</th>
            <th scope="col">
              <span class="hidden">restore</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {numbers.map((number) => {
            const rows = slotEvents.filter((event) => event.version === number);
            const first = rows[0]!;
            const lineage = describeLineage(first, slotEvents);
            const counts = judged.find((outcome) => outcome.version === number);
            return (
              <tr key={number} class={number === live ? "live" : ""}>
                <td>
                  <input
                    type="checkbox"
                    aria-label={`Pick version ${number}`}
                    checked={picked.includes(number)}
                    disabled={!!offline}
                    onChange={() => pick(number)}
                  />
                </td>
                <td class="number">{number}</td>
                <td class="since">{formatTime(first.at, times)}</td>
                <td>
                  {rows.map((event) => event.action).join(", ")}{" "}
                  <span class="note">{`${visible(first.pack)} [${first.hash}]`}</span>
                  {lineage && <span class="note lineage">{`↳ ${visible(lineage)}`}</span>}
                </td>
                <td class="reason">
                  <UserText
                    text={rows
                      .map((event) => event.reason)
                      .filter(Boolean)
                      .join("; ")}
                  />
                </td>
                <td class="number">{counts?.recalls.toLocaleString("en") ?? 0}</td>
                <td>
                  <Rate counts={counts} />
                </td>
                <td>
                  {number === live ? (
                    <b class="note">active</b>
                  ) : (
                    <button
                      type="button"
                      disabled={!!blocked || !reason.trim()}
                      title={
                        blocked || (reason.trim() ? hint("rollback") : "Type a reason below first")
                      }
                      aria-label={`Restore version ${number}`}
                      onClick={() =>
                        ask("rollback", { version: number, reason }).then(
                          (done) => done && setReason(""),
                        )
                      }
                    >
                      Restore
                    </button>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {numbers.length > 1 && (
        <label class="reason">
          Reason for restoring
          <input
            type="text"
            dir="auto"
            value={reason}
            disabled={!!blocked}
            placeholder={blocked || RECORDED}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
      )}
    </div>
  );
}

function Rate({ counts }: { counts: Judged | undefined }) {
  if (!counts || counts.rate === null) return <span class="note">no feedback</span>;
  const percent = (share: number) => `${(100 * share).toFixed(0)}%`;
  return (
    <span class="rate">
      <span class="scale" aria-hidden="true">
        <i style={{ left: percent(counts.low!), width: percent(counts.high! - counts.low!) }} />
        <b style={{ left: percent(counts.rate) }} />
      </span>
      {`${percent(counts.rate)} of ${counts.success + counts.fail}`}
      <span class="hidden">{`, between ${percent(counts.low!)} and ${percent(counts.high!)}`}</span>
    </span>
  );
}

/** Return the instants with a label on the axis, few enough to be readable. */
function chooseTicks(times: number[], now: number, way: "time" | "order"): number[] {
  const knots = [...new Set([...times, now])].sort((a, b) => a - b);
  if (way === "order") return knots.filter((_, index) => index % Math.ceil(knots.length / 8) === 0);
  const [first, last] = [knots[0]!, knots.at(-1)!];
  return last > first
    ? Array.from({ length: 6 }, (_, index) => first + ((last - first) * index) / 5)
    : [first];
}

export default widget("Version timeline", Timeline, moved + qualities + diffs + css);
