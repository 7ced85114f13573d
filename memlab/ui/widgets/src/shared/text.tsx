const PICTURES = new Map<number, string>();
for (let code = 0; code < 32; code++)
  if (code !== 9 && code !== 10) PICTURES.set(code, String.fromCharCode(0x2400 + code));
PICTURES.set(0x7f, "\u2421");
for (let code = 0x80; code < 0xa0; code++) PICTURES.set(code, "\ufffd");
for (const code of [0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069])
  PICTURES.set(code, "\ufffd");

/** A text in which control characters are pictures and nothing reorders its surroundings, as `memlab.kernel.base.printable` has it. */
export function visible(text: string): string {
  let shown = "";
  for (const one of text.replaceAll("\r\n", "\n"))
    shown += PICTURES.get(one.codePointAt(0)!) ?? one;
  return shown;
}

/** What somebody said: always text, in its own direction. */
export function Said({ text, class: name = "" }: { text: string; class?: string }) {
  return (
    <bdi dir="auto" class={`said ${name}`}>
      {visible(text)}
    </bdi>
  );
}

/** `1 term`, `1,200 terms`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** A number for people: four digits after the point at most, and a true minus. */
export function num(value: number | null | undefined, digits = 4, signed = false): string {
  if (value === null || value === undefined) return "null";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 ? "−" : signed ? "+" : "") + text;
}

/** The beginning of a text, by characters as people count them. */
export function clip(text: string, most: number): string {
  const parts = [...text];
  return parts.length <= most ? text : `${parts.slice(0, most - 1).join("")}…`;
}
