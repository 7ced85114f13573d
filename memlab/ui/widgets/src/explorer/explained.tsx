/** Why a hit has its score: its terms, what they read, and the whole computation. */
import { useEffect, useState } from "preact/hooks";
import { rows, type Table } from "../shared/table";
import { num, visible } from "../shared/text";
import { useAsk } from "../shared/widget";
import { colour, type Key, keyed, type Term } from "./terms";

type Node = { depth: number; role: string; source: string; shown: string; live: boolean };
type Answer = {
  score: number;
  policy: string;
  hash: string;
  features: [string, string][];
  terms: Table;
  tree: Table;
};

/** `keys` are the colours of a legend; without one, the terms have their own. */
export function Explained({
  memory,
  keys: given,
  version,
}: {
  memory: number;
  keys?: Map<string, Key>;
  version: unknown;
}) {
  const ask = useAsk();
  const [answer, setAnswer] = useState<Answer | null>(null);
  useEffect(() => {
    void ask<Answer>("explain", { memory }).then((found) => found && setAnswer(found));
  }, [memory, version]);
  if (!answer) return <p class="note">…</p>;
  const terms = rows<Term>(answer.terms);
  const keys = given ?? keyed(terms);
  return (
    <div class="explained">
      <table>
        <caption class="hidden">{`Terms that sum to the score of memory ${memory}`}</caption>
        <thead>
          <tr>
            <th scope="col">term</th>
            <th scope="col" class="number">
              value
            </th>
          </tr>
        </thead>
        <tbody>
          {terms.map((term) => (
            <tr key={term.term}>
              <td>
                <b class="swatch" style={{ background: colour(keys.get(term.term)) }}>
                  {keys.get(term.term)?.letter}
                </b>{" "}
                <code>{visible(term.term)}</code>
              </td>
              <td class="number">{num(term.value, 4, true)}</td>
            </tr>
          ))}
          <tr class="total">
            <td>{`score, by ${visible(answer.policy)} [${answer.hash}]`}</td>
            <td class="number">{num(answer.score)}</td>
          </tr>
        </tbody>
      </table>
      <dl class="features" aria-label="Features that the policy reads">
        {answer.features.map(([name, value]) => (
          <div key={name}>
            <dt>
              <code>{name}</code>
            </dt>
            <dd class="number">{visible(value)}</dd>
          </div>
        ))}
      </dl>
      <details open={terms.length < 2}>
        <summary>Step by step</summary>
        <ul class="tree" aria-label="The computation">
          {rows<Node>(answer.tree).map((node, place) => (
            <li
              key={place}
              class={node.live ? "" : "dead"}
              style={{ paddingLeft: `${node.depth * 16}px` }}
            >
              <code>
                {node.role && <span class="role">{node.role} </span>}
                {visible(node.source)}
              </code>
              <span class="number">{node.live ? visible(node.shown) : "not taken"}</span>
            </li>
          ))}
        </ul>
      </details>
    </div>
  );
}
