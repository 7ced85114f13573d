/** Recall explorer: a question, hits with stacked bars of their terms, explanations, comparisons, feedback. */
import { useId, useMemo, useState } from "preact/hooks";
import { num, plural, Said, visible } from "../shared/text";
import { useAsk, useForm, useLatest, useRows, useStill, useTrait, widget } from "../shared/widget";
import { Compared } from "./compared";
import { Explained } from "./explained";
import explained from "./explained.css";
import css from "./explorer.css";
import { colour, type Key, keyed, type Term } from "./terms";

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
  known: number | null;
  fewer: boolean;
  memories: number;
  pack: string;
  hash: string;
  live: string;
  packs: string[];
  sums: boolean;
  redacted: number;
  loggable: boolean;
};

function Explorer() {
  const ask = useAsk();
  const still = useStill();
  const [question] = useTrait<string>("question");
  const [limit] = useTrait<number>("limit");
  const [pack] = useTrait<string>("pack");
  const [at] = useTrait<string>("at");
  const [about] = useTrait<About>("_about");
  const [pinned, setPinned] = useTrait<number[]>("pinned");
  const [judged] = useTrait<Record<string, string>>("judged");
  const hits = useRows<Hit>("_hits");
  const terms = useRows<Term & { id: number }>("_terms");
  const [open, setOpen] = useState<number | null>(null);

  const [form, setForm] = useForm({ question, limit, pack, at });
  const recall = useLatest((given: typeof form, log: boolean) => ask("recall", { ...given, log }));
  const change = (part: Partial<typeof form>, log = false) => {
    const next = { ...form, ...part };
    setForm(next);
    recall(next, log);
  };

  const keys = useMemo(() => keyed(terms), [terms]);
  const byHit = useMemo(() => {
    const found = new Map<number, Term[]>();
    for (const term of terms) found.set(term.id, [...(found.get(term.id) ?? []), term]);
    return found;
  }, [terms]);
  const scale = useMemo(() => extent([...byHit.values()]), [byHit]);
  const pin = (id: number) =>
    setPinned(pinned.includes(id) ? pinned.filter((one) => one !== id) : [...pinned, id].slice(-2));
  const live = about.live ?? "";

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
          Question
          <input
            type="text"
            dir="auto"
            value={form.question}
            disabled={!!still}
            placeholder="What would you ask this memory?"
            onInput={(event) => change({ question: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || event.isComposing) return;
              event.preventDefault(); // JupyterLab submits no form on Enter
              if (about.loggable && form.question.trim()) change({}, true);
            }}
          />
        </label>
        <button
          type="submit"
          class="primary"
          disabled={!!still || !about.loggable || !form.question.trim()}
          title={logs(about)}
        >
          Ask and log
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
              disabled={!!still}
              onInput={(event) => change({ limit: Number(event.currentTarget.value) })}
            />
            <output class="number">{form.limit}</output>
          </span>
        </label>
        <label>
          Pack
          <select
            value={form.pack}
            disabled={!!still}
            onChange={(event) => change({ pack: event.currentTarget.value })}
          >
            <option value="">{`live: ${visible(live)}`}</option>
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
              value={local(form.at)}
              disabled={!!still}
              onChange={(event) => change({ at: utc(event.currentTarget.value) })}
            />
            <button type="button" disabled={!form.at || !!still} onClick={() => change({ at: "" })}>
              Now
            </button>
          </span>
        </label>
      </form>
      {still && <p class="note">{still}</p>}
      <p class="note about" aria-live="polite">
        {summary(about, hits.length, form)}
      </p>
      {hits.length > 0 && about.known != null && <p class="note known">{sureness(about)}</p>}
      {!about.sums && hits.length > 0 && (
        <p class="notice">
          The score of this pack is no sum of several terms, so there is no stacked bar: bars show
          the whole score. Click a hit for its computation as a tree.
        </p>
      )}
      {about.sums && <Legend keys={keys} />}
      <ol class="hits" aria-label="Hits, best first">
        {hits.map((hit) => (
          <Row
            key={hit.id}
            hit={hit}
            keys={keys}
            scale={scale}
            sums={about.sums}
            terms={byHit.get(hit.id) ?? []}
            open={open === hit.id}
            toggle={() => setOpen(open === hit.id ? null : hit.id)}
            pinned={pinned.includes(hit.id)}
            pin={() => pin(hit.id)}
            outcome={judged[hit.id]}
            judge={(outcome) => ask("feedback", { memory: hit.id, outcome })}
            blocked={
              still ||
              (about.decision === null
                ? "Feedback belongs to a logged recall: press Enter in the question first."
                : "")
            }
            version={terms}
          />
        ))}
      </ol>
      {!hits.length && <p class="empty">{empty(about, form.question)}</p>}
      {pinned.length === 1 && <p class="note">Pin a second hit to compare the two.</p>}
      {pinned.length === 2 && (
        <Compared ids={pinned as [number, number]} keys={keys} version={terms} />
      )}
    </div>
  );
}

type RowProps = {
  hit: Hit;
  terms: Term[];
  keys: Map<string, Key>;
  scale: [number, number];
  sums: boolean;
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
  terms,
  keys,
  scale,
  sums,
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
          class="plain text"
          aria-expanded={open}
          aria-controls={id}
          onClick={toggle}
        >
          <Said text={hit.text} />
        </button>
        <p class="note">
          {hit.probe && (
            <span class="probe" title="Shown to learn about it, from below the best">
              ◆ probe
            </span>
          )}
          {`#${hit.id} · ${visible(hit.kind)}`}
          {hit.speaker && (
            <>
              {" "}
              · <Said text={hit.speaker} />
            </>
          )}
          {hit.also > 0 && ` · and ${hit.also} like it`}
        </p>
      </div>
      <Bar
        terms={sums ? terms : [{ term: "score", value: hit.score }]}
        keys={keys}
        scale={scale}
        score={hit.score}
      />
      <span class="score number">{num(hit.score)}</span>
      <span class="actions">
        <button
          type="button"
          aria-pressed={pinned}
          aria-label={`Pin ${name} to compare`}
          title="Pin to compare"
          onClick={pin}
        >
          Pin
        </button>
        {(["success", "fail"] as const).map((one) => (
          <button
            key={one}
            type="button"
            class={one}
            aria-pressed={outcome === one}
            disabled={!!blocked}
            aria-label={one === "success" ? `${name} helped` : `${name} did not help`}
            title={
              blocked ||
              (one === "success"
                ? "It helped: logged as feedback"
                : "It did not help: logged as feedback")
            }
            onClick={() => judge(one)}
          >
            {one === "success" ? "👍" : "👎"}
          </button>
        ))}
      </span>
      {open && (
        <div class="below" id={id}>
          <Explained memory={hit.id} keys={keys} version={version} />
        </div>
      )}
    </li>
  );
}

function Legend({ keys }: { keys: Map<string, Key> }) {
  const shown = [...keys.values()].filter((key) => key.place >= 0);
  return (
    <ul class="legend" aria-label="Terms of the score">
      {shown.map((key) => (
        <li key={key.letter}>
          <b class="swatch" style={{ background: colour(key) }}>
            {key.letter}
          </b>
          <code>{visible(key.text)}</code>
        </li>
      ))}
      {keys.size > shown.length && (
        <li>
          <b class="swatch" style={{ background: "var(--rest)" }}>
            …
          </b>
          {plural(keys.size - shown.length, "smaller term")}
        </li>
      )}
    </ul>
  );
}

function Bar({
  terms,
  keys,
  scale,
  score,
}: {
  terms: Term[];
  keys: Map<string, Key>;
  scale: [number, number];
  score: number;
}) {
  const [low, high] = scale;
  const width = high - low || 1;
  let up = 0;
  let down = 0;
  const parts = terms
    .filter((term) => Number.isFinite(term.value) && term.value !== 0)
    .sort((a, b) => (keys.get(a.term)?.order ?? 0) - (keys.get(b.term)?.order ?? 0))
    .map((term) => {
      if (term.value < 0) down += term.value;
      const from = term.value > 0 ? up : down;
      if (term.value > 0) up += term.value;
      return {
        term,
        key: keys.get(term.term),
        left: (100 * (from - low)) / width,
        size: (100 * Math.abs(term.value)) / width,
      };
    });
  const said = parts
    .map(({ term, key }) => `${key?.letter ?? ""} ${num(term.value, 4, true)}`)
    .join(", ");
  return (
    <div class="bar" role="img" aria-label={`score ${num(score)}: ${said}`}>
      {parts.map(({ term, key, left, size }) => (
        <i
          key={term.term}
          class="moves"
          style={{ left: `${left}%`, width: `${size}%`, background: colour(key) }}
          title={`${visible(term.term)}  ${num(term.value, 4, true)}`}
        >
          {size > 7 ? key?.letter : ""}
        </i>
      ))}
      {low < 0 && <span class="zero" style={{ left: `${(100 * -low) / width}%` }} />}
    </div>
  );
}

/** From the least sum of negative terms to the greatest of positive ones: one scale for all bars. */
function extent(hits: Term[][]): [number, number] {
  let low = 0;
  let high = 0;
  for (const terms of hits) {
    const values = terms.map((term) => term.value).filter(Number.isFinite);
    low = Math.min(
      low,
      values.filter((value) => value < 0).reduce((a, b) => a + b, 0),
    );
    high = Math.max(
      high,
      values.filter((value) => value > 0).reduce((a, b) => a + b, 0),
    );
  }
  return [low, high];
}

function logs(about: About): string {
  return about.loggable
    ? "Enter does the same: the recall is logged, may show a probe, and can be judged"
    : "Only the live pack of a writable lab, now, is logged";
}

function summary(about: About, shown: number, form: { question: string }): string {
  if (!form.question.trim())
    return `${plural(about.memories ?? 0, "memory", "memories")} · pack ${visible(about.pack ?? "")} [${about.hash}]`;
  const secrets = about.redacted
    ? ` · ${plural(about.redacted, "secret")} redacted in the question`
    : "";
  const trace =
    about.decision !== null
      ? `logged as recall ${about.decision}`
      : about.loggable
        ? "a preview, not logged: Enter logs it"
        : "not logged";
  return `${shown} of ${plural(about.candidates, "candidate")} · pack ${visible(about.pack)} [${about.hash}] · ${trace}${secrets}`;
}

/** What the pack says of the chance that the question can be answered at all. */
function sureness(about: About): string {
  const fewer = about.fewer ? " That is below the pack's floor, so fewer are shown." : "";
  const known = about.known!;
  const share =
    known > 0.99 ? "More than 99%" : known < 0.01 ? "Less than 1%" : `${Math.round(100 * known)}%`;
  return `${share} likely that these memories contain the answer, by the pack's policy known.${fewer}`;
}

function empty(about: About, question: string): string {
  if (!about.memories) return 'This lab has no memories yet: lab.remember("…") stores one.';
  return question.trim()
    ? "Nothing that may answer was found."
    : "Type a question: hits change with each letter.";
}

/** An instant as the field has it, in the reader's zone, and back. */
function local(at: string): string {
  const time = at ? new Date(at) : null;
  if (!time || Number.isNaN(time.getTime())) return "";
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function utc(value: string): string {
  return value ? new Date(value).toISOString() : "";
}

export default widget("Recall explorer", Explorer, explained + css);
