/** The graph around a memory, or around the results of a query. Nodes have shapes by their kind. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { clip, visible } from "../shared/text";
import { Force, type Net } from "./force";

export type Node = { kind: string; id: number; name: string; hops: number };
export type Edge = { source: number; target: number; relation: string; weight: number };
const MARKS: Record<string, string> = { memory: "●", tag: "■", cluster: "◆", entity: "▲" };
const DRAWN = 340; // Steps after which the layout no longer moves.

export function Graph({
  nodes,
  edges,
  active,
  seeds,
  look,
}: {
  nodes: Node[];
  edges: Edge[];
  active: Map<number, number> | null;
  seeds: Set<number>;
  look: (id: number) => void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState(-1);
  const [rate, setRate] = useState(0);
  const force = useMemo(() => {
    const net: Net = {
      count: nodes.length,
      source: edges.map((edge) => edge.source),
      target: edges.map((edge) => edge.target),
      weight: edges.map((edge) => edge.weight),
      hops: nodes.map((node) => node.hops),
    };
    return new Force(net);
  }, [nodes, edges]);
  const state = useRef({ hover, active });
  state.current = { hover, active };
  const viewport = useRef({ scale: 1, x: 0, y: 0 });

  const draw = () => {
    const el = canvas.current;
    if (!el) return;
    const [width, height, ratio] = [el.clientWidth, el.clientHeight, devicePixelRatio];
    if (el.width !== Math.round(width * ratio))
      [el.width, el.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const css = getComputedStyle(el);
    const colour = (name: string) => css.getPropertyValue(name);
    const pen = el.getContext("2d")!;
    const [left, top, right, bottom] = force.box();
    const scale = Math.min(2, (width - 60) / (right - left), (height - 40) / (bottom - top));
    viewport.current = {
      scale,
      x: width / 2 - ((left + right) / 2) * scale,
      y: height / 2 - ((top + bottom) / 2) * scale,
    };
    const toScreen = (node: number): [number, number] => [
      force.x[node]! * scale + viewport.current.x,
      force.y[node]! * scale + viewport.current.y,
    ];
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const drawEdges = (
      isDrawn: (edge: Edge) => boolean,
      stroke: string,
      dash: number[],
      alpha: number,
      line = 1,
    ) => {
      pen.beginPath();
      for (const edge of edges) {
        if (!isDrawn(edge)) continue;
        pen.moveTo(...toScreen(edge.source));
        pen.lineTo(...toScreen(edge.target));
      }
      pen.strokeStyle = stroke;
      pen.globalAlpha = alpha;
      pen.lineWidth = line;
      pen.setLineDash(dash);
      pen.stroke();
    };
    const bold = (edge: Edge) => edge.relation === "contradicts";
    drawEdges((edge) => edge.relation !== "near" && !bold(edge), colour("--soft"), [], 0.45);
    drawEdges((edge) => edge.relation === "near", colour("--soft"), [3, 3], 0.6);
    drawEdges(bold, colour("--bad"), [], 0.9, 2);
    const { hover: over, active: now } = state.current;
    if (over >= 0)
      drawEdges(
        (edge) => edge.source === over || edge.target === over,
        colour("--accent"),
        [],
        1,
        1.5,
      );
    pen.setLineDash([]);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const colours: Record<string, string> = {
      memory: colour("--c0"),
      tag: colour("--c1"),
      cluster: colour("--c2"),
      entity: colour("--c3"),
    };
    const small = nodes.length > 400 ? 0.6 : 1;
    nodes.forEach((node, index) => {
      const [x, y] = toScreen(index);
      const amount = now?.get(index) ?? 0;
      const radius =
        small * (now ? 3 + 9 * Math.sqrt(Math.min(1, amount)) : seeds.has(index) ? 8 : 5);
      pen.globalAlpha = now && !amount ? 0.3 : 1;
      pen.fillStyle = now && amount ? colour("--warm") : colours[node.kind]!;
      pen.beginPath();
      if (node.kind === "memory") pen.arc(x, y, radius, 0, 7);
      else if (node.kind === "tag") pen.rect(x - radius, y - radius, 2 * radius, 2 * radius);
      else {
        pen.moveTo(x, y - 1.3 * radius);
        pen.lineTo(x + 1.2 * radius, y + (node.kind === "cluster" ? 0 : radius));
        if (node.kind === "cluster") pen.lineTo(x, y + 1.3 * radius);
        pen.lineTo(x - 1.2 * radius, y + (node.kind === "cluster" ? 0 : radius));
      }
      pen.fill();
      if (seeds.has(index) || index === over) {
        pen.globalAlpha = 1;
        pen.lineWidth = 2;
        pen.strokeStyle = colour("--ink");
        pen.stroke();
      }
    });
    pen.globalAlpha = 1;
    pen.font = "11px system-ui, sans-serif";
    pen.lineJoin = "round";
    const crowded = nodes.filter((node) => node.kind !== "memory").length > 14;
    nodes.forEach((node, index) => {
      if (index !== over && !seeds.has(index) && (node.kind === "memory" || crowded)) return;
      const [x, y] = toScreen(index);
      const text = clip(visible(node.name).replaceAll("\n", " "), index === over ? 60 : 26);
      const half = pen.measureText(text).width / 2;
      const middle = Math.max(half + 4, Math.min(width - half - 4, x));
      pen.lineWidth = 3;
      pen.strokeStyle = colour("--card");
      pen.fillStyle = colour("--ink");
      pen.strokeText(text, middle, y - 14);
      pen.fillText(text, middle, y - 14);
    });
  };

  useEffect(() => {
    let step = 0;
    const began = performance.now();
    let frame = requestAnimationFrame(function next() {
      force.step();
      if (nodes.length < 400) force.step();
      draw();
      step++;
      if (step % 30 === 0) setRate(Math.round((1000 * step) / (performance.now() - began)));
      if (step < DRAWN) frame = requestAnimationFrame(next);
    });
    return () => cancelAnimationFrame(frame);
  }, [force]);
  useEffect(draw);

  const find = (event: PointerEvent) => {
    const corner = canvas.current!.getBoundingClientRect();
    const { scale, x, y } = viewport.current;
    let [best, smallest] = [-1, 144]; // A click within 12 pixels of a node selects it.
    for (let node = 0; node < nodes.length; node++) {
      const square =
        (force.x[node]! * scale + x - event.clientX + corner.left) ** 2 +
        (force.y[node]! * scale + y - event.clientY + corner.top) ** 2;
      if (square < smallest) [best, smallest] = [node, square];
    }
    return best;
  };
  return (
    <>
      <canvas
        ref={canvas}
        class="graph"
        role="img"
        data-rate={rate}
        aria-label={`Graph of ${nodes.length} nodes and ${edges.length} edges; the nearest are listed below`}
        onPointerMove={(event) => setHover(find(event))}
        onPointerLeave={() => setHover(-1)}
        onClick={(event) => {
          const node = nodes[find(event as unknown as PointerEvent)];
          if (node?.kind === "memory") look(node.id);
        }}
      />
      <p class="note key">
        {[...new Set(nodes.map((node) => node.kind))].map((kind) => (
          <span key={kind}>
            <b class={`of-${kind}`}>{MARKS[kind]}</b> {kind}{" "}
          </span>
        ))}
        {edges.some((edge) => edge.relation === "near") && (
          <span>
            <b>┄</b> similar{" "}
          </span>
        )}
        {edges.some((edge) => edge.relation === "contradicts") && (
          <span class="bad">
            <b>━</b> contradicts
          </span>
        )}
      </p>
    </>
  );
}
