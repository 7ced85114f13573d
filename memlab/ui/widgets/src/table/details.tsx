/** One memory: its text to be corrected, what is known of it, what contradicts it, its history and its neighbours. */
import { useEffect, useId, useState } from "preact/hooks";
import { rows, type Table } from "../shared/table";
import { num, Said, visible } from "../shared/text";
import { useAsk, useStill } from "../shared/widget";

type Known = {
  text: string;
  status: string;
  pinned: boolean;
  fields: [string, string][];
  conflicts: Table;
};
type Conflict = { id: number; how: string; outgoing: boolean; text: string; status: string };
type Event = { event: number; at: string; kind: string; what: string };
type Near = { memory_id: number; similarity: number; text: string };

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
  const still = useStill();
  const id = useId();
  const [known, setKnown] = useState<Known | null>(null);
  const [history, setHistory] = useState<Event[] | null>(null);
  const [near, setNear] = useState<Near[] | null>(null);
  const [text, setText] = useState("");
  const [reason, setReason] = useState<string | null>(null);
  const [done, setDone] = useState("");
  useEffect(() => {
    let live = true;
    setHistory(null);
    setNear(null);
    setReason(null);
    void ask<Known>("memory", { memory }).then((found) => {
      if (!live || !found) return;
      setKnown(found);
      setText(found.text);
    });
    return () => {
      live = false;
    };
  }, [memory, version]);
  useEffect(() => setDone(""), [memory]);
  if (!known)
    return (
      <section class="details" aria-label={`Memory ${memory}`}>
        <p class="note">{`Memory ${memory}`}</p>
      </section>
    );
  const used = USED.includes(known.status);
  const blocked = still || (writable ? "" : "This lab is read-only.");
  const change = (verb: string, values: Record<string, unknown>, what: string) =>
    ask(verb, values).then((found) => {
      if (!found) return;
      setDone(what);
      if (typeof found.memory === "number" && found.memory !== memory) open(found.memory);
    });
  return (
    <section class="details" aria-labelledby={id}>
      <header>
        <h3 id={id}>{`Memory ${memory}`}</h3>
        <span class={`status ${used ? "used" : "unused"}`}>{known.status}</span>
        {known.pinned && <span class="status">pinned</span>}
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
        {text !== known.text && visible(text) !== visible(known.text) && (
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
            <button type="button" onClick={() => setText(known.text)}>
              Undo
            </button>
          </>
        )}
        <button
          type="button"
          aria-pressed={known.pinned}
          disabled={!!blocked || !used}
          title={blocked || "Kept fresh whatever its age"}
          onClick={() =>
            change(
              "pin",
              { memory, pinned: !known.pinned },
              known.pinned ? "No longer pinned" : "Pinned",
            )
          }
        >
          {known.pinned ? "Unpin" : "Pin"}
        </button>
        {used && (
          <button
            type="button"
            disabled={!!blocked}
            title={blocked || "Out of every recall, until it is restored"}
            onClick={() =>
              change("forget", { memories: memory }, "Forgotten: Restore brings it back")
            }
          >
            Forget
          </button>
        )}
        {used && (
          <button
            type="button"
            aria-expanded={reason !== null}
            disabled={!!blocked}
            title={blocked || "Flag it as wrong, with a reason"}
            onClick={() => setReason(reason === null ? "" : null)}
          >
            This is wrong …
          </button>
        )}
        {!used && (
          <button
            type="button"
            disabled={!!blocked}
            title={blocked || "With the status that it had before"}
            onClick={() => change("restore", { memories: memory }, "Restored")}
          >
            Restore
          </button>
        )}
        <button type="button" disabled={!!still} onClick={() => like(memory)}>
          More like this
        </button>
        <button
          type="button"
          disabled={!!still}
          aria-expanded={near !== null}
          onClick={() =>
            near
              ? setNear(null)
              : ask<{ rows: Table }>("similar", { memory }).then(
                  (found) => found && setNear(rows<Near>(found.rows)),
                )
          }
        >
          Neighbours
        </button>
        <button
          type="button"
          disabled={!!still}
          aria-expanded={history !== null}
          onClick={() =>
            history
              ? setHistory(null)
              : ask<{ events: Table }>("history", { memory }).then(
                  (found) => found && setHistory(rows<Event>(found.events)),
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
      <Conflicts of={rows<Conflict>(known.conflicts)} open={open} />
      {near && (
        <table>
          <caption>Nearest by meaning</caption>
          <tbody>
            {near.map((one) => (
              <tr key={one.memory_id}>
                <td class="number">{num(one.similarity, 3)}</td>
                <td>
                  <button
                    type="button"
                    class="plain link"
                    onClick={() => open(one.memory_id)}
                  >{`#${one.memory_id}`}</button>{" "}
                  <Said text={one.text} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {history && (
        <table>
          <caption>{`What happened to memory ${memory}, the last first`}</caption>
          <tbody>
            {history.map((one) => (
              <tr key={one.event}>
                <td class="number">{one.event}</td>
                <td class="when">{one.at}</td>
                <td>{one.kind}</td>
                <td>
                  <Said text={one.what} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <dl class="fields">
        {known.fields.map(([name, value]) => (
          <div key={name}>
            <dt>{name.replaceAll("_", " ")}</dt>
            <dd>
              <Said text={value} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Conflicts({ of, open }: { of: Conflict[]; open: (memory: number) => void }) {
  if (!of.length) return null;
  const how = (one: Conflict) =>
    one.how === "contradicts"
      ? "contradicts"
      : one.how === "supersedes"
        ? one.outgoing
          ? "takes the place of"
          : "superseded by"
        : one.outgoing
          ? "updates"
          : "updated by";
  return (
    <table>
      <caption>In conflict, or in its place</caption>
      <tbody>
        {of.map((one, at) => (
          <tr key={at}>
            <td class="when">{how(one)}</td>
            <td>
              <button
                type="button"
                class="plain link"
                onClick={() => open(one.id)}
              >{`#${one.id}`}</button>{" "}
              <Said text={one.text ?? ""} /> <span class="note">{one.status}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
