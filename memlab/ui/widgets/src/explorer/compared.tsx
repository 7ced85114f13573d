/** The comparison of two pinned results: which terms put one of them above the other. */
import { useEffect, useState } from "preact/hooks";
import { rows, type Table } from "../shared/table";
import { num, visible } from "../shared/text";
import { useAsk } from "../shared/widget";
import { ExpressionToggle, Swatch, TermName } from "./labels";
import { colour, identifyPart, type Palette } from "./terms";

type Gap = {
  term: string;
  label?: string;
  group?: string;
  a: number;
  b: number;
  difference: number;
  branch: string;
  decides: boolean;
};
type Comparison = {
  verdict: string;
  names: [string, string];
  partings: [string, boolean, boolean][];
  terms: Table;
};

export function Compared({
  ids: [a, b],
  palette,
  version,
}: {
  ids: [number, number];
  palette: Palette;
  version: unknown;
}) {
  const ask = useAsk();
  const [comparison, setComparison] = useState<Comparison | null>(null);
  const [expressions, setExpressions] = useState(false);
  useEffect(() => {
    void ask<Comparison>("why", { a, b }).then((answer) => answer && setComparison(answer));
  }, [a, b, version]);
  if (!comparison) return null;
  const gaps = rows<Gap>(comparison.terms);
  const partOf = (gap: Gap) => palette.get(identifyPart({ ...gap, value: gap.difference }));
  const largest =
    Math.max(...gaps.map((gap) => Math.abs(gap.difference)).filter(Number.isFinite), 0) || 1;
  return (
    <section class="compared" aria-label="Comparison of the two pinned results">
      <h3>{visible(comparison.verdict)}</h3>
      {gaps.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">term</th>
              <th scope="col" class="number">
                {comparison.names[0]}
              </th>
              <th scope="col" class="number">
                {comparison.names[1]}
              </th>
              <th scope="col" class="number">
                difference
              </th>
              <th scope="col">
                <span class="hidden">chart of the difference</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {gaps.map((gap) => (
              <tr key={gap.term} class={gap.decides ? "decides" : ""}>
                <td>
                  <Swatch part={partOf(gap)} />{" "}
                  <TermName term={{ ...gap, value: gap.difference }} expressions={expressions} />
                </td>
                <td class="number">{gap.branch === "b" ? "" : num(gap.a)}</td>
                <td class="number">{gap.branch === "a" ? "" : num(gap.b)}</td>
                <td class="number">{`${num(gap.difference, 4, true)}${gap.decides ? " *" : ""}`}</td>
                <td class="drawn">
                  <i
                    style={{
                      [gap.difference < 0 ? "right" : "left"]: "50%",
                      width: `${(50 * Math.abs(gap.difference)) / largest}%`,
                      background: colour(partOf(gap)),
                    }}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {gaps.some((gap) => gap.label) && (
        <p>
          <ExpressionToggle on={expressions} set={setExpressions} />
        </p>
      )}
      {gaps.some((gap) => gap.decides) && (
        <p class="note">* Without this term, the order would be reversed.</p>
      )}
      {comparison.partings.map(([text, first, second]) => (
        <p key={text} class="note">
          The two results take different branches at <code>{visible(text)}</code>
          {`: ${first} and ${second}`}
        </p>
      ))}
    </section>
  );
}
