/** The part of `memlab try` that reads the user's own file, and shows what was read. */
import { useState } from "preact/hooks";
import { plural, visible } from "../shared/text";
import { useAsk, useTrait } from "../shared/widget";

export type Offered = { note?: string; own?: boolean; largest?: number };

export function Offer({ offered }: { offered: Offered }) {
  const ask = useAsk();
  const [card] = useTrait<[string, string][]>("_card");
  const [path, setPath] = useState("");
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const [refused, setRefused] = useState("");
  const load = async (verb: string, values: Record<string, unknown>) => {
    setBusy(true);
    const done = await ask(verb, values);
    setBusy(false);
    // The page's widgets are of another lab now.
    if (done) location.reload();
  };
  const drop = async (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    setRefused("");
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    if (file.size > offered.largest!) {
      setRefused(
        `${visible(file.name)} is larger than ${plural(Math.floor(offered.largest! / 1000), "kilobyte")}. Type its path instead.`,
      );
      return;
    }
    await load("drop", { name: file.name, content: await toBase64(file) });
  };
  return (
    <section
      class={over ? "offer over" : "offer"}
      aria-label="Your own data"
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <p>{visible(offered.note!)}</p>
      {refused && <p role="alert">{refused}</p>}
      {card.length > 0 && (
        <dl class="read">
          {card.map(([name, value]) => (
            <div key={name}>
              <dt>{visible(name)}</dt>
              <dd>{visible(value)}</dd>
            </div>
          ))}
        </dl>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (path.trim()) void load("load", { path: path.trim() });
        }}
      >
        <label>
          {offered.own ? "Another file" : "Now yours: the path of a chat export, notes or a table"}
          <input
            type="text"
            value={path}
            disabled={busy}
            placeholder="~/Downloads/chat.zip"
            onInput={(event) => setPath(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={busy || !path.trim()}>
          {busy ? "Reading …" : "Read"}
        </button>
        <span class="note">or drop a small file here</span>
      </form>
    </section>
  );
}

async function toBase64(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  // String.fromCharCode takes a limited number of arguments.
  for (let at = 0; at < bytes.length; at += 0x8000)
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
