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

/** Text that a user or an agent wrote: never markup, and in its own direction. */
export function UserText({ text, class: name = "" }: { text: string; class?: string }) {
  return (
    <bdi dir="auto" class={`said ${name}`}>
      {visible(text)}
    </bdi>
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
