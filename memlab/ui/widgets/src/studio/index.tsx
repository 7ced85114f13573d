/** Policy studio: a policy as text and sliders, the ranks of questions before and after, and what may be done with it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Explained } from "../explorer/explained";
import explained from "../explorer/explained.css";
import { Minis, type Move, Slope, type Sum, summary } from "../ranks/moves";
import moved from "../ranks/moves.css";
import { visible } from "../shared/text";
import { useAsk, useLatest, useRows, useStill, useTrait, widget } from "../shared/widget";
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
};

function Studio() {
  const ask = useAsk();
  const still = useStill();
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
  const moves = useRows<Move>("_moves");
  const [words, setWords] = useState<Word[]>([]);
  const [values, setValues] = useState<Record<string, number>>({});
  const [open, setOpen] = useState<number | null>(null);
  const writer = useRef<Writer>(() => {});
  const check = useLatest((text: string) => ask("check", { source: text, view }));

  useEffect(() => {
    if (!still)
      void ask<{ words: Word[] }>("words").then((found) => found && setWords(found.words));
  }, [slot]);
  useEffect(() => setOpen(null), [chosen, slot]);

  const place = Math.min(chosen, Math.max(0, sums.length - 1));
  const mine = moves.filter((move) => move.question === place);
  return (
    <div class="studio">
      <div class="writing">
        <div class="top">
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
          disabled={!!still}
          onType={check}
          onValues={setValues}
          writer={writer}
        />
        <Status about={about} source={source} />
        <Sliders
          params={params}
          values={values}
          disabled={!!still || !!about.problem}
          write={(name, text) => writer.current(name, text)}
        />
        <p class="tools">
          {about.numbers > 0 && (
            <button
              type="button"
              disabled={!!still || !!about.problem}
              onClick={() => ask("text", { of: "sliders" })}
            >
              {about.numbers === 1
                ? "A slider for one more number"
                : `Sliders for ${about.numbers} numbers`}
            </button>
          )}
          <button
            type="button"
            disabled={!!still || (about.same && !about.problem)}
            onClick={() => ask("text", { of: "live" })}
          >
            Back to the live text
          </button>
        </p>
      </div>
      <div class={about.problem ? "ranking stale" : "ranking"}>
        {about.ranks ? (
          <>
            <p class="summary" aria-live="polite">
              {about.problem
                ? "Ranks of the last text that compiled"
                : sums.length
                  ? summary(sums)
                  : ""}
            </p>
            <Minis sums={sums} moves={moves} chosen={place} choose={setChosen} />
            {sums[place] && (
              <div class="asked">
                <h3>{visible(sums[place].question)}</h3>
                <button
                  type="button"
                  class="plain"
                  disabled={!!still}
                  aria-label={`Leave out the question: ${visible(sums[place].question)}`}
                  title="Leave this question out"
                  onClick={() => setQuestions(questions.filter((_, other) => other !== place))}
                >
                  ✕
                </button>
              </div>
            )}
            {mine.length > 0 && (
              <Slope
                moves={mine}
                heads={[
                  `before: version ${about.live}, live`,
                  about.same ? "after: the same" : "after: this text",
                ]}
                open={open}
                toggle={(memory) => setOpen(open === memory ? null : memory)}
              />
            )}
            {!mine.length && <p class="empty">{empty(about, sums)}</p>}
            <Add
              disabled={!!still || questions.length >= 50}
              add={(text) => setQuestions([...questions, text])}
            />
          </>
        ) : (
          <p class="empty">{`${slot} decides no rank of a recall, so there is nothing to compare: the text is checked, and can be installed.`}</p>
        )}
      </div>
      {open !== null && about.ranks && (
        <section class="why" aria-label="Explanation">
          <div class="asked">
            <h3>{`Why #${open} has its score`}</h3>
            <button
              type="button"
              class="plain"
              aria-label="Close the explanation"
              onClick={() => setOpen(null)}
            >
              ✕
            </button>
          </div>
          <Explained memory={open} version={moves} />
        </section>
      )}
      <Acts about={about} slot={slot} still={still} note={note} />
    </div>
  );
}

/** Whether the text compiles and what it is beside the live one; of an error, the sentence with its caret. */
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
  const beside = about.same
    ? `version ${about.live}, live`
    : about.meaning
      ? `means what version ${about.live}, live, means`
      : `differs from version ${about.live}, live`;
  return (
    <p class="status" role="status">
      <b aria-hidden="true">✓ </b>
      {`compiles [${about.hash}] · ${beside}`}
    </p>
  );
}

function Add({ disabled, add }: { disabled: boolean; add: (text: string) => void }) {
  const [text, setText] = useState("");
  const done = () => {
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
        aria-label="Another question"
        placeholder="Another question"
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.isComposing) return;
          event.preventDefault(); // JupyterLab submits no form on Enter
          done();
        }}
      />
      <button type="button" disabled={disabled || !text.trim()} onClick={done}>
        Add
      </button>
    </div>
  );
}

function Acts({
  about,
  slot,
  still,
  note,
}: {
  about: About;
  slot: string;
  still: string;
  note: string;
}) {
  const ask = useAsk();
  const [reason, setReason] = useState("");
  const [file, setFile] = useState("");
  const why =
    still ||
    (about.writable ? "" : "This lab is read-only.") ||
    (about.pinned !== null ? `The slot is pinned to version ${about.pinned}: unpin it first.` : "");
  const draft = about.problem
    ? "The text has an error."
    : about.same
      ? "This is the live policy."
      : "";
  const given = reason.trim() ? "" : "Say why first.";
  const act = (verb: string) => ask(verb, { reason }).then((done) => done && setReason(""));
  return (
    <div class="acts">
      <label class="reason">
        Reason
        <input
          type="text"
          dir="auto"
          value={reason}
          disabled={!!why}
          placeholder="Why? It stands in the history"
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
      <button
        type="button"
        class="primary"
        disabled={!!(why || draft || given)}
        title={why || draft || given || "It decides from the next recall on"}
        onClick={() => act("install")}
      >
        Install
      </button>
      <button
        type="button"
        disabled={!!why || !about.back}
        title={
          why ||
          (about.back
            ? `Bring back what ${slot} had before version ${about.live}`
            : "There is one version only.")
        }
        onClick={() => act("rollback")}
      >
        Roll back
      </button>
      <button
        type="button"
        disabled={!!(still || draft) || !about.writable || !about.ranks}
        title={still || draft || "Let it stand beside the live pack: recalls show one memory more"}
        onClick={() => act("challenge")}
      >
        Challenge
      </button>
      <label class="file">
        File
        <input
          type="text"
          value={file}
          disabled={!!still}
          placeholder={`${slot}.hy`}
          onInput={(event) => setFile(event.currentTarget.value)}
        />
      </label>
      <button
        type="button"
        disabled={!!still}
        title="Save the text beside the notebook"
        onClick={() => ask("save", { name: file.trim() || `${slot}.hy` })}
      >
        Save
      </button>
      {(note || still) && (
        <p class="note said-so" role="status">
          {visible(still || note)}
        </p>
      )}
    </div>
  );
}

function empty(about: About, sums: Sum[]): string {
  if (!about.memories) return 'This lab has no memories yet: lab.remember("…") stores one.';
  return sums.length
    ? "Nothing that may answer was found."
    : "No question yet: add one below, and see how this text ranks what answers it.";
}

export default widget("Policy studio", Studio, explained + moved + css);
