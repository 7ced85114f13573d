/** The names of terms and parts as the explorer shows them. */
import { visible } from "../shared/text";
import { colour, nameTerm, type Part, type Term } from "./terms";

/** A square in the colour of a part, with its letter. */
export function Swatch({ part }: { part: Part | undefined }) {
  return (
    <b class="swatch" style={{ background: colour(part) }}>
      {part?.letter}
    </b>
  );
}

/** The label of a term, with its expression below it if the reader asks for expressions. */
export function TermName({ term, expressions }: { term: Term; expressions: boolean }) {
  if (!term.label) return <code>{visible(term.term)}</code>;
  return (
    <>
      {visible(nameTerm(term))}
      {expressions && <code class="expression">{visible(term.term)}</code>}
    </>
  );
}

/** A button that shows or hides the expressions of terms. */
export function ExpressionToggle({ on, set }: { on: boolean; set: (on: boolean) => void }) {
  return (
    <button type="button" class="toggle" aria-pressed={on} onClick={() => set(!on)}>
      {on ? "Hide expressions" : "Show expressions"}
    </button>
  );
}
