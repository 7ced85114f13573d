/** One memory: its text to be corrected, its fields, what contradicts it, its history and its neighbours. */
import { useEffect, useId, useState } from "preact/hooks";
import { rows, type Table } from "../shared/table";
import { num, UserText, visible } from "../shared/text";
import { useAsk, useHint, useOfflineReason } from "../shared/widget";

type MemoryDetails = {
  text: string;
  status: string;
  pinned: boolean;
  fields: [string, string][];
  conflicts: Table;
};
type Conflict = { id: number; how: string; outgoing: boolean; text: string; status: string };
type Event = { event: number; at: string; kind: string; what: string };
type Near = { memory_id: number; similarity: number; text: string };

// The statuses of memories that recalls may return.
export const USED = ["active", "staged", "confirmed"];

export function Details({
  memory,
  writable,
  version,
  open,
  like,
}: {
  memory: number;
  writable: boolean;
  version: unknown;
  open: (memory: number | null) => void;
  like: (memory: number) => void;
}) {
  const ask = useAsk();
  const hint = useHint();
  const offline = useOfflineReason();
  const id = useId();
  const [details, setDetails] = useState<MemoryDetails | null>(null);
  const [history, setHistory] = useState<Event[] | null>(null);
  const [neighbours, setNeighbours] = useState<Near[] | null>(null);
  const [text, setText] = useState("");
  const [reason, setReason] = useState<string | null>(null);
  const [done, setDone] = useState("");
  useEffect(() => {
    let isMounted = true;
    setHistory(null);
    setNeighbours(null);
    setReason(null);
    void ask<MemoryDetails>("memory", { memory }).then((answer) => {
      if (!isMounted || !answer) return;
      setDetails(answer);
      setText(answer.text);
    });
    return () => {
      isMounted = false;
    };
  }, [memory, version]);
  useEffect(() => setDone(""), [memory]);
  if (!details)
    return (
      <section class="details" aria-label={`Memory ${memory}`}>
        <p class="note">{`Memory ${memory}`}</p>
      </section>
    );
  const used = USED.includes(details.status);
  const blocked = offline || (writable ? "" : "This lab is read-only.");
  const change = (verb: string, values: Record<string, unknown>, what: string) =>
    ask(verb, values).then((answer) => {
      if (!answer) return;
      setDone(what);
      if (typeof answer.memory === "number" && answer.memory !== memory) open(answer.memory);
    });
  return (
    <section class="details" aria-labelledby={id}>
      <header>
        <h3 id={id}>{`Memory ${memory}`}</h3>
        <span class={`status ${used ? "used" : "unused"}`}>{details.status}</span>
        {details.pinned && <span class="status">pinned</span>}
        <span class="done" role="status">
          {done}
        </span>
        <button
          type="button"
          class="plain close"
          aria-label="Close the details"
          onClick={() => open(null)}
        >
          ✕
        </button>
      </header>
      <textarea
        dir="auto"
        rows={Math.min(6, 1 + Math.ceil(text.length / 90))}
        value={visible(text)}
        disabled={!!blocked || !used}
        aria-label={`Text of memory ${memory}`}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <div class="verbs">
        {text !== details.text && visible(text) !== visible(details.text) && (
          <>
            <button
              type="button"
              class="primary"
              disabled={!!blocked || !text.trim()}
              onClick={() =>
                change("edit", { memory, text }, "Saved as a memory that supersedes the old text")
              }
            >
              Save text
            </button>
            <button type="button" onClick={() => setText(details.text)}>
              Undo
            </button>
          </>
        )}
        <button
          type="button"
          aria-pressed={details.pinned}
          disabled={!!blocked || !used}
          title={blocked || hint("pin")}
          onClick={() =>
            change(
              "pin",
              { memory, pinned: !details.pinned },
              details.pinned ? "No longer pinned" : "Pinned",
            )
          }
        >
          {details.pinned ? "Unpin" : "Pin"}
        </button>
        {used && (
          <button
            type="button"
            disabled={!!blocked}
            title={blocked || hint("forget")}
            onClick={() => change("forget", { memories: memory }, "Forgotten. Restore undoes this")}
          >
            Forget
          </button>
        )}
        {used && (
          <button
            type="button"
            aria-expanded={reason !== null}
            disabled={!!blocked}
            title={blocked || hint("wrong")}
            onClick={() => setReason(reason === null ? "" : null)}
          >
            Flag as wrong …
          </button>
        )}
        {!used && (
          <button
            type="button"
            disabled={!!blocked}
            title={blocked || hint("restore")}
            onClick={() => change("restore", { memories: memory }, "Restored")}
          >
            Restore
          </button>
        )}
        <button type="button" disabled={!!offline} onClick={() => like(memory)}>
          More like this
        </button>
        <button
          type="button"
          disabled={!!offline}
          aria-expanded={neighbours !== null}
          onClick={() =>
            neighbours
              ? setNeighbours(null)
              : ask<{ rows: Table }>("similar", { memory }).then(
                  (answer) => answer && setNeighbours(rows<Near>(answer.rows)),
                )
          }
        >
          Neighbours
        </button>
        <button
          type="button"
          disabled={!!offline}
          aria-expanded={history !== null}
          onClick={() =>
            history
              ? setHistory(null)
              : ask<{ events: Table }>("history", { memory }).then(
                  (answer) => answer && setHistory(rows<Event>(answer.events)),
                )
          }
        >
          History
        </button>
      </div>
      {reason !== null && (
        <div class="reason">
          <label>
            Why is it wrong?
            <input
              type="text"
              value={reason}
              onInput={(event) => setReason(event.currentTarget.value)}
            />
          </label>
          <button
            type="button"
            class="primary"
            disabled={!reason.trim()}
            onClick={() => change("wrong", { memories: memory, reason }, "Flagged as wrong")}
          >
            Flag as wrong
          </button>
        </div>
      )}
      <Conflicts conflicts={rows<Conflict>(details.conflicts)} open={open} />
      {neighbours && (
        <table>
          <caption>Nearest by meaning</caption>
          <tbody>
            {neighbours.map((neighbour) => (
              <tr key={neighbour.memory_id}>
                <td class="number">{num(neighbour.similarity, 3)}</td>
                <td>
                  <button
                    type="button"
                    class="plain link"
                    onClick={() => open(neighbour.memory_id)}
                  >{`#${neighbour.memory_id}`}</button>{" "}
                  <UserText text={neighbour.text} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {history && (
        <table>
          <caption>{`History of memory ${memory}, newest first`}</caption>
          <tbody>
            {history.map((event) => (
              <tr key={event.event}>
                <td class="number">{event.event}</td>
                <td class="when">{event.at}</td>
                <td>{event.kind}</td>
                <td>
                  <UserText text={event.what} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <dl class="fields">
        {details.fields.map(([name, value]) => (
          <div key={name}>
            <dt>{name.replaceAll("_", " ")}</dt>
            <dd>
              <UserText text={value} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Conflicts({ conflicts, open }: { conflicts: Conflict[]; open: (memory: number) => void }) {
  if (!conflicts.length) return null;
  const describe = (conflict: Conflict) =>
    conflict.how === "contradicts"
      ? "contradicts"
      : conflict.how === "supersedes"
        ? conflict.outgoing
          ? "supersedes"
          : "superseded by"
        : conflict.outgoing
          ? "updates"
          : "updated by";
  return (
    <table>
      <caption>Conflicts and replacements</caption>
      <tbody>
        {conflicts.map((conflict, at) => (
          <tr key={at}>
            <td class="when">{describe(conflict)}</td>
            <td>
              <button
                type="button"
                class="plain link"
                onClick={() => open(conflict.id)}
              >{`#${conflict.id}`}</button>{" "}
              <UserText text={conflict.text ?? ""} /> <span class="note">{conflict.status}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
