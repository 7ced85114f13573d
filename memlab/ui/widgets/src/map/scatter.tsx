/** The map: points to pan, zoom, inspect and lasso, with the selection, its edges and the activation above them. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { rows, type Table } from "../shared/table";
import { clip, UserText, visible } from "../shared/text";
import { useAsk, useLatest, useOfflineReason } from "../shared/widget";
import { type Cloud, type Drawer, drawer, type Ink, MOST_PLAIN, type View } from "./draw";
import { nearest, parseColour, selectWithin } from "./places";

export type Seen = {
  id: number;
  text: string;
  kind: string;
  status: string;
  speaker: string | null;
  created: string;
};
export type Mark = { id: number; amount: number };
/** Words that set a region apart, and their position. */
export type Region = [words: string, x: number, y: number];
type Props = {
  points: Table | null;
  shades: Table | null;
  ids: number[];
  pick: (ids: number[]) => void;
  focus: number;
  setFocus: (id: number) => void;
  joined: [number, number][];
  marks: Mark[];
  regions: Region[];
  theme: string;
};
const WHOLE: View = { x: 0, y: 0, scale: 0.94 };

export function Scatter({
  points,
  shades,
  ids,
  pick,
  focus,
  setFocus,
  joined,
  marks,
  regions,
  theme,
}: Props) {
  const ask = useAsk();
  const offline = useOfflineReason();
  const base = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const drawn = useRef<Drawer | null>(null);
  const [kind, setKind] = useState("");
  const [size, setSize] = useState<[number, number]>([0, 0]);
  const [view, setView] = useState<View>(WHOLE);
  const [lassoing, setLassoing] = useState(false);
  const [path, setPath] = useState<[number, number][] | null>(null);
  const [hover, setHover] = useState<{ seen: Seen; x: number; y: number } | null>(null);
  const dragStart = useRef<{ x: number; y: number; view: View; moved: boolean } | null>(null);

  const coordinates = useMemo(
    () => ({
      id: (points?.getChild("id")?.toArray() ?? new Int32Array(0)) as Int32Array,
      x: (points?.getChild("x")?.toArray() ?? new Float32Array(0)) as Float32Array,
      y: (points?.getChild("y")?.toArray() ?? new Float32Array(0)) as Float32Array,
    }),
    [points],
  );
  const indexOf = useMemo(
    () => new Map(Array.from(coordinates.id, (id, index) => [id, index])),
    [coordinates],
  );
  const cloud = useMemo<Cloud>(() => {
    const count = coordinates.id.length;
    const fits = shades?.numRows === count;
    const picked = new Uint8Array(count);
    for (const id of ids) if (indexOf.has(id)) picked[indexOf.get(id)!] = 1;
    return {
      x: coordinates.x,
      y: coordinates.y,
      picked,
      some: ids.length > 0,
      place: fits
        ? Uint8Array.from(shades!.getChild("place").toArray() as ArrayLike<number>)
        : new Uint8Array(count).fill(255),
      value: fits
        ? Float32Array.from(shades!.getChild("value").toArray() as ArrayLike<number>)
        : new Float32Array(count).fill(NaN),
    };
  }, [coordinates, shades, ids]);

  useEffect(() => {
    try {
      drawn.current = drawer(base.current!);
    } catch {
      // The graphics card compiles no shader. Its context stays with the canvas, so another canvas is needed.
      const plain = base.current!.cloneNode() as HTMLCanvasElement;
      plain.getContext("2d");
      base.current!.replaceWith(plain);
      base.current = plain;
      drawn.current = drawer(plain);
    }
    setKind(drawn.current.kind);
    const observer = new ResizeObserver(([entry]) =>
      setSize([entry!.contentRect.width, entry!.contentRect.height]),
    );
    observer.observe(box.current!);
    return () => {
      observer.disconnect();
      drawn.current?.close();
    };
  }, []);
  useEffect(() => {
    if (!kind) return;
    const css = getComputedStyle(box.current!);
    const ink: Ink = {
      places: [0, 1, 2, 3, 4, 5, 6]
        .map((index) => parseColour(css.getPropertyValue(`--c${index}`)))
        .concat([parseColour(css.getPropertyValue("--rest"))]),
      low: parseColour(css.getPropertyValue("--low")),
      high: parseColour(css.getPropertyValue("--high")),
      none: parseColour(css.getPropertyValue("--rest")),
    };
    drawn.current!.load(cloud, ink);
  }, [cloud, kind, theme]);
  useEffect(() => {
    if (!kind || !size[0]) return;
    const frame = requestAnimationFrame(() => {
      const ratio = devicePixelRatio;
      for (const canvas of [base.current!, over.current!]) {
        const [width, height] = size.map((length) => Math.round(length * ratio)) as [
          number,
          number,
        ];
        if (canvas.width !== width || canvas.height !== height)
          [canvas.width, canvas.height] = [width, height];
      }
      drawn.current!.draw(view);
      annotate();
    });
    return () => cancelAnimationFrame(frame);
  });

  // Both axes fill the panel: their units differ anyway.
  const [wide, high] = [(view.scale * size[0]) / 2, (view.scale * size[1]) / 2];
  const onto = (x: number, y: number): [number, number] => [
    size[0] / 2 + (x - view.x) * wide,
    size[1] / 2 - (y - view.y) * high,
  ];
  const back = (px: number, py: number): [number, number] => [
    (px - size[0] / 2) / wide + view.x,
    -(py - size[1] / 2) / high + view.y,
  ];

  function annotate() {
    const pen = over.current!.getContext("2d")!;
    const css = getComputedStyle(box.current!);
    const ink = css.getPropertyValue("--ink");
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, ...size);
    pen.lineWidth = 1;
    pen.strokeStyle = ink;
    pen.globalAlpha = 0.5;
    for (const [a, b] of joined) {
      const [from, to] = [indexOf.get(a), indexOf.get(b)];
      if (from === undefined || to === undefined) continue;
      pen.beginPath();
      pen.moveTo(...onto(coordinates.x[from]!, coordinates.y[from]!));
      pen.lineTo(...onto(coordinates.x[to]!, coordinates.y[to]!));
      pen.stroke();
    }
    pen.globalAlpha = 0.95;
    pen.lineWidth = 2;
    for (const { id, amount } of marks)
      ring(id, 5 + 13 * Math.sqrt(amount), css.getPropertyValue("--warm"));
    if (focus) ring(focus, 9, ink);
    pen.globalAlpha = 1;
    drawLabels(pen, ink, css.getPropertyValue("--card"));
    if (path) {
      pen.lineWidth = 1.5;
      pen.setLineDash([5, 3]);
      pen.beginPath();
      for (const [step, [x, y]] of path.entries()) step ? pen.lineTo(x, y) : pen.moveTo(x, y);
      pen.closePath();
      pen.strokeStyle = ink;
      pen.stroke();
      pen.globalAlpha = 0.08;
      pen.fillStyle = ink;
      pen.fill();
      pen.setLineDash([]);
      pen.globalAlpha = 1;
    }
    function ring(id: number, radius: number, colour: string) {
      const index = indexOf.get(id);
      if (index === undefined) return;
      pen.beginPath();
      pen.arc(...onto(coordinates.x[index]!, coordinates.y[index]!), radius, 0, 2 * Math.PI);
      pen.strokeStyle = colour;
      pen.stroke();
    }
  }

  /** Write the words of each region at its median, unless another label is there. */
  function drawLabels(pen: CanvasRenderingContext2D, ink: string, card: string) {
    pen.font = "600 11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.lineWidth = 3;
    pen.lineJoin = "round";
    pen.strokeStyle = card;
    pen.fillStyle = ink;
    const taken: [number, number, number][] = [];
    for (const [words, left, above] of regions) {
      const text = clip(visible(words), 34);
      const [at, y] = onto(left, above);
      if (at < 0 || at > size[0]) continue;
      const half = pen.measureText(text).width / 2;
      const x = Math.max(half + 4, Math.min(size[0] - half - 4, at)); // No word is cut by the border.
      if (taken.some(([tx, ty, wide]) => Math.abs(ty - y) < 15 && Math.abs(tx - x) < wide + half))
        continue; // Zooming in makes room for it.
      taken.push([x, y, half]);
      pen.strokeText(text, x, y);
      pen.fillText(text, x, y);
    }
  }

  const look = useLatest(async (id: number, x: number, y: number) => {
    const answer = await ask<{ rows: Table }>("look", { memories: [id] });
    const [seen] = rows<Seen>(answer?.rows);
    if (seen) setHover({ seen, x, y });
  });
  const under = (event: PointerEvent): [number, number] => {
    const corner = box.current!.getBoundingClientRect();
    return [event.clientX - corner.left, event.clientY - corner.top];
  };
  const hit = (x: number, y: number) => nearest(coordinates, ...back(x, y), 14 / high, wide / high);
  const zoom = (by: number, x = size[0] / 2, y = size[1] / 2) => {
    const [cx, cy] = back(x, y);
    const scale = Math.max(0.5, Math.min(200, view.scale * by));
    setView({
      x: cx - (cx - view.x) * (view.scale / scale),
      y: cy - (cy - view.y) * (view.scale / scale),
      scale,
    });
  };
  const wheel = useRef(zoom);
  wheel.current = zoom;
  useEffect(() => {
    // Only a listener that is not passive may prevent the page from scrolling.
    const turned = (event: WheelEvent) => {
      if (!event.ctrlKey && document.activeElement !== box.current) return; // The page scrolls until the map has the focus.
      event.preventDefault();
      const corner = box.current!.getBoundingClientRect();
      wheel.current(
        Math.exp(-event.deltaY / 400),
        event.clientX - corner.left,
        event.clientY - corner.top,
      );
    };
    box.current!.addEventListener("wheel", turned, { passive: false });
    return () => box.current?.removeEventListener("wheel", turned);
  }, []);

  return (
    <div class="chart">
      <div class="tools" role="toolbar" aria-label="Map">
        <button
          type="button"
          aria-pressed={!lassoing}
          title="Drag to move the map, click to inspect a point"
          onClick={() => setLassoing(false)}
        >
          ✥ Move
        </button>
        <button
          type="button"
          aria-pressed={lassoing}
          title="Drag around points to select them (or hold Shift)"
          onClick={() => setLassoing(true)}
        >
          ◌ Lasso
        </button>
        <button type="button" aria-label="Zoom in" onClick={() => zoom(1.5)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => zoom(1 / 1.5)}>
          −
        </button>
        <button type="button" onClick={() => setView(WHOLE)}>
          Reset view
        </button>
      </div>
      <div
        class={lassoing ? "plane lassoing" : "plane"}
        ref={box}
        tabIndex={0}
        role="application"
        data-drawn={kind}
        aria-label="Map of memories: arrow keys move it, plus and minus zoom, Enter inspects the point nearest to the centre"
        onPointerDown={(event) => {
          const [x, y] = under(event);
          event.currentTarget.setPointerCapture(event.pointerId);
          setHover(null);
          if (lassoing || event.shiftKey) setPath([[x, y]]);
          else dragStart.current = { x, y, view, moved: false };
        }}
        onPointerMove={(event) => {
          const [x, y] = under(event);
          if (path) return setPath([...path, [x, y]]);
          const from = dragStart.current;
          if (from) {
            from.moved ||= Math.hypot(x - from.x, y - from.y) > 4;
            if (from.moved)
              setView({
                ...view,
                x: from.view.x - (x - from.x) / wide,
                y: from.view.y + (y - from.y) / high,
              });
            return;
          }
          const index = hit(x, y);
          if (index < 0 || offline) return setHover(null);
          if (hover?.seen.id !== coordinates.id[index]) look(coordinates.id[index]!, x, y);
        }}
        onPointerUp={(event) => {
          const [x, y] = under(event);
          if (path) {
            pick(
              path.length > 2
                ? selectWithin(
                    coordinates,
                    path.map(([px, py]) => back(px, py)),
                  )
                : [],
            );
            return setPath(null);
          }
          const moved = dragStart.current?.moved;
          dragStart.current = null;
          const index = hit(x, y);
          if (!moved) setFocus(index < 0 ? 0 : coordinates.id[index]!);
        }}
        onPointerLeave={() => setHover(null)}
        onKeyDown={(event) => {
          const by = {
            ArrowLeft: [-1, 0],
            ArrowRight: [1, 0],
            ArrowUp: [0, 1],
            ArrowDown: [0, -1],
          }[event.key];
          if (by)
            setView({
              ...view,
              x: view.x + (0.15 * by[0]!) / view.scale,
              y: view.y + (0.15 * by[1]!) / view.scale,
            });
          else if (event.key === "+" || event.key === "=") zoom(1.3);
          else if (event.key === "-") zoom(1 / 1.3);
          else if (event.key === "Enter") {
            const index = nearest(coordinates, view.x, view.y, 4);
            if (index >= 0) setFocus(coordinates.id[index]!);
          } else return;
          event.preventDefault();
        }}
      >
        <canvas ref={base} aria-hidden="true" />
        <canvas ref={over} aria-hidden="true" />
        {hover && (
          <div
            class="tip"
            style={{
              left: `${Math.min(hover.x + 12, size[0] - 250)}px`,
              top: `${hover.y > size[1] - 110 ? hover.y - 96 : hover.y + 14}px`,
            }}
          >
            <UserText text={clip(hover.seen.text, 160)} />
            <p class="note">{`#${hover.seen.id} · ${hover.seen.kind} · ${hover.seen.status} · ${hover.seen.created}`}</p>
          </div>
        )}
      </div>
      {kind === "canvas" && (
        <p class="notice">{`This browser draws no WebGL here, so the map is drawn without it${coordinates.id.length > MOST_PLAIN ? `. It shows an even sample of at most ${MOST_PLAIN.toLocaleString("en")} points; a lasso selects from all points` : ""}.`}</p>
      )}
    </div>
  );
}
