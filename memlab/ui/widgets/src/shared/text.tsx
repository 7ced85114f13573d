import { useState } from "preact/hooks";

/** The placeholder of every field for a reason. */
export const RECORDED = "Will be recorded in the history";

// Control characters and the pictures or the replacement character that stand for them.
const PICTURES = new Map<number, string>();
for (let code = 0; code < 32; code++)
  if (code !== 9 && code !== 10) PICTURES.set(code, String.fromCharCode(0x2400 + code));
PICTURES.set(0x7f, "\u2421");
for (let code = 0x80; code < 0xa0; code++) PICTURES.set(code, "\ufffd");
for (const code of [0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069])
  PICTURES.set(code, "\ufffd");

/** Replace control and bidirectional characters by visible ones, as `memlab.kernel.base.printable` does. */
export function visible(text: string): string {
  let printable = "";
  for (const character of text.replaceAll("\r\n", "\n"))
    printable += PICTURES.get(character.codePointAt(0)!) ?? character;
  return printable;
}

// Scripts that are written without spaces: a word of them has no border.
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u;

/** Split a text at words; the words are at odd positions: `["Use ", "tabs", " here"]`. Words have letters and digits only. */
export function splitAtWords(text: string, words: string[]): string[] {
  if (!words.length) return [text];
  // The longest first, because an alternation takes the first match.
  const patterns = [...words]
    .sort((a, b) => b.length - a.length)
    .map((word) =>
      UNSPACED.test(word) ? word : `(?<![\\p{L}\\p{N}])${word}(?![\\p{L}\\p{N}\\p{M}])`,
    );
  return text.split(new RegExp(`(${patterns.join("|")})`, "iu"));
}

/** Text that a user or an agent wrote: never markup, in its own direction, with `words` highlighted. */
export function UserText({
  text,
  class: name = "",
  words = [],
}: {
  text: string;
  class?: string;
  words?: string[];
}) {
  return (
    <bdi dir="auto" class={`said ${name}`}>
      {splitAtWords(visible(text), words).map((part, index) =>
        index % 2 ? <mark key={index}>{part}</mark> : part,
      )}
    </bdi>
  );
}

// Characters that fit three lines of half a panel: a shorter text needs no button.
const SHORT = 110;

/** Text that shows three lines until it is clicked, or opened with Enter or the space bar. */
export function FoldedText({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  if (text.length <= SHORT && !text.includes("\n")) return <UserText text={text} />;
  return (
    <button
      type="button"
      class="plain folded"
      aria-expanded={open}
      title={open ? "Show three lines" : "Show the whole text"}
      onClick={() => setOpen(!open)}
    >
      <UserText text={text} />
    </button>
  );
}

// Shapes on a square of 16 pixels. Fonts without emoji would show boxes instead.
const SHAPES = {
  good: "M1 7h3v7H1zm4 .3L8.3 1c1.2 0 1.9.9 1.7 2l-.5 3h3.9c1 0 1.7.9 1.5 1.9l-1.1 4.7c-.2.8-.9 1.4-1.7 1.4H6.6L5 13.2z",
  pin: "M5 1h6v1.5l-1 .8v3.4L12.5 9v1.5H8.8V15L8 16l-.8-1v-4.5H3.5V9L6 6.7V3.3l-1-.8z",
  warning: "M8 1l7.5 13.5H.5zM7.2 6v4.2h1.6V6zm0 5.5v1.6h1.6v-1.6z",
};

/** A small picture in the colour of the text around it; "bad" is "good" upside down. */
export function Icon({ shape }: { shape: keyof typeof SHAPES | "bad" }) {
  return (
    <svg class={`icon ${shape}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={SHAPES[shape === "bad" ? "good" : shape]} fill-rule="evenodd" />
    </svg>
  );
}

/** Format a count with its noun: `1 term`, `1,200 terms`. */
export function plural(count: number, singular: string, many = `${singular}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? singular : many}`;
}

/** Format a number with a fixed count of decimals and a true minus; a number that rounds to zero has no sign. */
export function num(value: number | null | undefined, digits = 4, signed = false): string {
  if (value === null || value === undefined) return "null";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return (value < 0 ? "−" : signed ? "+" : "") + text;
}

/** Shorten a text to `length` characters, the last of which is an ellipsis. */
export function clip(text: string, length: number): string {
  const characters = [...text];
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join("")}…`;
}
