/** Why one of two pinned hits stands above the other. */
import { useEffect, useState } from "preact/hooks";
import { rows, type Table } from "../shared/table";
import { num, visible } from "../shared/text";
import { useAsk } from "../shared/widget";
import { colour, type Key } from "./terms";

type Gap = {
  term: string;
  a: number;
  b: number;
  difference: number;
  branch: string;
  decides: boolean;
};
type Answer = {
  verdict: string;
  names: [string, string];
  partings: [string, boolean, boolean][];
  terms: Table;
};

export function Compared({
  ids: [a, b],
  keys,
  version,
}: {
  ids: [number, number];
  keys: Map<string, Key>;
  version: unknown;
}) {
  const ask = useAsk();
  const [answer, setAnswer] = useState<Answer | null>(null);
  useEffect(() => {
    void ask<Answer>("why", { a, b }).then((found) => found && setAnswer(found));
  }, [a, b, version]);
  if (!answer) return null;
  const gaps = rows<Gap>(answer.terms);
  const top =
    Math.max(...gaps.map((gap) => Math.abs(gap.difference)).filter(Number.isFinite), 0) || 1;
  return (
    <section class="compared" aria-label="Comparison of the two pinned hits">
      <h3>{visible(answer.verdict)}</h3>
      {gaps.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">term</th>
              <th scope="col" class="number">
                {answer.names[0]}
              </th>
              <th scope="col" class="number">
                {answer.names[1]}
              </th>
              <th scope="col" class="number">
                difference
              </th>
              <th scope="col">
                <span class="hidden">difference drawn</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {gaps.map((gap) => (
              <tr key={gap.term} class={gap.decides ? "decides" : ""}>
                <td>
                  <b class="swatch" style={{ background: colour(keys.get(gap.term)) }}>
                    {keys.get(gap.term)?.letter}
                  </b>{" "}
                  <code>{visible(gap.term)}</code>
                </td>
                <td class="number">{gap.branch === "b" ? "" : num(gap.a)}</td>
                <td class="number">{gap.branch === "a" ? "" : num(gap.b)}</td>
                <td class="number">{`${num(gap.difference, 4, true)}${gap.decides ? " *" : ""}`}</td>
                <td class="drawn">
                  <i
                    style={{
                      [gap.difference < 0 ? "right" : "left"]: "50%",
                      width: `${(50 * Math.abs(gap.difference)) / top}%`,
                      background: colour(keys.get(gap.term)),
                    }}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {gaps.some((gap) => gap.decides) && (
        <p class="note">* without this term the order would turn</p>
      )}
      {answer.partings.map(([text, first, second]) => (
        <p key={text} class="note">
          branches part at <code>{visible(text)}</code>
          {`: ${first} | ${second}`}
        </p>
      ))}
    </section>
  );
}
