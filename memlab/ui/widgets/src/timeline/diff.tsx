/** Two texts side by side, with the differences within a line marked. */
import { visible } from "../shared/text";

export type Line = [
  kind: "same" | "changed" | "removed" | "added",
  left: number | null,
  before: string,
  right: number | null,
  after: string,
];

export function Diff({ rows, heads }: { rows: Line[]; heads: [string, string] }) {
  return (
    <table class="diff">
      <caption class="hidden">{`${heads[0]} and ${heads[1]} side by side`}</caption>
      <colgroup>
        <col class="at" />
        <col />
        <col class="at" />
        <col />
      </colgroup>
      <thead>
        <tr>
          <th scope="col" colSpan={2}>
            {heads[0]}
          </th>
          <th scope="col" colSpan={2}>
            {heads[1]}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([kind, left, before, right, after], index) => {
          const [a, b]: [Parts, Parts] =
            kind === "changed"
              ? splitLines(before, after)
              : [
                  [before, "", ""],
                  [after, "", ""],
                ];
          return (
            <tr key={index} class={kind}>
              <td class="number">{left}</td>
              <td class="old">
                <Code parts={a} tag="del" sign={left !== null && kind !== "same" ? "−" : ""} />
              </td>
              <td class="number">{right}</td>
              <td class="new">
                <Code parts={b} tag="ins" sign={right !== null && kind !== "same" ? "+" : ""} />
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

type Parts = [string, string, string];

function Code({
  parts: [start, middle, end],
  tag: Tag,
  sign,
}: {
  parts: Parts;
  tag: "del" | "ins";
  sign: string;
}) {
  return (
    <code>
      {sign && <b>{sign}</b>}
      {visible(start)}
      {middle && <Tag>{visible(middle)}</Tag>}
      {visible(end)}
    </code>
  );
}

/** Split two lines into their common start, the part that differs, and their common end. */
export function splitLines(a: string, b: string): [Parts, Parts] {
  const [x, y] = [[...a], [...b]];
  let head = 0;
  while (head < Math.min(x.length, y.length) && x[head] === y[head]) head++;
  let tail = 0;
  while (tail < Math.min(x.length, y.length) - head && x.at(-1 - tail) === y.at(-1 - tail)) tail++;
  const cut = (all: string[]): Parts => [
    all.slice(0, head).join(""),
    all.slice(head, all.length - tail).join(""),
    all.slice(all.length - tail).join(""),
  ];
  return [cut(x), cut(y)];
}
