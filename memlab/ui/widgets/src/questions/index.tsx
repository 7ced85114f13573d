/** Question list: labelled questions, proposed by rules and accepted or removed one by one. */
import { useState } from "preact/hooks";
import { plural, UserText, visible } from "../shared/text";
import { useAsk, useHint, useReadOnly, useRows, useTrait, widget } from "../shared/widget";
import css from "./questions.css";

type Question = {
  id: number;
  query: string;
  text: string | null;
  speaker: string | null;
  source: string;
  accepted: boolean;
  first: number;
  count: number;
};
type About = { all: number; accepted: number; memories: number; most: number };

type Found = { id: number; text: string; speaker: string | null };

/** A form that adds a question: the user types it and marks the memories that answer it. */
function OwnQuestion() {
  const ask = useAsk();
  const hint = useHint();
  const blocked = useReadOnly();
  const [query, setQuery] = useState("");
  const [words, setWords] = useState("");
  const [found, setFound] = useState<Found[] | null>(null);
  const [wanted, setWanted] = useState<Found[]>([]);
  const search = async (text: string) => {
    const answer = (await ask("search", { words: text })) as { hits: Found[] } | undefined;
    if (answer) setFound(answer.hits);
  };
  const clear = () => {
    setQuery("");
    setWords("");
    setFound(null);
    setWanted([]);
  };
  const marked = new Set(wanted.map(({ id }) => id));
  const listed = [...wanted, ...(found ?? []).filter(({ id }) => !marked.has(id))];
  const mark = (memory: Found) =>
    setWanted(
      marked.has(memory.id) ? wanted.filter(({ id }) => id !== memory.id) : [...wanted, memory],
    );
  const field = (label: string, value: string, change: (text: string) => void, button: string) => (
    <div class="row">
      <label>
        {label}
        <input
          type="text"
          value={value}
          disabled={!!blocked}
          onInput={(event) => change(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault(); // JupyterLab does not submit a form on Enter.
            if (value.trim()) search(value);
          }}
        />
      </label>
      <button
        type="button"
        disabled={!!blocked || !value.trim()}
        title={blocked || hint("search")}
        onClick={() => search(value)}
      >
        {button}
      </button>
    </div>
  );
  return (
    <section class="own" aria-label="Your own question">
      {field("Your own question", query, setQuery, "Find its memories")}
      {found && (
        <>
          <p class="note">
            {listed.length ? "Mark the memories that answer it." : "No memory was found."}
          </p>
          <ul>
            {listed.map((memory) => (
              <li key={memory.id}>
                <label>
                  <input
                    type="checkbox"
                    checked={marked.has(memory.id)}
                    onChange={() => mark(memory)}
                  />
                  <span class="note">{`#${memory.id} `}</span>
                  {memory.speaker && (
                    <span class="note">
                      <UserText text={memory.speaker} />
                      {" said: "}
                    </span>
                  )}
                  <UserText text={memory.text} />
                </label>
              </li>
            ))}
          </ul>
          {field("Not among them? Search other words", words, setWords, "Search")}
          <button
            type="button"
            class="primary"
            disabled={!!blocked || !wanted.length || !query.trim()}
            title={blocked || hint("add")}
            onClick={async () => {
              const ids = wanted.map(({ id }) => id);
              if ((await ask("add", { query, wants: ids })) !== undefined) clear();
            }}
          >
            Add question
          </button>
          <button type="button" onClick={clear}>
            Cancel
          </button>
        </>
      )}
    </section>
  );
}

function QuestionList() {
  const ask = useAsk();
  const hint = useHint();
  const blocked = useReadOnly();
  const [about] = useTrait<About>("_about");
  const [note] = useTrait<string>("_note");
  const questions = useRows<Question>("_questions");
  const proposed = questions.filter((question) => !question.accepted);
  const accepted = questions.filter((question) => question.accepted);
  const act = (verb: string, ids: number[]) => ask(verb, { ids });
  return (
    <div class="questions">
      <div class="top">
        <p>
          {`${plural(about.accepted, "question")} ${about.accepted === 1 ? "counts" : "count"} in scores${proposed.length ? `, ${proposed.length} proposed` : ""}.`}
        </p>
        <button
          type="button"
          class={questions.length ? "" : "primary"}
          disabled={!!blocked || !about.memories}
          title={blocked || hint("propose")}
          onClick={() => ask("propose")}
        >
          Propose 20
        </button>
        {proposed.length > 0 && (
          <button
            type="button"
            disabled={!!blocked}
            title={blocked || hint("accept")}
            onClick={() =>
              act(
                "accept",
                proposed.map(({ id }) => id),
              )
            }
          >
            {`Accept all ${proposed.length}`}
          </button>
        )}
      </div>
      {questions.length > 0 && (
        <p class="note">
          Proposed questions repeat words of their memory, so they favour policies that match words;
          type your own as well.
        </p>
      )}
      {about.memories > 0 && <OwnQuestion />}
      {blocked && <p class="note">{blocked}</p>}
      {note && (
        <p class="note" role="status">
          {visible(note)}
        </p>
      )}
      {[proposed, accepted].map(
        (group) =>
          group.length > 0 && (
            <section
              key={String(group === proposed)}
              aria-label={group === proposed ? "Proposed" : "Accepted"}
            >
              <h3>
                {group === proposed ? "Proposed: is this memory the right answer?" : "Accepted"}
              </h3>
              <ul>
                {group.map((question) => (
                  <li key={question.id} data-question={question.id}>
                    <span class="asked">
                      <UserText text={question.query} />
                      <span class="note">
                        {question.count > 1
                          ? `#${question.first} and ${plural(question.count - 1, "other")}: `
                          : `#${question.first}: `}
                        {question.speaker && (
                          <>
                            <UserText text={question.speaker} />
                            {" said: "}
                          </>
                        )}
                        <UserText text={question.text ?? "(not visible)"} />
                      </span>
                    </span>
                    {!question.accepted && (
                      <button
                        type="button"
                        disabled={!!blocked}
                        aria-label={`✓ Right: accept question ${question.id}`}
                        title={blocked || hint("accept")}
                        onClick={() => act("accept", [question.id])}
                      >
                        ✓ Right
                      </button>
                    )}
                    <button
                      type="button"
                      disabled={!!blocked}
                      aria-label={`${question.accepted ? "Remove" : "✕ Wrong: remove"} question ${question.id}`}
                      title={blocked || hint("remove")}
                      onClick={() => act("remove", [question.id])}
                    >
                      {question.accepted ? "Remove" : "✕ Wrong"}
                    </button>
                  </li>
                ))}
              </ul>
            </section>
          ),
      )}
      {!questions.length && (
        <p class="note">
          {about.memories
            ? "No question yet. Type one, or propose some."
            : 'This lab has no memories yet: lab.load("chat.zip") reads a chat.'}
        </p>
      )}
      {about.all > about.most && (
        <p class="note">{`The first ${about.most} of ${about.all.toLocaleString("en")}: lab.questions.frame has all.`}</p>
      )}
    </div>
  );
}

export default widget("Question list", QuestionList, css);
