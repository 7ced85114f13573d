/** Policy studio: a policy as text and sliders, the ranks of queries before and after, and the actions on it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Explained } from "../explorer/explained";
import explained from "../explorer/explained.css";
import { Minis, type Move, Slope, type Sum, summarizeMoves } from "../ranks/moves";
import moved from "../ranks/moves.css";
import { Metrics, type Quality, QualityPanel } from "../ranks/quality";
import qualities from "../ranks/quality.css";
import { RECORDED, UserText, visible } from "../shared/text";
import {
  useAsk,
  useHint,
  useLatest,
  useOfflineReason,
  useRows,
  useTrait,
  widget,
} from "../shared/widget";
import { Editor, type Param, type Problem, type Word, type Writer } from "./editor";
import { Sliders } from "./sliders";
import css from "./studio.css";

type About = {
  problem: Problem | null;
  hash: string;
  live: number;
  same: boolean;
  meaning: boolean;
  back: boolean;
  pinned: number | null;
  writable: boolean;
  ranks: boolean;
  numbers: number;
  pack: string;
  memories: number;
  slots: string[];
  doc: string;
  rebase: { pack: string; quality: Quality | null } | null;
};

function Studio() {
  const ask = useAsk();
  const offline = useOfflineReason();
  const view = useMemo(() => Math.random().toString(36).slice(2), []);
  const [source] = useTrait<string>("source");
  const [author] = useTrait<string>("_author");
  const [slot, setSlot] = useTrait<string>("slot");
  const [questions, setQuestions] = useTrait<string[]>("questions");
  const [chosen, setChosen] = useTrait<number>("chosen");
  const [about] = useTrait<About>("_about");
  const [params] = useTrait<Param[]>("_params");
  const [sums] = useTrait<Sum[]>("_sums");
  const [note] = useTrait<string>("_note");
  const [quality] = useTrait<Quality>("_quality");
  const moves = useRows<Move>("_moves");
  const [words, setWords] = useState<Word[]>([]);
  const [values, setValues] = useState<Record<string, number>>({});
  const [open, setOpen] = useState<number | null>(null);
  const writer = useRef<Writer>(() => {});
  const check = useLatest((text: string) => ask("check", { source: text, view }));

  useEffect(() => {
    if (!offline)
      void ask<{ words: Word[] }>("words").then((answer) => answer && setWords(answer.words));
  }, [slot]);
  useEffect(() => setOpen(null), [chosen, slot]);

  const index = Math.min(chosen, Math.max(0, sums.length - 1));
  const chosenMoves = moves.filter((move) => move.question === index);
  return (
    <div class="studio">
      <div class="writing">
        <div class="top">
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
          <p class="note doc" title={about.doc}>
            {about.doc}
          </p>
        </div>
        <Editor
          source={source}
          mine={author === view}
          problem={about.problem}
          words={words}
          params={params}
          disabled={!!offline}
          onType={check}
          onValues={setValues}
          writer={writer}
        />
        <Status about={about} source={source} />
        <Sliders
          params={params}
          values={values}
          disabled={!!offline || !!about.problem}
          write={(name, text) => writer.current(name, text)}
        />
        <p class="tools">
          {about.numbers > 0 && (
            <button
              type="button"
              disabled={!!offline || !!about.problem}
              onClick={() => ask("text", { of: "sliders" })}
            >
              {about.numbers === 1
                ? "Add a slider for 1 number"
                : `Add sliders for ${about.numbers} numbers`}
            </button>
          )}
          <button
            type="button"
            disabled={!!offline || (about.same && !about.problem)}
            onClick={() => ask("text", { of: "live" })}
          >
            Reset to active text
          </button>
        </p>
      </div>
      <div class={about.problem ? "ranking stale" : "ranking"}>
        {about.ranks ? (
          <>
            <p class="summary" aria-live="polite">
              {about.problem
                ? "Ranks of the last valid text"
                : sums.length
                  ? summarizeMoves(sums)
                  : ""}
            </p>
            <QualityPanel quality={quality} />
            <Minis sums={sums} moves={moves} chosen={index} choose={setChosen} />
            {sums[index] && (
              <div class="asked">
                <h3>{visible(sums[index].question)}</h3>
                <button
                  type="button"
                  class="plain"
                  disabled={!!offline}
                  aria-label={`Remove the query: ${visible(sums[index].question)}`}
                  title="Remove this query"
                  onClick={() =>
                    setQuestions(questions.filter((_, position) => position !== index))
                  }
                >
                  ✕
                </button>
              </div>
            )}
            {chosenMoves.length > 0 && (
              <Slope
                moves={chosenMoves}
                heads={[
                  `before: version ${about.live} (active)`,
                  about.same ? "after: unchanged" : "after: this text",
                ]}
                open={open}
                toggle={(memory) => setOpen(open === memory ? null : memory)}
              />
            )}
            {!chosenMoves.length && <p class="empty">{describeEmpty(about, sums)}</p>}
            <Add
              disabled={!!offline || questions.length >= 50}
              add={(text) => setQuestions([...questions, text])}
            />
          </>
        ) : (
          <p class="empty">{`${slot} does not affect ranks, so there is no comparison. The text is checked and can be installed.`}</p>
        )}
      </div>
      {open !== null && about.ranks && (
        <section class="why" aria-label="Explanation">
          <div class="asked">
            <h3>{`Score of memory ${open}`}</h3>
            <button
              type="button"
              class="plain"
              aria-label="Close the explanation"
              onClick={() => setOpen(null)}
            >
              ✕
            </button>
          </div>
          <UserText text={chosenMoves.find((move) => move.memory_id === open)?.text ?? ""} />
          <Explained memory={open} version={moves} />
        </section>
      )}
      <Actions about={about} slot={slot} offline={offline} note={note} />
    </div>
  );
}

/** Whether the text is valid and how it relates to the active version, or its error with a caret. */
function Status({ about, source }: { about: About; source: string }) {
  const { problem } = about;
  if (problem) {
    const [from, to] = problem.places ?? [0, 0];
    const start = source.lastIndexOf("\n", from - 1) + 1;
    const line = source.slice(start).split("\n", 1)[0]!;
    return (
      <div class="status wrong" role="status">
        <p>
          <b aria-hidden="true">✗ </b>
          {problem.places
            ? `Line ${source.slice(0, from).split("\n").length}, column ${from - start + 1}: `
            : ""}
          {visible(problem.text)}
        </p>
        {problem.places && (
          <pre class="mono caret">{`${visible(line)}\n${" ".repeat(from - start)}${"^".repeat(Math.max(1, Math.min(to - from, line.length - from + start)))}`}</pre>
        )}
      </div>
    );
  }
  const relation = about.same
    ? `version ${about.live} (active)`
    : about.meaning
      ? `equivalent to version ${about.live} (active)`
      : `differs from version ${about.live} (active)`;
  return (
    <p class="status" role="status">
      <b aria-hidden="true">✓ </b>
      {`Valid [${about.hash}] · ${relation}`}
    </p>
  );
}

function Add({ disabled, add }: { disabled: boolean; add: (text: string) => void }) {
  const [text, setText] = useState("");
  const submit = () => {
    if (text.trim()) add(text.trim());
    setText("");
  };
  return (
    <div class="adding">
      <input
        type="text"
        dir="auto"
        value={text}
        disabled={disabled}
        aria-label="Add a query"
        placeholder="Add a query"
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.isComposing) return;
          event.preventDefault(); // JupyterLab does not submit a form on Enter.
          submit();
        }}
      />
      <button type="button" disabled={disabled || !text.trim()} onClick={submit}>
        Add
      </button>
    </div>
  );
}

function Actions({
  about,
  slot,
  offline,
  note,
}: {
  about: About;
  slot: string;
  offline: string;
  note: string;
}) {
  const ask = useAsk();
  const hint = useHint();
  const [reason, setReason] = useState("");
  const [file, setFile] = useState("");
  const [doubt, setDoubt] = useState<{ verb: string; loss: string } | null>(null);
  useEffect(() => setDoubt(null), [about.hash, about.live, slot]);
  const blocked =
    offline ||
    (about.writable ? "" : "This lab is read-only.") ||
    (about.pinned !== null ? `The slot is pinned to version ${about.pinned}. Unpin it first.` : "");
  const draft = about.problem
    ? "The text has an error."
    : about.same
      ? "This policy is active already."
      : "";
  const missing = reason.trim() ? "" : "Type a reason first.";
  const act = (verb: string, sure?: boolean) =>
    ask<{ loss?: string }>(verb, sure === undefined ? { reason } : { reason, sure }).then(
      (done) => {
        if (done?.loss) setDoubt({ verb, loss: done.loss });
        else if (done) {
          setDoubt(null);
          setReason("");
        }
      },
    );
  return (
    <div class="acts">
      {about.rebase && (
        <section class="notice" aria-label="Rebase">
          <p>
            {`Version ${about.live} builds on an (inherited) that the pack ${visible(about.rebase.pack)} does not have today. Rebasing installs its text again on today's policy of the pack.`}
          </p>
          {about.rebase.quality && <Metrics quality={about.rebase.quality} />}
          <button
            type="button"
            disabled={!!blocked}
            title={blocked || hint("rebase")}
            onClick={() => act("rebase", false)}
          >
            Rebase
          </button>
        </section>
      )}
      {doubt && (
        <div class="doubt" role="alert">
          <p>{visible(doubt.loss)}</p>
          <button type="button" disabled={!!blocked} onClick={() => act(doubt.verb, true)}>
            Install anyway
          </button>
          <button type="button" onClick={() => setDoubt(null)}>
            Keep the active version
          </button>
        </div>
      )}
      <label class="reason">
        Reason
        <input
          type="text"
          dir="auto"
          value={reason}
          disabled={!!blocked}
          placeholder={RECORDED}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
      <button
        type="button"
        class="primary"
        disabled={!!(blocked || draft || missing)}
        title={blocked || draft || missing || hint("install")}
        onClick={() => act("install", false)}
      >
        Install
      </button>
      <button
        type="button"
        disabled={!!blocked || !about.back}
        title={
          blocked ||
          (about.back
            ? `Restore the version of ${slot} before version ${about.live}`
            : "There is no earlier version to restore.")
        }
        onClick={() => act("rollback")}
      >
        Roll back
      </button>
      <button
        type="button"
        disabled={!!(offline || draft) || !about.writable || !about.ranks}
        title={offline || draft || hint("challenge")}
        onClick={() => act("challenge")}
      >
        Challenge
      </button>
      <label class="file">
        File
        <input
          type="text"
          value={file}
          disabled={!!offline}
          placeholder={`${slot}.hy`}
          onInput={(event) => setFile(event.currentTarget.value)}
        />
      </label>
      <button
        type="button"
        disabled={!!offline}
        title={hint("save")}
        onClick={() => ask("save", { name: file.trim() || `${slot}.hy` })}
      >
        Save
      </button>
      {(note || offline) && (
        <p class="note said-so" role="status">
          {visible(offline || note)}
        </p>
      )}
    </div>
  );
}

function describeEmpty(about: About, sums: Sum[]): string {
  if (!about.memories) return 'This lab has no memories yet: lab.remember("…") stores one.';
  return sums.length
    ? "No memory matches this query."
    : "Add a query below to see how this text ranks the memories.";
}

export default widget("Policy studio", Studio, explained + moved + qualities + css);
