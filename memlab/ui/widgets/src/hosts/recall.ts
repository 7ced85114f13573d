/** The explanation of a recall, with two buttons on each memory that record feedback. */
import { visible } from "../shared/text";
import type { Bridge, ToolResult } from "./bridge";

type Memory = {
  id: number;
  text: string;
  kind: string;
  created: string;
  score: number;
  speaker?: string;
  probe?: boolean;
};
/** The structured content of the tool `recall`; `recall` is the number of the logged recall. */
export type Recalled = { recall: number | null; memories: Memory[] };
type Term = { term: string; value: number; label?: string; group?: string };
type Why = {
  query: string;
  policy: string;
  hash: string;
  memories: { id: number; terms: Term[] }[];
};

/** Create an element with a text, never with HTML: the text of a memory is data. */
export function createElement<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  text = "",
  kind = "",
  ...inside: (Node | string)[]
) {
  const node = document.createElement(tag);
  if (text) node.textContent = visible(text);
  if (kind) node.className = kind;
  node.append(...inside);
  return node;
}

/** Show the result of the tool `recall` in an element. */
export async function showRecall(
  bridge: Bridge,
  result: ToolResult<Recalled>,
  into: HTMLElement,
): Promise<void> {
  if (result?.isError || !result?.structuredContent)
    throw new Error(result?.content?.[0]?.text ?? "There is nothing to show.");
  const { recall, memories } = result.structuredContent;
  const why: Why | null =
    recall !== null && memories.length
      ? JSON.parse(await bridge.read(`memlab://terms/${recall}`))
      : null;
  const title = why ? `Recall ${recall}: ${why.query}` : "What memlab recalled";
  const note = why
    ? `${memories.length} memories, by ${why.policy} [${why.hash.slice(0, 12)}]`
    : memories.length
      ? "This recall is not logged, so its terms are unknown."
      : "No memory matches this query.";
  const list = createElement(
    "ol",
    "",
    "",
    ...memories.map((memory) => createRow(bridge, memory, recall, why)),
  );
  into.replaceChildren(createElement("h1", title), createElement("p", note, "said"), list);
}

function createRow(
  bridge: Bridge,
  memory: Memory,
  recall: number | null,
  why: Why | null,
): HTMLElement {
  const about = [`#${memory.id}`, memory.kind, memory.created, `score ${memory.score.toFixed(4)}`];
  if (memory.speaker) about.splice(2, 0, memory.speaker);
  if (memory.probe) about.push("exploration item");
  const node = createElement(
    "li",
    "",
    "",
    createElement("p", memory.text, "text"),
    createElement("p", about.join(" · "), "about"),
  );
  const terms = why?.memories.find((entry) => entry.id === memory.id)?.terms ?? [];
  if (terms.length) node.append(createBars(terms));
  if (recall !== null) node.append(createFeedback(bridge, memory.id, recall));
  return node;
}

function createBars(terms: Term[]): HTMLElement {
  const largest = Math.max(...terms.map((term) => Math.abs(term.value)), 1e-9);
  const table = createElement("table");
  for (const { term, value, label, group } of terms) {
    const bar = createElement("div", "", value < 0 ? "bar less" : "bar");
    bar.style.width = `${(100 * Math.abs(value)) / largest}%`;
    const number = `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(4)}`;
    table.append(
      createElement(
        "tr",
        "",
        "",
        createElement("td", label ? [group, label].filter(Boolean).join(": ") : term, "term"),
        createElement("td", number, "value"),
        createElement("td", "", "drawn", bar),
      ),
    );
  }
  return createElement(
    "details",
    "",
    "",
    createElement("summary", `Why: the score is the sum of ${terms.length} terms`),
    table,
  );
}

function createFeedback(bridge: Bridge, id: number, recall: number): HTMLElement {
  const state = createElement("span", "", "said");
  state.setAttribute("role", "status");
  const buttons = (["success", "fail"] as const).map((outcome) => {
    const text = outcome === "success" ? "It helped" : "It misled";
    const button = createElement("button", text);
    button.type = "button";
    button.setAttribute("aria-label", `${text}: memory ${id}`);
    button.addEventListener("click", async (event) => {
      if (!event.isTrusted) return; // Only a click of the user records feedback.
      for (const other of buttons) other.disabled = true;
      try {
        const answer = await bridge.call("feedback", { recall, memories: [id], outcome });
        state.textContent = answer.content?.[0]?.text ?? "";
      } catch (error) {
        state.textContent = (error as Error).message;
        for (const other of buttons) other.disabled = false;
      }
    });
    return button;
  });
  return createElement("div", "", "", ...buttons, state);
}
