/** Recall explorer: a query, results with stacked bars of their terms, explanations, comparisons and feedback. */
import { useEffect, useId, useMemo, useState } from "preact/hooks";
import { type Quality, QualityPanel } from "../ranks/quality";
import qualities from "../ranks/quality.css";
import { Icon, num, plural, UserText, visible } from "../shared/text";
import {
  useAsk,
  useForm,
  useLatest,
  useOfflineReason,
  useRows,
  useTrait,
  widget,
} from "../shared/widget";
import { Compared } from "./compared";
import { Explained } from "./explained";
import explained from "./explained.css";
import css from "./explorer.css";
import { Swatch, TermName } from "./labels";
import {
  buildPalette,
  colour,
  measureExtent,
  nameTerm,
  type Palette,
  type Segment,
  splitScore,
  type Term,
} from "./terms";

type Hit = {
  rank: number;
  id: number;
  score: number;
  probe: boolean;
  text: string;
  kind: string;
  speaker: string | null;
  also: number;
};
type About = {
  decision: number | null;
  candidates: number;
  confidence: string;
  fewer: boolean;
  memories: number;
  pack: string;
  hash: string;
  live: string;
  packs: string[];
  sums: boolean;
  redacted: number;
  loggable: boolean;
  words: string[];
};

export function Explorer() {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [question] = useTrait<string>("question");
  const [limit] = useTrait<number>("limit");
  const [pack] = useTrait<string>("pack");
  const [at] = useTrait<string>("at");
  const [about] = useTrait<About>("_about");
  const [pinned, setPinned] = useTrait<number[]>("pinned");
  const [judged] = useTrait<Record<string, string>>("judged");
  const [quality] = useTrait<Quality>("_quality");
  const hits = useRows<Hit>("_hits");
  const terms = useRows<Term & { id: number }>("_terms");
  const [open, setOpen] = useState<number | null>(null);
  const [openParts, setOpenParts] = useState(new Set<string>());

  const [form, setForm] = useForm({ question, limit, pack, at });
  const recall = useLatest((values: typeof form, log: boolean) =>
    ask("recall", { ...values, log }),
  );
  const change = (part: Partial<typeof form>, log = false) => {
    const next = { ...form, ...part };
    setForm(next);
    recall(next, log);
  };

  const palette = useMemo(() => buildPalette(terms), [terms]);
  const bars = useMemo(() => {
    const byHit = new Map<number, Segment[]>();
    for (const { id, score } of hits)
      byHit.set(
        id,
        about.sums
          ? splitScore(
              terms.filter((term) => term.id === id),
              palette,
              openParts,
            )
          : [{ key: "score", name: "score", value: score, part: undefined }],
      );
    return byHit;
  }, [hits, terms, palette, openParts, about.sums]);
  const scale = useMemo(() => measureExtent([...bars.values()]), [bars]);
  const togglePart = (id: string) => {
    const next = new Set(openParts);
    if (!next.delete(id)) next.add(id);
    setOpenParts(next);
  };
  const pin = (id: number) =>
    setPinned(
      pinned.includes(id) ? pinned.filter((other) => other !== id) : [...pinned, id].slice(-2),
    );
  const live = about.live ?? "";
  // The questions are asked after the results are drawn, so that results never wait for them.
  useEffect(() => {
    if (!offline) void ask("judge");
  }, [pack, at, about.hash]);

  return (
    <div class="explorer">
      <form
        class="ask"
        onSubmit={(event) => {
          event.preventDefault();
          change({}, true);
        }}
      >
        <label class="question">
          Query
          <input
            type="text"
            dir="auto"
            value={form.question}
            disabled={!!offline}
            placeholder="What would you ask this memory?"
            onInput={(event) => change({ question: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || event.isComposing) return;
              event.preventDefault(); // JupyterLab does not submit a form on Enter.
              if (about.loggable && form.question.trim()) change({}, true);
            }}
          />
        </label>
        <button
          type="submit"
          class="primary"
          disabled={!!offline || !about.loggable || !form.question.trim()}
          title={explainLogging(about)}
        >
          Search and log
        </button>
        <span class="break" />
        <label>
          Limit
          <span class="limit">
            <input
              type="range"
              min={1}
              max={Math.max(20, limit)}
              value={form.limit}
              disabled={!!offline}
              onInput={(event) => change({ limit: Number(event.currentTarget.value) })}
            />
            <output class="number">{form.limit}</output>
          </span>
        </label>
        <label>
          Pack
          <select
            value={form.pack}
            disabled={!!offline}
            onChange={(event) => change({ pack: event.currentTarget.value })}
          >
            <option value="">{`active: ${visible(live)}`}</option>
            {(about.packs ?? []).map((name) => (
              <option key={name} value={name}>
                {visible(name)}
              </option>
            ))}
          </select>
        </label>
        <label>
          As of
          <span class="instant">
            <input
              type="datetime-local"
              value={toLocalTime(form.at)}
              disabled={!!offline}
              onChange={(event) => change({ at: toUtc(event.currentTarget.value) })}
            />
            <button
              type="button"
              disabled={!form.at || !!offline}
              onClick={() => change({ at: "" })}
            >
              Now
            </button>
          </span>
        </label>
      </form>
      {offline && <p class="note">{offline}</p>}
      <p class="note about" aria-live="polite">
        {summarize(about, hits.length, form)}
      </p>
      <QualityPanel quality={quality} />
      {hits.length > 0 && about.confidence && <p class="note known">{describeConfidence(about)}</p>}
      {!about.sums && hits.length > 0 && (
        <p class="notice">
          The score of this pack is not a sum of terms, so each bar shows the whole score. Click a
          result to see its computation.
        </p>
      )}
      {about.sums && <Legend palette={palette} open={openParts} toggle={togglePart} />}
      <ol class="hits" aria-label="Results, best first">
        {hits.map((hit) => (
          <Row
            key={hit.id}
            hit={hit}
            words={about.words ?? []}
            palette={palette}
            scale={scale}
            segments={bars.get(hit.id) ?? []}
            open={open === hit.id}
            toggle={() => setOpen(open === hit.id ? null : hit.id)}
            pinned={pinned.includes(hit.id)}
            pin={() => pin(hit.id)}
            outcome={judged[hit.id]}
            judge={(outcome) => ask("feedback", { memory: hit.id, outcome })}
            blocked={
              offline ||
              (about.decision === null
                ? "Only a logged recall accepts feedback. Press Enter in the query first."
                : "")
            }
            version={terms}
          />
        ))}
      </ol>
      {!hits.length && <p class="empty">{describeEmpty(about, form.question)}</p>}
      {pinned.length === 1 && <p class="note">Pin a second result to compare the two.</p>}
      {pinned.length === 2 && (
        <Compared ids={pinned as [number, number]} palette={palette} version={terms} />
      )}
    </div>
  );
}

type RowProps = {
  hit: Hit;
  words: string[];
  segments: Segment[];
  palette: Palette;
  scale: [number, number];
  open: boolean;
  toggle: () => void;
  pinned: boolean;
  pin: () => void;
  outcome: string | undefined;
  judge: (outcome: string) => void;
  blocked: string;
  version: unknown;
};

function Row({
  hit,
  words,
  segments,
  palette,
  scale,
  open,
  toggle,
  pinned,
  pin,
  outcome,
  judge,
  blocked,
  version,
}: RowProps) {
  const id = useId();
  const name = `memory ${hit.id}`;
  return (
    <li class={pinned ? "hit pinned" : "hit"} data-memory={hit.id}>
      <span class="rank number" aria-label={`rank ${hit.rank}`}>
        {hit.rank}
      </span>
      <div class="memory">
        <button
          type="button"
          class="plain text folded"
          aria-expanded={open}
          aria-controls={id}
          onClick={toggle}
        >
          <UserText text={hit.text} words={words} />
        </button>
        <p class="note">
          {hit.probe && (
            <span class="probe" title="Drawn from lower ranks to collect feedback">
              ◆ exploration item
            </span>
          )}
          {`#${hit.id} · ${visible(hit.kind)}`}
          {hit.speaker && (
            <>
              {" "}
              · <UserText text={hit.speaker} />
            </>
          )}
          {hit.also > 0 && ` · ${plural(hit.also, "near-duplicate")}`}
        </p>
      </div>
      <Bar segments={segments} scale={scale} score={hit.score} />
      <span class="score number">{num(hit.score)}</span>
      <span class="actions">
        <button
          type="button"
          aria-pressed={pinned}
          aria-label={`Pin ${name} for comparison`}
          title="Pin for comparison"
          onClick={pin}
        >
          Pin
        </button>
        {(["success", "fail"] as const).map((choice) => (
          <button
            key={choice}
            type="button"
            class={choice}
            aria-pressed={outcome === choice}
            disabled={!!blocked}
            aria-label={choice === "success" ? `${name} helped` : `${name} did not help`}
            title={
              blocked ||
              (choice === "success"
                ? "This memory helped: record feedback"
                : "This memory did not help: record feedback")
            }
            onClick={() => judge(choice)}
          >
            <Icon shape={choice === "success" ? "good" : "bad"} />
          </button>
        ))}
      </span>
      {open && (
        <div class="below" id={id}>
          <Explained memory={hit.id} palette={palette} version={version} />
        </div>
      )}
    </li>
  );
}

/** The parts of the scores. A click on a group splits it into its terms, here and in the bars. */
function Legend({
  palette,
  open,
  toggle,
}: {
  palette: Palette;
  open: Set<string>;
  toggle: (id: string) => void;
}) {
  const coloured = [...palette.values()].filter((part) => part.colour >= 0);
  return (
    <ul class="legend" aria-label="Parts of the score">
      {coloured.map((part) => (
        <li key={part.id} class={open.has(part.id) ? "open" : ""}>
          {part.isGroup ? (
            <button
              type="button"
              class="plain"
              aria-expanded={open.has(part.id)}
              title={
                open.has(part.id)
                  ? "Show one bar for the whole group"
                  : "Show a bar for each term of the group"
              }
              onClick={() => toggle(part.id)}
            >
              <Swatch part={part} /> {visible(part.name)}
            </button>
          ) : (
            <>
              <Swatch part={part} /> <TermName term={part.terms[0]!} expressions={false} />
            </>
          )}
          {part.isGroup && open.has(part.id) && (
            <span class="note">
              {part.terms.map((term) => visible(nameTerm(term))).join(" · ")}
            </span>
          )}
        </li>
      ))}
      {palette.size > coloured.length && (
        <li>
          <b class="swatch" style={{ background: "var(--rest)" }}>
            …
          </b>
          {plural(palette.size - coloured.length, "smaller term")}
        </li>
      )}
    </ul>
  );
}

function Bar({
  segments,
  scale: [low, high],
  score,
}: {
  segments: Segment[];
  scale: [number, number];
  score: number;
}) {
  const width = high - low || 1;
  let up = 0;
  let down = 0;
  const pieces = segments.map((segment) => {
    if (segment.value < 0) down += segment.value;
    const from = segment.value > 0 ? up : down;
    if (segment.value > 0) up += segment.value;
    return {
      segment,
      left: (100 * (from - low)) / width,
      size: (100 * Math.abs(segment.value)) / width,
    };
  });
  const description = segments
    .map(({ name, value }) => `${visible(name)} ${num(value, 4, true)}`)
    .join(", ");
  return (
    <div class="bar" role="img" aria-label={`score ${num(score)}: ${description}`}>
      {pieces.map(({ segment: { key, name, value, part }, left, size }) => (
        <i
          key={key}
          class="moves"
          style={{ left: `${left}%`, width: `${size}%`, background: colour(part) }}
          title={`${visible(name)}  ${num(value, 4, true)}`}
        >
          {size > 7 ? part?.letter : ""}
        </i>
      ))}
      {low < 0 && <span class="zero" style={{ left: `${(100 * -low) / width}%` }} />}
    </div>
  );
}

function explainLogging(about: About): string {
  return about.loggable
    ? "Same as Enter: logs the recall, which may add an exploration item and accepts feedback"
    : "Only recalls of the active pack, now, in a writable lab are logged";
}

function summarize(about: About, count: number, form: { question: string }): string {
  if (!form.question.trim())
    return `${plural(about.memories ?? 0, "memory", "memories")} · pack ${visible(about.pack ?? "")} [${about.hash}]`;
  const secrets = about.redacted
    ? ` · ${plural(about.redacted, "secret")} redacted from the query`
    : "";
  const trace =
    about.decision !== null
      ? `logged as recall ${about.decision}`
      : about.loggable
        ? "a preview, not logged (press Enter to log it)"
        : "not logged";
  return `${count} of ${plural(about.candidates, "candidate")} · pack ${visible(about.pack)} [${about.hash}] · ${trace}${secrets}`;
}

/** Return the chance that some memory answers the query, as the pack estimates it. */
function describeConfidence(about: About): string {
  const fewer = about.fewer
    ? " Fewer results are shown because this is below the threshold of the pack."
    : "";
  return `${about.confidence[0]!.toUpperCase()}${about.confidence.slice(1)}.${fewer}`;
}

function describeEmpty(about: About, question: string): string {
  if (!about.memories) return 'This lab has no memories yet: lab.remember("…") stores one.';
  return question.trim()
    ? "No memory matches this query."
    : "Type a query. Results change with each letter.";
}

/** Return an instant as a field for dates shows it, in the time zone of the reader. */
function toLocalTime(at: string): string {
  const time = at ? new Date(at) : null;
  if (!time || Number.isNaN(time.getTime())) return "";
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Return the value of a field for dates as an instant in UTC. */
function toUtc(value: string): string {
  return value ? new Date(value).toISOString() : "";
}

/** The styles of the explorer, for widgets that contain one. */
export const STYLES = qualities + explained + css;

export default widget("Recall explorer", Explorer, STYLES);
