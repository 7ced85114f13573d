/** Overview: counts by day, the latest recalls, what is missing, and how well labelled questions are answered. */
import { useEffect, useState } from "preact/hooks";
import { STYLES } from "../explorer/index";
import { describeHits } from "../ranks/quality";
import { NoRecalls, OUTCOMES, type Outcome, type Recall, Recalls } from "../recalls/list";
import recalls from "../recalls/recalls.css";
import { plural, UserText, visible } from "../shared/text";
import { useAsk, useOfflineReason, useRows, useTrait, widget } from "../shared/widget";
import { useWorking } from "../shared/working";
import { Offer, type Offered } from "./offer";
import css from "./overview.css";

type Sums = {
  memories: number;
  superseded: number;
  recalls: number;
  outcomes: Record<Outcome, number>;
  stale: number;
  tokens: number;
  questions: number;
  where: string;
  /** The hash of the active pack. */
  pack: string;
  head: number;
};
export type Day = Record<Outcome, number> & {
  day: string;
  recalls: number;
  stale: number;
  tokens: number;
};
type Gap = { query: string; decision: number; count: number; sure: boolean };
type Stale = {
  memory: number;
  decision: number;
  by: number;
  count: number;
  text: string | null;
  successor: string | null;
  before: boolean;
};
type Miss = { id: number; query: string; rank: number | null; wanted: string };
/** Why a question misses, and the text of the first result. */
type Why = { text: string; above: string };
type Quality = {
  value?: number;
  interval?: [number, number] | null;
  metric?: string;
  scored?: number;
  cut?: number;
  misses?: Miss[];
  pack?: string;
  lost?: [string, number, string][];
};

const ORDER: Outcome[] = ["helped", "failed", "nothing", "unrated"];

function Overview() {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [sums] = useTrait<Sums>("_sums");
  const [quality] = useTrait<Quality>("_answered");
  const [offered] = useTrait<Offered>("_offer");
  const days = useRows<Day>("_days");
  const list = useRows<Recall>("_recalls");
  const gaps = useRows<Gap>("_gaps");
  const stale = useRows<Stale>("_stale");
  const [begin, working] = useWorking();
  useEffect(() => {
    if (!offline) void begin("begin", {});
  }, [sums.head]);
  const open = (decision: number) => offline || ask("open", { decision });
  return (
    <div class="overview">
      {offered.note && <Offer offered={offered} />}
      <Tiles sums={sums} quality={quality} working={working?.work} />
      <div class="cards">
        <Days days={days} />
        <Questions sums={sums} quality={quality} />
      </div>
      <h3>Latest recalls</h3>
      {list.length ? <Recalls limit={8} /> : <NoRecalls />}
      {sums.recalls > 8 && (
        <p class="note">{`${(sums.recalls - 8).toLocaleString("en")} older recalls are in the recall log.`}</p>
      )}
      <div class="cards three">
        <section class="card" aria-label="Gaps">
          <h3>Gaps</h3>
          <p class="note">Queries that nothing answered. Store what they ask for.</p>
          <ul>
            {gaps.map((gap) => (
              <li key={gap.decision}>
                <button type="button" class="plain line" onClick={() => open(gap.decision)}>
                  <UserText text={gap.query} class="clamp" />
                </button>
                <span class="note">
                  {`${gap.count > 1 ? `asked ${gap.count} times · ` : ""}${gap.sure ? "nothing found" : "an answer is unlikely"}`}
                </span>
              </li>
            ))}
          </ul>
          {!gaps.length && <p class="note">None.</p>}
        </section>
        <section class="card" aria-label="Stale answers">
          <h3>Stale answers</h3>
          <p class="note">Shown memories that are superseded now.</p>
          <ul>
            {stale.map((item) => (
              <li key={item.memory}>
                <button type="button" class="plain line" onClick={() => open(item.decision)}>
                  <UserText text={item.text ?? "(purged)"} class="clamp" />
                </button>
                <span class="note">
                  {`#${item.memory}, ${item.before ? "shown although superseded" : "superseded since"} by #${item.by}: `}
                  <UserText text={item.successor ?? "(not visible)"} />
                </span>
              </li>
            ))}
          </ul>
          {!stale.length && <p class="note">None.</p>}
        </section>
        <section class="card" aria-label="Lost memories">
          <h3>Where wanted memories were lost</h3>
          {quality.lost?.length ? (
            <table>
              <tbody>
                {quality.lost.map(([place, count, meaning]) => (
                  <tr key={place}>
                    <td class="number">{count}</td>
                    <td>
                      {place} <span class="note">{meaning}</span>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          ) : (
            <p class="note">
              {
                'No logged recall has a known wanted memory. It has one after lab.feedback(hit, "success"), or if its query is that of a labelled question.'
              }
            </p>
          )}
        </section>
      </div>
      <Cell />
    </div>
  );
}

function Tiles({ sums, quality, working }: { sums: Sums; quality: Quality; working?: string }) {
  const { helped, failed, nothing } = sums.outcomes;
  const rated = helped + failed + nothing;
  const tiles: [string, string, string][] = [
    [
      "Memories",
      sums.memories.toLocaleString("en"),
      sums.superseded ? `${sums.superseded.toLocaleString("en")} superseded` : "",
    ],
    ["Recalls", sums.recalls.toLocaleString("en"), `${rated.toLocaleString("en")} rated`],
    [
      "Helped",
      rated ? `${Math.round((100 * helped) / rated)}%` : "–",
      rated ? `${helped} of ${rated} rated` : "no feedback yet",
    ],
    ["Nothing found", nothing.toLocaleString("en"), ""],
    ["Stale", sums.stale.toLocaleString("en"), "recalls with a superseded memory"],
    ["Tokens", sums.tokens.toLocaleString("en"), "shown, at four bytes each"],
    [
      "Questions",
      quality.value === undefined ? "–" : quality.value.toFixed(2),
      quality.value === undefined
        ? (working ?? "none labelled")
        : `${quality.metric}; ${quality.scored! - (quality.misses ?? []).length} of ${quality.scored} hit@${quality.cut}`,
    ],
  ];
  return (
    <dl class="tiles">
      {tiles.map(([name, value, note]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="value">{value}</dd>
          <dd class="note">{note}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Return the heights of a day's outcomes in percent of the highest day. */
export function stack(day: Day, highest: number): [Outcome, number][] {
  return ORDER.filter((name) => day[name]).map((name) => [
    name,
    (100 * day[name]) / Math.max(1, highest),
  ]);
}

function Days({ days }: { days: Day[] }) {
  const highest = Math.max(1, ...days.map((day) => day.recalls));
  return (
    <section class="card" aria-label="Recalls by day">
      <h3>Recalls by day</h3>
      <ol class={days.length ? "days" : "days hidden"}>
        {days.map((day) => (
          <li
            key={day.day}
            title={`${day.day}: ${describeDay(day)}`}
            aria-label={`${day.day}: ${describeDay(day)}`}
          >
            <span class="number">{day.recalls || ""}</span>
            <span class="column">
              {stack(day, highest).map(([name, height]) => (
                <i key={name} class={name} style={{ height: `${height}%` }} />
              ))}
            </span>
            <span class="note">{day.day.slice(8)}</span>
          </li>
        ))}
      </ol>
      {days.length > 0 ? (
        <p class="keys note">
          {`${days[0]!.day} to ${days.at(-1)!.day}, UTC`}
          {ORDER.map((name) => (
            <span key={name}>
              <i class={name} /> {OUTCOMES[name]}
            </span>
          ))}
        </p>
      ) : (
        <p class="note">No recalls logged yet.</p>
      )}
    </section>
  );
}

export function describeDay(day: Day): string {
  const parts = ORDER.filter((name) => day[name]).map((name) => `${day[name]} ${OUTCOMES[name]}`);
  return [
    plural(day.recalls, "recall"),
    ...parts,
    `${day.tokens.toLocaleString("en")} tokens`,
  ].join(", ");
}

function Questions({ sums, quality }: { sums: Sums; quality: Quality }) {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [why, setWhy] = useState<Record<number, Why>>({});
  const misses = quality.misses ?? [];
  const explain = async (id: number) => {
    const answer = await ask<Why>("miss", { question: id });
    if (answer) setWhy((others) => ({ ...others, [id]: answer }));
  };
  useEffect(() => setWhy({}), [sums.pack, quality]); // An explanation of other scores would be wrong.
  return (
    <section class="card" aria-label="Labelled questions">
      <h3>Labelled questions</h3>
      {quality.value !== undefined ? (
        <>
          <p>
            {`${misses.length} of ${plural(quality.scored!, "question")} ${misses.length === 1 ? "is" : "are"} missed: no wanted memory in the top ${quality.cut}. hit@${quality.cut} ${describeHits(quality.scored! - misses.length, quality.scored!)}, ${quality.metric} ${quality.value.toFixed(2)}`}
            {quality.interval && (
              <span class="note">{` (${quality.interval.map((bound) => bound.toFixed(2)).join(" to ")})`}</span>
            )}
          </p>
          <ul class="misses">
            {misses.map((miss) => (
              <li key={miss.id}>
                <button
                  type="button"
                  class="plain line"
                  disabled={!!offline}
                  aria-expanded={why[miss.id] !== undefined}
                  onClick={() => explain(miss.id)}
                >
                  <UserText text={miss.query} class="clamp" />
                </button>
                <span class="note">
                  {`wanted, ${miss.rank === null ? "not in the top 10" : `rank ${miss.rank}`}: `}
                  <UserText text={miss.wanted} />
                </span>
                {why[miss.id] !== undefined && (
                  <p class="why" role="status">
                    {why[miss.id]!.above && (
                      <>
                        {"The first result: "}
                        <UserText text={why[miss.id]!.above} />
                        <br />
                      </>
                    )}
                    {visible(why[miss.id]!.text)}
                  </p>
                )}
              </li>
            ))}
          </ul>
          {misses.length > 0 && (
            <p class="note">
              Click a question to read why. Then drag a weight in the policy studio.
            </p>
          )}
        </>
      ) : (
        <p class="note">
          {sums.questions
            ? "The questions are being scored."
            : "No question is labelled yet. The question list, or lab.questions.propose(), proposes some; accept those that are right."}
        </p>
      )}
    </section>
  );
}

function Cell() {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [cell, setCell] = useState("");
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    const answer = await ask<{ cell: string }>("cell");
    if (!answer) return;
    setCell(answer.cell);
    // A page without focus or permission may not copy; the text is shown to be copied by hand.
    setCopied(
      await navigator.clipboard.writeText(answer.cell).then(
        () => true,
        () => false,
      ),
    );
  };
  return (
    <div class="cell">
      <button type="button" disabled={!!offline} onClick={copy}>
        Copy as notebook cell
      </button>
      {cell && (
        <>
          <span class="note" role="status">
            {copied ? " Copied." : " Select the text to copy it."}
          </span>
          <pre class="mono" tabIndex={0}>
            {visible(cell)}
          </pre>
        </>
      )}
    </div>
  );
}

export default widget("Overview", Overview, STYLES + recalls + css);
