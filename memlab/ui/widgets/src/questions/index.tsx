/** Question list: labelled questions, proposed by rules and accepted or removed one by one. */
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
          add your own with lab.questions.add(...).
        </p>
      )}
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
                        aria-label={`Accept question ${question.id}`}
                        title={blocked || hint("accept")}
                        onClick={() => act("accept", [question.id])}
                      >
                        ✓ Right
                      </button>
                    )}
                    <button
                      type="button"
                      disabled={!!blocked}
                      aria-label={`Remove question ${question.id}`}
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
            ? 'No question yet. Propose some, or add one: lab.questions.add("…", wants=[…]).'
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
