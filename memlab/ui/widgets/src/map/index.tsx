/** Memory map: memories as points by meaning, a lasso, the neighbourhood of a memory, and spreading activation. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { rows, type Table } from "../shared/table";
import { clip, FoldedText, num, plural, UserText, visible } from "../shared/text";
import { useAsk, useLatest, useOfflineReason, useTable, useTrait, widget } from "../shared/widget";
import { SHAPES } from "./draw";
import { type Edge, Graph, type Node } from "./graph";
import css from "./map.css";
import { type Mark, type Region, Scatter, type Seen } from "./scatter";

type Legend = {
  colour?: string;
  words?: [string, number][];
  ends?: [string, string];
  named?: string;
  none: number;
};
type About = {
  memories: number;
  shown: number;
  kept: number | null;
  legend: Legend;
  event: number;
  colours: string[];
  regions: Region[];
};
type Activation = { step: number; node: number; activation: number };
/** The answer to a request for a graph; the last three values belong to spreading activation. */
type GraphAnswer = {
  nodes: Table;
  edges: Table;
  cut: boolean;
  active: Table;
  seeds: number[];
  beyond: number;
};
/** A graph around a memory, or around the results of a query with their activation. */
type Neighbourhood = {
  nodes: Node[];
  edges: Edge[];
  cut: boolean;
  seeds: number[];
  active?: Activation[];
  beyond?: number;
  question?: string;
};
// One list for all drawings before the first answer, so that none of them begins again.
const NO_REGIONS: Region[] = [];
const NAMES: Record<string, string> = {
  kind: "kind",
  status: "status",
  speaker: "speaker",
  session: "session",
  cluster: "cluster",
  created: "date",
  retention: "retention",
  recalled: "last recall",
};

function MemoryMap() {
  const ask = useAsk();
  const offline = useOfflineReason();
  const points = useTable("_points");
  const shades = useTable("_shades");
  const [about] = useTrait<About>("_about");
  const [colour, setColour] = useTrait<string>("colour");
  const [ids, setIds] = useTrait<number[]>("ids");
  const [focus, setFocus] = useTrait<number>("focus");
  const [neighbourhood, setNeighbourhood] = useState<Neighbourhood | null>(null);
  const [details, setDetails] = useState<Seen | null>(null);
  const [most, setMost] = useState(60);
  const [question, setQuestion] = useState("");
  const [step, setStep] = useState(0);
  const root = useRef<HTMLDivElement>(null);
  const theme = useTheme(root);
  const legend = about.legend ?? { none: 0 };

  const look = useLatest(async (memory: number, most: number) => {
    if (!memory) {
      setDetails(null);
      return setNeighbourhood((now) => (now?.question ? now : null));
    }
    const [details, graph] = await Promise.all([
      ask<{ rows: Table }>("look", { memories: [memory] }),
      ask<GraphAnswer>("graph", { seeds: memory, most }),
    ]);
    setDetails(rows<Seen>(details?.rows)[0] ?? null);
    if (graph)
      setNeighbourhood({
        nodes: rows<Node>(graph.nodes),
        edges: rows<Edge>(graph.edges),
        cut: graph.cut,
        seeds: [memory],
      });
  });
  useEffect(() => {
    if (!offline) look(focus, most);
  }, [focus, most, about.event]);
  const spread = async () => {
    const answer = await ask<GraphAnswer>("spread", { question, most });
    if (!answer) return;
    setDetails(null);
    setFocus(0);
    setStep(0);
    setNeighbourhood({
      ...answer,
      nodes: rows<Node>(answer.nodes),
      edges: rows<Edge>(answer.edges),
      active: rows<Activation>(answer.active),
      question,
    });
  };

  const active = useMemo(() => {
    if (!neighbourhood?.active) return null;
    return new Map(
      neighbourhood.active
        .filter((wave) => wave.step === step)
        .map((wave) => [wave.node, wave.activation]),
    );
  }, [neighbourhood, step]);
  const seeds = useMemo(
    () =>
      new Set(
        neighbourhood?.seeds.map((id) =>
          neighbourhood.nodes.findIndex((node) => node.kind === "memory" && node.id === id),
        ),
      ),
    [neighbourhood],
  );
  const marks = useMemo<Mark[]>(() => {
    const top = Math.max(...(active?.values() ?? []), 1e-9);
    return neighbourhood && active
      ? [...active]
          .filter(([node]) => neighbourhood.nodes[node]!.kind === "memory")
          .map(([node, amount]) => ({ id: neighbourhood.nodes[node]!.id, amount: amount / top }))
      : [];
  }, [neighbourhood, active]);
  const joined = useMemo<[number, number][]>(() => {
    if (!neighbourhood) return [];
    const memory = (node: Node | undefined) => node?.kind === "memory";
    return neighbourhood.edges
      .filter(
        (edge) =>
          memory(neighbourhood.nodes[edge.source]) &&
          memory(neighbourhood.nodes[edge.target]) &&
          (neighbourhood.question || seeds.has(edge.source) || seeds.has(edge.target)),
      )
      .map((edge) => [neighbourhood.nodes[edge.source]!.id, neighbourhood.nodes[edge.target]!.id]);
  }, [neighbourhood, seeds]);
  const selectWord = (code: number) => {
    const codes = shades?.getChild("place").toArray() as ArrayLike<number>;
    const all = points?.getChild("id").toArray() as ArrayLike<number>;
    setIds(Array.from(all).filter((_, index) => codes[index] === code));
  };
  const steps = neighbourhood?.active
    ? Math.max(...neighbourhood.active.map((wave) => wave.step))
    : 0;

  return (
    <div class="map" ref={root}>
      <div class="tools">
        <label>
          Colour
          <select
            value={colour}
            disabled={!!offline}
            onChange={(event) => setColour(event.currentTarget.value)}
          >
            {(about.colours ?? []).map((name) => (
              <option key={name} value={name}>
                {NAMES[name]}
              </option>
            ))}
          </select>
        </label>
        <form
          class="question"
          onSubmit={(event) => {
            event.preventDefault();
            void spread();
          }}
        >
          <label>
            Trace spreading activation
            <input
              type="text"
              dir="auto"
              value={question}
              disabled={!!offline}
              placeholder="Enter a query"
              onInput={(event) => setQuestion(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || event.isComposing) return;
                event.preventDefault(); // JupyterLab does not submit a form on Enter.
                if (question.trim()) void spread();
              }}
            />
          </label>
          <button type="submit" class="primary" disabled={!!offline || !question.trim()}>
            Trace
          </button>
        </form>
        <button
          type="button"
          aria-label="Refresh"
          title="Refresh"
          disabled={!!offline}
          onClick={() => ask("refresh")}
        >
          ↻
        </button>
      </div>
      {offline && <p class="note">{offline}</p>}
      <p class="note about" aria-live="polite">
        {summarize(about)}
        {ids.length > 0 && (
          <button
            type="button"
            class="plain chip"
            onClick={() => setIds([])}
          >{`${ids.length.toLocaleString("en")} selected ✕`}</button>
        )}
      </p>
      {about.shown > 0 ? (
        <div class={neighbourhood || ids.length ? "both" : "alone"}>
          <div class="left">
            <Scatter
              points={points}
              shades={shades}
              ids={ids}
              pick={setIds}
              focus={focus}
              setFocus={setFocus}
              joined={joined}
              marks={marks}
              regions={about.regions ?? NO_REGIONS}
              theme={theme}
            />
            <Key legend={legend} pick={selectWord} />
          </div>
          {!neighbourhood && ids.length > 0 && <Selected ids={ids} look={setFocus} />}
          {neighbourhood && (
            <section class="near" aria-label="Neighbourhood">
              {details && !neighbourhood.question && (
                <div class="focus">
                  <FoldedText text={details.text} />
                  <p class="note">{`#${details.id} · ${visible(details.kind)} · ${details.status} · ${details.created}`}</p>
                </div>
              )}
              {neighbourhood.question && (
                <Steps
                  neighbourhood={neighbourhood}
                  step={step}
                  steps={steps}
                  setStep={setStep}
                  active={active!}
                />
              )}
              <Graph
                nodes={neighbourhood.nodes}
                edges={neighbourhood.edges}
                active={active}
                seeds={seeds}
                look={setFocus}
              />
              <label class="most">
                {`At most ${most.toLocaleString("en")} nodes${neighbourhood.cut ? " (more exist)" : ""}`}
                <input
                  type="range"
                  min={20}
                  max={2000}
                  step={20}
                  value={most}
                  disabled={!!offline}
                  onInput={(event) => setMost(Number(event.currentTarget.value))}
                />
              </label>
              {!neighbourhood.question && (
                <Neighbours neighbourhood={neighbourhood} look={setFocus} />
              )}
              <button
                type="button"
                class="plain close"
                aria-label="Close the neighbourhood"
                onClick={() => {
                  setNeighbourhood(null);
                  setFocus(0);
                }}
              >
                ✕
              </button>
            </section>
          )}
        </div>
      ) : (
        <p class="empty">This lab has no memories yet: lab.remember("…") stores one.</p>
      )}
    </div>
  );
}

// Texts beside a lasso, as many as Python answers at once.
const LISTED = 50;

/** The texts of the selected memories; a click on a number opens its neighbourhood. */
function Selected({ ids, look }: { ids: number[]; look: (id: number) => void }) {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [texts, setTexts] = useState<Seen[]>([]);
  const read = useLatest(async (memories: number[]) =>
    setTexts(rows<Seen>((await ask<{ rows: Table }>("look", { memories }))?.rows)),
  );
  useEffect(() => {
    if (!offline) read(ids.slice(0, LISTED));
  }, [ids]);
  return (
    <section class="near selected" aria-label="Selected memories">
      <p class="note">
        {ids.length > LISTED
          ? `The first ${LISTED} texts of the selection`
          : "Texts of the selection"}
      </p>
      <ul>
        {texts.map((seen) => (
          <li key={seen.id}>
            <button
              type="button"
              class="plain"
              title="Show its neighbourhood"
              onClick={() => look(seen.id)}
            >{`#${seen.id}`}</button>
            <span>
              <FoldedText text={seen.text} />
              <span class="note">
                {seen.speaker && `${visible(seen.speaker)} · `}
                {seen.created}
              </span>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Key({ legend, pick }: { legend: Legend; pick: (code: number) => void }) {
  return (
    <div class="legend" role="group" aria-label="Legend">
      {legend.words?.map(([word, count], code) => (
        <button
          key={word}
          type="button"
          class="plain"
          title="Select these memories"
          onClick={() => pick(code)}
        >
          <b style={{ color: code < 7 ? `var(--c${code})` : "var(--rest)" }}>{SHAPES[code]}</b>
          <span>{clip(visible(word), 30)}</span>{" "}
          <span class="note">{count.toLocaleString("en")}</span>
        </button>
      ))}
      {legend.ends && (
        <span class="scale">
          <i>●</i> {legend.ends[0]} <span class="ramp" /> {legend.ends[1]} <em>●</em>
        </span>
      )}
      {legend.none > 0 && (
        <span class="none">
          <b style={{ color: "var(--rest)" }}>·</b> {legend.named ?? "none"}{" "}
          <span class="note">{legend.none.toLocaleString("en")}</span>
        </span>
      )}
      {legend.colour === "cluster" && !legend.words?.length && (
        <span class="note">No clusters yet. Run lab.graph.clusters.find() to compute them.</span>
      )}
    </div>
  );
}

function Steps({
  neighbourhood,
  step,
  steps,
  setStep,
  active,
}: {
  neighbourhood: Neighbourhood;
  step: number;
  steps: number;
  setStep: (step: number) => void;
  active: Map<number, number>;
}) {
  const best = [...active].sort((a, b) => b[1] - a[1]).slice(0, 6);
  return (
    <div class="steps">
      <label>
        {`Step ${step} of ${steps}: ${step ? `${plural(active.size, "active node")} in this graph` : "the results of the query"}`}
        <input
          type="range"
          min={0}
          max={steps}
          value={step}
          onInput={(event) => setStep(Number(event.currentTarget.value))}
        />
      </label>
      <ol>
        {best.map(([node, amount]) => (
          <li key={node}>
            <span class="number">{num(amount, 2)}</span>{" "}
            <UserText text={clip(neighbourhood.nodes[node]!.name, 46)} />
          </li>
        ))}
      </ol>
      {neighbourhood.beyond! > 0 && step === steps && (
        <p class="note">{`${plural(neighbourhood.beyond!, "more active node")} outside this graph.`}</p>
      )}
    </div>
  );
}

/** The neighbours in the graph as a list, which a screen reader can read. */
function Neighbours({
  neighbourhood,
  look,
}: {
  neighbourhood: Neighbourhood;
  look: (id: number) => void;
}) {
  const [seed] = neighbourhood.seeds;
  const seedIndex = neighbourhood.nodes.findIndex(
    (node) => node.kind === "memory" && node.id === seed,
  );
  const joined = neighbourhood.edges.filter(
    (edge) => edge.source === seedIndex || edge.target === seedIndex,
  );
  return (
    <ul class="beside" aria-label="Neighbours">
      {joined.slice(0, 12).map((edge, index) => {
        const node = neighbourhood.nodes[edge.source === seedIndex ? edge.target : edge.source]!;
        const arrow = edge.relation === "near" ? "" : edge.source === seedIndex ? " →" : " ←";
        return (
          <li key={index}>
            <span class="note">{`${edge.relation}${arrow} ${num(edge.weight, 2)}`}</span>{" "}
            {node.kind === "memory" ? (
              <button type="button" class="plain" onClick={() => look(node.id)}>
                <UserText text={clip(node.name, 60)} />
              </button>
            ) : (
              <UserText text={clip(node.name, 60)} />
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** Return the theme of the widget, so that the canvas is drawn again when it changes. */
function useTheme(root: { current: HTMLElement | null }): string {
  const [theme, setTheme] = useState("");
  useEffect(() => {
    const frame = root.current!.closest<HTMLElement>(".memlab")!;
    const follow = () => setTheme(frame.dataset.theme ?? "");
    const observer = new MutationObserver(follow);
    observer.observe(frame, { attributes: true, attributeFilter: ["data-theme"] });
    follow();
    return () => observer.disconnect();
  }, []);
  return theme;
}

function summarize(about: About): string {
  const all = plural(about.memories, "memory", "memories");
  const part =
    about.shown < about.memories
      ? `an even sample of ${about.shown.toLocaleString("en")} of ${all}`
      : all;
  const explanation =
    about.kept === null || about.kept === undefined
      ? "nearby points are similar; long distances are not meaningful"
      : `PCA, ${Math.round(100 * about.kept)}% of variance explained`;
  return `${part} · ${explanation}`;
}

export default widget("Memory map", MemoryMap, css);
