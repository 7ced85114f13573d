/** Why a recall showed what it showed, and two buttons on each memory by which the user judges it. */
import { visible } from "../shared/text";
import type { Answer, Bridge } from "./bridge";

type Memory = {
  id: number;
  text: string;
  kind: string;
  created: string;
  score: number;
  speaker?: string;
  probe?: boolean;
};
type Term = { term: string; value: number };
type Why = {
  query: string;
  policy: string;
  hash: string;
  memories: { id: number; terms: Term[] }[];
};

/** An element with a text, never with HTML: what a memory says is data. */
export function made<Tag extends keyof HTMLElementTagNameMap>(
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

/** Draw the answer of `recall` into an element. */
export async function showRecall(bridge: Bridge, answer: Answer, into: HTMLElement): Promise<void> {
  const said = answer?.structuredContent;
  if (answer?.isError || !said)
    throw new Error(answer?.content?.[0]?.text ?? "There is nothing to show.");
  const memories: Memory[] = said.memories;
  const why: Why | null =
    said.recall !== null && memories.length
      ? JSON.parse(await bridge.read(`memlab://terms/${said.recall}`))
      : null;
  const head = why ? `Recall ${said.recall}: ${why.query}` : "What memlab recalled";
  const note = why
    ? `${memories.length} memories, by ${why.policy} [${why.hash.slice(0, 12)}]`
    : memories.length
      ? "It is not logged, so it has no terms."
      : "Nothing that is remembered answers this.";
  const list = made("ol", "", "", ...memories.map((one) => row(bridge, one, said.recall, why)));
  into.replaceChildren(made("h1", head), made("p", note, "said"), list);
}

function row(bridge: Bridge, memory: Memory, recall: number | null, why: Why | null): HTMLElement {
  const about = [`#${memory.id}`, memory.kind, memory.created, `score ${memory.score.toFixed(4)}`];
  if (memory.speaker) about.splice(2, 0, memory.speaker);
  if (memory.probe) about.push("a probe: shown to learn about it");
  const node = made(
    "li",
    "",
    "",
    made("p", memory.text, "text"),
    made("p", about.join(" · "), "about"),
  );
  const terms = why?.memories.find((one) => one.id === memory.id)?.terms ?? [];
  if (terms.length) node.append(bars(terms));
  if (recall !== null) node.append(judged(bridge, memory.id, recall));
  return node;
}

function bars(terms: Term[]): HTMLElement {
  const most = Math.max(...terms.map((one) => Math.abs(one.value)), 1e-9);
  const table = made("table");
  for (const { term, value } of terms) {
    const bar = made("div", "", value < 0 ? "bar less" : "bar");
    bar.style.width = `${(100 * Math.abs(value)) / most}%`;
    const number = `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(4)}`;
    table.append(
      made(
        "tr",
        "",
        "",
        made("td", term, "term"),
        made("td", number, "value"),
        made("td", "", "drawn", bar),
      ),
    );
  }
  return made(
    "details",
    "",
    "",
    made("summary", `Why: ${terms.length} terms that sum to the score`),
    table,
  );
}

function judged(bridge: Bridge, id: number, recall: number): HTMLElement {
  const state = made("span", "", "said");
  state.setAttribute("role", "status");
  const buttons = (["success", "fail"] as const).map((outcome) => {
    const text = outcome === "success" ? "It helped" : "It misled";
    const button = made("button", text);
    button.type = "button";
    button.setAttribute("aria-label", `${text}: memory ${id}`);
    button.addEventListener("click", async (event) => {
      if (!event.isTrusted) return; // written is what the user clicked, and nothing else
      for (const one of buttons) one.disabled = true;
      try {
        const answer = await bridge.call("feedback", { recall, memories: [id], outcome });
        state.textContent = answer.content?.[0]?.text ?? "";
      } catch (error) {
        state.textContent = (error as Error).message;
        for (const one of buttons) one.disabled = false;
      }
    });
    return button;
  });
  return made("div", "", "", ...buttons, state);
}
