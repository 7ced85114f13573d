/** Memory map: memories as points by meaning, a lasso, the neighbourhood of one, and the spreading of a question. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { rows, type Table } from "../shared/table";
import { clip, num, plural, Said, visible } from "../shared/text";
import { useAsk, useLatest, useStill, useTable, useTrait, widget } from "../shared/widget";
import { SHAPES } from "./draw";
import { type Edge, Graph, type Node } from "./graph";
import css from "./map.css";
import { type Mark, Scatter, type Seen } from "./scatter";

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
};
type Near = {
  nodes: Node[];
  edges: Edge[];
  cut: boolean;
  seeds: number[];
  active?: { step: number; node: number; activation: number }[];
  beyond?: number;
  question?: string;
};
const NAMES: Record<string, string> = {
  kind: "kind",
  status: "status",
  cluster: "cluster",
  retention: "retention",
  recalled: "last recall",
};

function MemoryMap() {
  const ask = useAsk();
  const still = useStill();
  const points = useTable("_points");
  const shades = useTable("_shades");
  const [about] = useTrait<About>("_about");
  const [colour, setColour] = useTrait<string>("colour");
  const [ids, setIds] = useTrait<number[]>("ids");
  const [focus, setFocus] = useTrait<number>("focus");
  const [near, setNear] = useState<Near | null>(null);
  const [seen, setSeen] = useState<Seen | null>(null);
  const [most, setMost] = useState(60);
  const [question, setQuestion] = useState("");
  const [step, setStep] = useState(0);
  const root = useRef<HTMLDivElement>(null);
  const theme = useTheme(root);
  const legend = about.legend ?? { none: 0 };

  const look = useLatest(async (memory: number, most: number) => {
    if (!memory) {
      setSeen(null);
      return setNear((now) => (now?.question ? now : null));
    }
    const [told, found] = await Promise.all([
      ask<{ rows: Table }>("look", { memories: [memory] }),
      ask<{ nodes: Table; edges: Table; cut: boolean }>("graph", { seeds: memory, most }),
    ]);
    setSeen(rows<Seen>(told?.rows)[0] ?? null);
    if (found)
      setNear({
        nodes: rows<Node>(found.nodes),
        edges: rows<Edge>(found.edges),
        cut: found.cut,
        seeds: [memory],
      });
  });
  useEffect(() => {
    if (!still) look(focus, most);
  }, [focus, most, about.event]);
  const spread = async () => {
    const found = await ask<any>("spread", { question, most });
    if (!found) return;
    setSeen(null);
    setFocus(0);
    setStep(0);
    setNear({
      ...found,
      nodes: rows<Node>(found.nodes),
      edges: rows<Edge>(found.edges),
      active: rows(found.active),
      question,
    });
  };

  const active = useMemo(() => {
    if (!near?.active) return null;
    return new Map(
      near.active.filter((one) => one.step === step).map((one) => [one.node, one.activation]),
    );
  }, [near, step]);
  const seeds = useMemo(
    () =>
      new Set(
        near?.seeds.map((id) =>
          near.nodes.findIndex((node) => node.kind === "memory" && node.id === id),
        ),
      ),
    [near],
  );
  const marks = useMemo<Mark[]>(() => {
    const top = Math.max(...(active?.values() ?? []), 1e-9);
    return near && active
      ? [...active]
          .filter(([node]) => near.nodes[node]!.kind === "memory")
          .map(([node, amount]) => ({ id: near.nodes[node]!.id, amount: amount / top }))
      : [];
  }, [near, active]);
  const joined = useMemo<[number, number][]>(() => {
    if (!near) return [];
    const memory = (node: Node | undefined) => node?.kind === "memory";
    return near.edges
      .filter(
        (edge) =>
          memory(near.nodes[edge.source]) &&
          memory(near.nodes[edge.target]) &&
          (near.question || seeds.has(edge.source) || seeds.has(edge.target)),
      )
      .map((edge) => [near.nodes[edge.source]!.id, near.nodes[edge.target]!.id]);
  }, [near, seeds]);
  const labels = useMemo(
    () =>
      legend.colour === "cluster" ? (legend.words ?? []).slice(0, 7).map(([word]) => word) : [],
    [legend],
  );
  const pickWord = (place: number) => {
    const places = shades?.getChild("place").toArray() as ArrayLike<number>;
    const all = points?.getChild("id").toArray() as ArrayLike<number>;
    setIds(Array.from(all).filter((_, at) => places[at] === place));
  };
  const steps = near?.active ? Math.max(...near.active.map((one) => one.step)) : 0;

  return (
    <div class="map" ref={root}>
      <div class="tools">
        <label>
          Colour
          <select
            value={colour}
            disabled={!!still}
            onChange={(event) => setColour(event.currentTarget.value)}
          >
            {(about.colours ?? []).map((one) => (
              <option key={one} value={one}>
                {NAMES[one]}
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
            Spread a question
            <input
              type="text"
              dir="auto"
              value={question}
              disabled={!!still}
              placeholder="What activates what?"
              onInput={(event) => setQuestion(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || event.isComposing) return;
                event.preventDefault(); // JupyterLab submits no form on Enter
                if (question.trim()) void spread();
              }}
            />
          </label>
          <button type="submit" class="primary" disabled={!!still || !question.trim()}>
            Spread
          </button>
        </form>
        <button
          type="button"
          aria-label="Read the lab again"
          title="Read the lab again"
          disabled={!!still}
          onClick={() => ask("refresh")}
        >
          ↻
        </button>
      </div>
      {still && <p class="note">{still}</p>}
      <p class="note about" aria-live="polite">
        {summary(about)}
        {ids.length > 0 && (
          <button
            type="button"
            class="plain chip"
            onClick={() => setIds([])}
          >{`${ids.length.toLocaleString("en")} selected ✕`}</button>
        )}
      </p>
      {about.shown > 0 ? (
        <div class={near ? "both" : "alone"}>
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
              labels={labels}
              theme={theme}
            />
            <Key legend={legend} pick={pickWord} />
          </div>
          {near && (
            <section class="near" aria-label="Neighbourhood">
              {seen && !near.question && (
                <div class="focus">
                  <Said text={seen.text} />
                  <p class="note">{`#${seen.id} · ${visible(seen.kind)} · ${seen.status} · ${seen.created}`}</p>
                </div>
              )}
              {near.question && (
                <Steps near={near} step={step} steps={steps} setStep={setStep} active={active!} />
              )}
              <Graph
                nodes={near.nodes}
                edges={near.edges}
                active={active}
                seeds={seeds}
                look={setFocus}
              />
              <label class="most">
                {`At most ${most.toLocaleString("en")} nodes${near.cut ? " (there are more)" : ""}`}
                <input
                  type="range"
                  min={20}
                  max={2000}
                  step={20}
                  value={most}
                  disabled={!!still}
                  onInput={(event) => setMost(Number(event.currentTarget.value))}
                />
              </label>
              {!near.question && <Neighbours near={near} look={setFocus} />}
              <button
                type="button"
                class="plain close"
                aria-label="Close the neighbourhood"
                onClick={() => {
                  setNear(null);
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

function Key({ legend, pick }: { legend: Legend; pick: (place: number) => void }) {
  return (
    <div class="legend" role="group" aria-label="Legend">
      {legend.words?.map(([word, count], place) => (
        <button
          key={word}
          type="button"
          class="plain"
          title="Select these"
          onClick={() => pick(place)}
        >
          <b style={{ color: place < 7 ? `var(--c${place})` : "var(--rest)" }}>{SHAPES[place]}</b>
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
        <span class="note">No clusters were found yet: lab.clusters.find() looks for them.</span>
      )}
    </div>
  );
}

function Steps({
  near,
  step,
  steps,
  setStep,
  active,
}: {
  near: Near;
  step: number;
  steps: number;
  setStep: (step: number) => void;
  active: Map<number, number>;
}) {
  const best = [...active].sort((a, b) => b[1] - a[1]).slice(0, 6);
  return (
    <div class="steps">
      <label>
        {`Step ${step} of ${steps}: ${step ? `${plural(active.size, "node")} active here` : "the hits of the question"}`}
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
            <Said text={clip(near.nodes[node]!.name, 46)} />
          </li>
        ))}
      </ol>
      {near.beyond! > 0 && step === steps && (
        <p class="note">{`${plural(near.beyond!, "active node")} more lie outside of this picture.`}</p>
      )}
    </div>
  );
}

/** What the graph draws, as a list: the same for whom no picture helps. */
function Neighbours({ near, look }: { near: Near; look: (id: number) => void }) {
  const [seed] = near.seeds;
  const own = near.nodes.findIndex((node) => node.kind === "memory" && node.id === seed);
  const beside = near.edges.filter((edge) => edge.source === own || edge.target === own);
  return (
    <ul class="beside" aria-label="Joined to it">
      {beside.slice(0, 12).map((edge, at) => {
        const node = near.nodes[edge.source === own ? edge.target : edge.source]!;
        const arrow = edge.relation === "near" ? "" : edge.source === own ? " →" : " ←";
        return (
          <li key={at}>
            <span class="note">{`${edge.relation}${arrow} ${num(edge.weight, 2)}`}</span>{" "}
            {node.kind === "memory" ? (
              <button type="button" class="plain" onClick={() => look(node.id)}>
                <Said text={clip(node.name, 60)} />
              </button>
            ) : (
              <Said text={clip(node.name, 60)} />
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** The theme of the widget, so that what is drawn follows it. */
function useTheme(root: { current: HTMLElement | null }): string {
  const [theme, setTheme] = useState("");
  useEffect(() => {
    const frame = root.current!.closest<HTMLElement>(".memlab")!;
    const follow = () => setTheme(frame.dataset.theme ?? "");
    const watch = new MutationObserver(follow);
    watch.observe(frame, { attributes: true, attributeFilter: ["data-theme"] });
    follow();
    return () => watch.disconnect();
  }, []);
  return theme;
}

function summary(about: About): string {
  const all = plural(about.memories, "memory", "memories");
  const part =
    about.shown < about.memories
      ? `an even sample of ${about.shown.toLocaleString("en")} of ${all}`
      : all;
  const kept =
    about.kept === null || about.kept === undefined
      ? "nearby points have similar meanings; distances across the map mean little"
      : `PCA, ${Math.round(100 * about.kept)}% of variance explained`;
  return `${part} · ${kept}`;
}

export default widget("Memory map", MemoryMap, css);
