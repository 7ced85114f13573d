/** The editor of a policy: CodeMirror with a Lisp mode, error marks, completion, and numbers that sliders change. */
import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import {
  bracketMatching,
  HighlightStyle,
  StreamLanguage,
  syntaxHighlighting,
  syntaxTree,
} from "@codemirror/language";
import { commonLisp } from "@codemirror/legacy-modes/mode/commonlisp";
import { setDiagnostics } from "@codemirror/lint";
import {
  Annotation,
  type ChangeSpec,
  Compartment,
  EditorState,
  StateEffect,
  StateField,
} from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { minimalSetup } from "codemirror";
import { useEffect, useRef } from "preact/hooks";
import { visible } from "../shared/text";

export type Word = [name: string, kind: string, shape: string, doc: string];
export type Param = {
  name: string;
  value: number;
  low: number | null;
  high: number | null;
  places: [number, number][];
};
export type Problem = { text: string; places: [number, number] | null };
export type Writer = (name: string, text: string) => void;

type Place = { name: string; from: number; to: number };

// Marks a change by Python or another view, which must not be sent back.
const outside = Annotation.define<boolean>();
const setPlaces = StateEffect.define<Place[]>();
const places = StateField.define<Place[]>({
  create: () => [],
  update(value, step) {
    for (const effect of step.effects) if (effect.is(setPlaces)) return effect.value;
    if (!step.docChanged) return value;
    return value.map(({ name, from, to }) => ({
      name,
      from: step.changes.mapPos(from, -1),
      to: step.changes.mapPos(to, 1),
    }));
  },
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: tags.function(tags.variableName), color: "var(--accent)" },
  { tag: tags.propertyName, color: "var(--feature)" },
  { tag: tags.number, color: "var(--good)" },
  { tag: tags.atom, color: "var(--warm)" },
  { tag: tags.string, color: "var(--warm)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: tags.bracket, color: "var(--soft)" },
]);

/** Return the mode of Common Lisp with colours for the features, forms and helpers of this slot. */
function createLanguage(words: Word[]) {
  const styles = new Map(
    words.map(([name, kind]) => [
      name,
      kind === "form" ? "keyword" : kind === "helper" ? "variableName.function" : "propertyName",
    ]),
  );
  return StreamLanguage.define({
    ...commonLisp,
    token(stream, state) {
      const style = commonLisp.token(stream, state);
      return style === "comment" || style === "string" || style === "number"
        ? style
        : (styles.get(stream.current().replaceAll("_", "-")) ?? style);
    },
  });
}

const NAME = /[^\s()[\]{};"'`,]*/;

/** Return a completion source for the words of this slot. */
function createCompletion(words: Word[]) {
  const options = words.map(([name, kind, shape, doc]) => ({
    label: name,
    type: kind === "form" ? "keyword" : kind === "helper" ? "function" : "property",
    detail: kind === "form" || kind === "helper" ? kind : kind.split(" ")[0],
    info: visible(
      kind === "form" || kind === "helper" ? [shape, doc].filter(Boolean).join("\n") : doc,
    ),
    ...(kind.endsWith("feature")
      ? {
          apply: (view: EditorView, _: unknown, from: number, to: number) =>
            view.dispatch(insertFeature(view.state, name, from, to)),
        }
      : {}),
  }));
  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(NAME);
    if (!word || (word.from === word.to && !context.explicit)) return null;
    if (/comment|string/i.test(syntaxTree(context.state).resolveInner(context.pos, -1).type.name))
      return null;
    return { from: word.from, options, validFor: /^[^\s()[\]{};"'`,]*$/ };
  };
}

/** Return a change that inserts a feature, and adds it to the arguments of the policy if they lack it. */
function insertFeature(state: EditorState, name: string, from: number, to: number) {
  const text = state.doc.toString();
  const listed =
    /\((?:fn|lambda|λ)\s*[[(]|\(defpolicy\s+[^\s()[\]]+\s*(?:"(?:[^"\\]|\\.)*"\s*)?[[(]/.exec(text);
  const changes: ChangeSpec[] = [{ from, to, insert: name }];
  let ahead = 0;
  if (listed) {
    const start = listed.index + listed[0].length;
    const stop = start + text.slice(start).search(/[\])]/);
    const listedNames = text.slice(start, stop).split(/\s+/).filter(Boolean);
    if (from > stop && !listedNames.includes(name)) {
      const insert = listedNames.length ? ` ${name}` : name;
      changes.unshift({ from: stop, insert });
      ahead = insert.length;
    }
  }
  return {
    changes,
    selection: { anchor: from + ahead + name.length },
    userEvent: "input.complete",
  };
}

export type EditorProps = {
  source: string;
  mine: boolean;
  problem: Problem | null;
  words: Word[];
  params: Param[];
  disabled: boolean;
  onType: (text: string) => void;
  onValues: (values: Record<string, number>) => void;
  writer: { current: Writer };
};

export function Editor({
  source,
  mine,
  problem,
  words,
  params,
  disabled,
  onType,
  onValues,
  writer,
}: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const parts = useRef({ words: new Compartment(), editable: new Compartment() });
  const calls = useRef({ onType, onValues });
  calls.current = { onType, onValues };

  useEffect(() => {
    const editor = new EditorView({
      parent: host.current!,
      doc: source,
      extensions: [
        minimalSetup,
        lineNumbers(),
        bracketMatching(),
        closeBrackets(),
        places,
        syntaxHighlighting(colours),
        keymap.of([...closeBracketsKeymap, ...completionKeymap]),
        parts.current.words.of([]),
        parts.current.editable.of([]),
        EditorView.contentAttributes.of({
          "aria-label": "Policy",
          spellcheck: "false",
          tabindex: "0",
        }),
        EditorView.updateListener.of((update) => {
          if (
            update.docChanged &&
            !update.transactions.some((transaction) => transaction.annotation(outside))
          )
            calls.current.onType(update.state.doc.toString());
          if (update.startState.field(places) !== update.state.field(places))
            calls.current.onValues(values(update.state));
        }),
      ],
    });
    view.current = editor;
    writer.current = (name, text) => {
      const changes = editor.state
        .field(places)
        .filter((span) => span.name === name)
        .map(({ from, to }) => ({ from, to, insert: text }));
      if (changes.length) editor.dispatch({ changes, userEvent: "input.slider" });
    };
    return () => editor.destroy();
  }, []);

  useEffect(() => {
    const editor = view.current!;
    if (mine || editor.state.doc.toString() === source) return;
    editor.dispatch({
      changes: { from: 0, to: editor.state.doc.length, insert: source },
      annotations: outside.of(true),
    });
  }, [source, mine]);

  useEffect(() => {
    const effects = parts.current.words.reconfigure([
      createLanguage(words),
      autocompletion({ override: [createCompletion(words)], icons: false }),
    ]);
    view.current!.dispatch({ effects });
  }, [words]);

  useEffect(() => {
    view.current!.dispatch({
      effects: parts.current.editable.reconfigure([
        EditorView.editable.of(!disabled),
        EditorState.readOnly.of(disabled),
      ]),
    });
  }, [disabled]);

  // The spans belong to the text that Python has read. While a user types ahead, the next answer will have them.
  useEffect(() => {
    const editor = view.current!;
    if (editor.state.doc.toString() !== source) return;
    const spans = params.flatMap(({ name, places }) =>
      places.map(([from, to]) => ({ name, from, to })),
    );
    if (!problem) editor.dispatch({ effects: setPlaces.of(spans) });
    const marks = problem?.places ? [mark(problem, editor.state.doc.length)] : [];
    editor.dispatch(setDiagnostics(editor.state, marks));
  }, [source, params, problem, mine]);

  return <div class="editor" ref={host} />;
}

function mark({ text, places }: Problem, length: number) {
  const [from, to] = places!;
  const start = Math.min(from, Math.max(0, length - 1));
  return {
    from: start,
    to: Math.min(Math.max(to, start + 1), length),
    severity: "error" as const,
    message: visible(text),
  };
}

function values(state: EditorState): Record<string, number> {
  return Object.fromEntries(
    state
      .field(places)
      .map(({ name, from, to }) => [name, Number(state.doc.sliceString(from, to))]),
  );
}
