/** Version timeline: what decided when, two versions side by side, the questions that they answer otherwise, the way back. */
import { useMemo, useState } from "preact/hooks";
import { HEAD, Minis, type Move, Slope, type Sum, summary } from "../ranks/moves";
import moved from "../ranks/moves.css";
import { plural, Said, visible } from "../shared/text";
import { useAsk, useRows, useStill, useTrait, widget } from "../shared/widget";
import { Axis, type Bin, crowded, type Event, type Span, scaled, when } from "./axis";
import { Diff, type Line } from "./diff";
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
  const still = useStill();
  const [slot, setSlot] = useTrait<string>("slot");
  const [picked, setPicked] = useTrait<number[]>("picked");
  const [about] = useTrait<About>("_about");
  const [spans] = useTrait<Span[]>("_challenges");
  const [diff] = useTrait<Difference>("_diff");
  const [sums] = useTrait<Sum[]>("_sums");
  const [note] = useTrait<string>("_note");
  const events = useRows<Event>("_events");
  const bins = useRows<Bin>("_rewards");
  const judged = useRows<Judged>("_judged");
  const moves = useRows<Move>("_moves");
  const [even, setEven] = useState<"time" | "order" | null>(null);
  const [chosen, setChosen] = useState(0);

  const own = events.filter((event) => event.slot === slot);
  const { now } = about;
  const lanes = new Set([
    slot,
    ...events
      .filter((one, place) => events.some((other, at) => at !== place && other.slot === one.slot))
      .map((one) => one.slot),
  ]);
  const times = useMemo(() => {
    const drawn = events.filter((one) => lanes.has(one.slot)).map((one) => one.at);
    return [
      ...drawn,
      ...spans.flatMap(({ since, until }) => (until === null ? [since] : [since, until])),
      ...bins.slice(0, 1).map((bin) => bin.since),
    ];
  }, [events, spans, bins, slot]);
  const way = even ?? (crowded(times, now) ? "order" : "time");
  const scale = useMemo(() => scaled(times, now, way), [times, now, way]);
  const ticks = useMemo(() => marks(times, now, way), [times, now, way]);
  const pick = (version: number) =>
    setPicked(
      (picked.includes(version)
        ? picked.filter((one) => one !== version)
        : [...picked, version].slice(-2)
      ).sort((a, b) => a - b),
    );
  const place = Math.min(chosen, Math.max(0, sums.length - 1));
  const changed = sums.filter((sum) => sum.new).length;
  const [a, b] = picked;
  return (
    <div class="timeline">
      <div class="controls">
        <label>
          Slot
          <select
            value={slot}
            disabled={!!still}
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
            <option value="order">one step an event</option>
          </select>
        </label>
        <p class="note doc">{about.doc}</p>
        <button type="button" disabled={!!still} onClick={() => ask("look")}>
          Look again
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
        own={own}
        judged={judged}
        picked={picked}
        pick={pick}
        about={about}
        slot={slot}
        still={still}
        times={times}
      />
      {(note || still) && (
        <p class="note" role="status">
          {visible(still || note)}
        </p>
      )}
      {picked.length < 2 && (
        <p class="note">
          {own.length > 1
            ? "Pick two versions to compare them."
            : "There is one version: nothing to compare yet."}
        </p>
      )}
      {picked.length === 2 && diff.rows && (
        <section class="two" aria-label={`Versions ${a} and ${b}`}>
          {diff.verdict && <p class="notice">{visible(diff.verdict)}</p>}
          <Diff rows={diff.rows} heads={[`version ${a}`, `version ${b}`]} />
          {about.ranks ? (
            <>
              <h3>
                {sums.length
                  ? `${summary(sums)}`
                  : "No question was asked yet: set timeline.questions to compare answers."}
              </h3>
              <Minis sums={sums} moves={moves} chosen={place} choose={setChosen} />
              {sums[place] && (
                <>
                  <p class="question">
                    <Said text={sums[place].question} />
                    {` · ${plural(sums[place].new, "memory", "memories")} new in the top five`}
                  </p>
                  <Slope
                    moves={moves.filter((move) => move.question === place)}
                    heads={[`version ${a}`, `version ${b}`]}
                    open={null}
                  />
                </>
              )}
              {sums.length > 0 && !changed && (
                <p class="note">{`Both put the same five first in every question; the first ${HEAD} are drawn.`}</p>
              )}
            </>
          ) : (
            <p class="note">{`${slot} decides no rank of a recall, so no question is compared.`}</p>
          )}
        </section>
      )}
    </div>
  );
}

type VersionsProps = {
  own: Event[];
  judged: Judged[];
  picked: number[];
  pick: (version: number) => void;
  about: About;
  slot: string;
  still: string;
  times: number[];
};

function Versions({ own, judged, picked, pick, about, slot, still, times }: VersionsProps) {
  const ask = useAsk();
  const [reason, setReason] = useState("");
  const pin = about.pins?.[slot];
  const why =
    still ||
    (about.writable ? "" : "This lab is read-only.") ||
    (pin === undefined ? "" : `The slot is pinned to version ${pin}: unpin it first.`);
  const numbers = [...new Set(own.map((event) => event.version))].reverse();
  const live = own.at(-1)?.version;
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
            <th scope="col">how</th>
            <th scope="col">why</th>
            <th scope="col" class="number">
              recalls
            </th>
            <th scope="col">helped, with its 95% interval</th>
            <th scope="col">
              <span class="hidden">bring back</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {numbers.map((number) => {
            const rows = own.filter((event) => event.version === number);
            const first = rows[0]!;
            const how = judged.find((one) => one.version === number);
            return (
              <tr key={number} class={number === live ? "live" : ""}>
                <td>
                  <input
                    type="checkbox"
                    aria-label={`Pick version ${number}`}
                    checked={picked.includes(number)}
                    disabled={!!still}
                    onChange={() => pick(number)}
                  />
                </td>
                <td class="number">{number}</td>
                <td class="since">{when(first.at, times)}</td>
                <td>
                  {rows.map((one) => one.action).join(", ")}{" "}
                  <span class="note">{`${visible(first.pack)} [${first.hash}]`}</span>
                </td>
                <td class="reason">
                  <Said
                    text={rows
                      .map((one) => one.reason)
                      .filter(Boolean)
                      .join("; ")}
                  />
                </td>
                <td class="number">{how?.recalls.toLocaleString("en") ?? 0}</td>
                <td>
                  <Rate how={how} />
                </td>
                <td>
                  {number === live ? (
                    <b class="note">live</b>
                  ) : (
                    <button
                      type="button"
                      disabled={!!why || !reason.trim()}
                      title={why || (reason.trim() ? "" : "Say why first, below")}
                      aria-label={`Bring back version ${number}`}
                      onClick={() =>
                        ask("rollback", { version: number, reason }).then(
                          (done) => done && setReason(""),
                        )
                      }
                    >
                      Bring back
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
          Reason to bring one back
          <input
            type="text"
            dir="auto"
            value={reason}
            disabled={!!why}
            placeholder={why || "Why? It stands in the history"}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
      )}
    </div>
  );
}

function Rate({ how }: { how: Judged | undefined }) {
  if (!how || how.rate === null) return <span class="note">not judged</span>;
  const percent = (share: number) => `${(100 * share).toFixed(0)}%`;
  return (
    <span class="rate">
      <span class="scale" aria-hidden="true">
        <i style={{ left: percent(how.low!), width: percent(how.high! - how.low!) }} />
        <b style={{ left: percent(how.rate) }} />
      </span>
      {`${percent(how.rate)} of ${how.success + how.fail}`}
      <span class="hidden">{`, between ${percent(how.low!)} and ${percent(how.high!)}`}</span>
    </span>
  );
}

/** Instants that are written below the axis, few enough to be read. */
function marks(times: number[], now: number, way: "time" | "order"): number[] {
  const knots = [...new Set([...times, now])].sort((a, b) => a - b);
  if (way === "order") return knots.filter((_, place) => place % Math.ceil(knots.length / 8) === 0);
  const [first, last] = [knots[0]!, knots.at(-1)!];
  return last > first
    ? Array.from({ length: 6 }, (_, place) => first + ((last - first) * place) / 5)
    : [first];
}

export default widget("Version timeline", Timeline, moved + css);
