/** The explanation of a score: its terms by group, the features that it reads, and the whole computation. */
import { useEffect, useState } from "preact/hooks";
import { rows, type Table } from "../shared/table";
import { num, plural, visible } from "../shared/text";
import { useAsk } from "../shared/widget";
import { ExpressionToggle, Swatch, TermName } from "./labels";
import {
  buildPalette,
  groupTerms,
  isNegligible,
  type Palette,
  type Part,
  sumTerms,
  type Term,
} from "./terms";

type Node = { depth: number; role: string; source: string; shown: string; live: boolean };
type Explanation = {
  score: number;
  policy: string;
  hash: string;
  features: [string, string][];
  terms: Table;
  tree: Table;
};

/** The explanation of a memory's score. Without a `palette`, the terms get colours of their own. */
export function Explained({
  memory,
  palette: shared,
  version,
}: {
  memory: number;
  palette?: Palette;
  version: unknown;
}) {
  const ask = useAsk();
  const [explanation, setExplanation] = useState<Explanation | null>(null);
  const [expressions, setExpressions] = useState(false);
  useEffect(() => {
    void ask<Explanation>("explain", { memory }).then((answer) => answer && setExplanation(answer));
  }, [memory, version]);
  if (!explanation) return <p class="note">…</p>;
  const terms = rows<Term>(explanation.terms);
  const parts = groupTerms(terms, shared ?? buildPalette(terms));
  return (
    <div class="explained">
      <table>
        <caption class="hidden">{`Terms that sum to the score of memory ${memory}`}</caption>
        <thead>
          <tr>
            <th scope="col">term</th>
            <th scope="col" class="number">
              contribution
            </th>
          </tr>
        </thead>
        <tbody>
          {parts.map(([part, members]) => (
            <PartRows key={part.id} part={part} terms={members} expressions={expressions} />
          ))}
          <tr class="total">
            <td>{`score, by ${visible(explanation.policy)} [${explanation.hash}]`}</td>
            <td class="number">{num(explanation.score)}</td>
          </tr>
        </tbody>
      </table>
      {terms.some((term) => term.label) && (
        <p>
          <ExpressionToggle on={expressions} set={setExpressions} />
        </p>
      )}
      <details open={terms.length < 2}>
        <summary>Features and computation</summary>
        <dl class="features" aria-label="Features that the policy reads">
          {explanation.features.map(([name, value]) => (
            <div key={name}>
              <dt>
                <code>{name}</code>
              </dt>
              <dd class="number">{visible(value)}</dd>
            </div>
          ))}
        </dl>
        <ul class="tree" aria-label="The computation">
          {rows<Node>(explanation.tree).map((node, index) => (
            <li
              key={index}
              class={node.live ? "" : "dead"}
              style={{ paddingLeft: `${node.depth * 16}px` }}
            >
              <code>
                {node.role && <span class="role">{node.role} </span>}
                {visible(node.source)}
              </code>
              <span class="number">{node.live ? visible(node.shown) : "not evaluated"}</span>
            </li>
          ))}
        </ul>
      </details>
    </div>
  );
}

/** The rows of one part: a group with its sum, which opens to its terms, or a single term. */
function PartRows({
  part,
  terms,
  expressions,
}: {
  part: Part;
  terms: Term[];
  expressions: boolean;
}) {
  const [isOpen, setOpen] = useState(false);
  const hidden = terms.filter(isNegligible).length;
  if (!part.isGroup)
    return (
      <>
        {terms.map((term) => (
          <tr key={term.term}>
            <td>
              <Swatch part={part} /> <TermName term={term} expressions={expressions} />
            </td>
            <td class="number">{num(term.value, 4, true)}</td>
          </tr>
        ))}
      </>
    );
  const showTerms = isOpen || expressions;
  return (
    <>
      <tr class="group">
        <td>
          <button
            type="button"
            class="plain"
            aria-expanded={showTerms}
            onClick={() => setOpen(!isOpen)}
          >
            <Swatch part={part} /> {visible(part.name)}
          </button>
        </td>
        <td class="number">{num(sumTerms(terms), 4, true)}</td>
      </tr>
      {showTerms &&
        terms
          .filter((term) => !isNegligible(term))
          .map((term) => (
            <tr key={term.term} class="member">
              <td>
                <TermName term={term} expressions={expressions} />
              </td>
              <td class="number">{num(term.value, 4, true)}</td>
            </tr>
          ))}
      {showTerms && hidden > 0 && (
        <tr class="member">
          <td colSpan={2} class="note">{`${plural(hidden, "term")} contributed nothing`}</td>
        </tr>
      )}
    </>
  );
}
