/** Every memory as a cell in the order of creation: paler with lower retention, and marked by its status. */
import { useEffect, useRef, useState } from "preact/hooks";
import { plural, UserText, visible } from "../shared/text";
import type { About, Frame, Memory } from "./types";

type Props = {
  title: string;
  side: 0 | 1;
  frame: Frame | undefined;
  about: About;
  memories: Map<number, Memory>;
  ids: number[];
  chosen: number[];
  touched: Set<number>;
  choose: (id: number) => void;
};

export const MARKS: Record<string, string> = {
  active: "active",
  staged: "staged (outline)",
  confirmed: "confirmed (ring)",
  superseded: "superseded (strike)",
  consolidated: "merged (two halves)",
  gone: "not recallable (dot)",
};
const GAP = 2;

export function Field({
  title,
  side,
  frame,
  about,
  memories,
  ids,
  chosen,
  touched,
  choose,
}: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(400);
  const [over, setOver] = useState<number | null>(null);
  const [theme, setTheme] = useState("");
  useEffect(() => {
    const box = canvas.current!.parentElement!;
    const sized = new ResizeObserver(() => setWidth(Math.max(120, Math.floor(box.clientWidth))));
    sized.observe(box);
    const root = canvas.current!.closest(".memlab") as HTMLElement;
    const themed = new MutationObserver(() => setTheme(root.dataset.theme ?? ""));
    themed.observe(root, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      sized.disconnect();
      themed.disconnect();
    };
  }, []);
  const size = Math.max(
    5,
    Math.min(22, Math.floor(Math.sqrt((width * 190) / Math.max(1, ids.length))) - GAP),
  );
  const columns = Math.max(1, Math.floor(width / (size + GAP)));
  const height = Math.max(1, Math.ceil(ids.length / columns)) * (size + GAP);
  const place = new Map(ids.map((id, at) => [id, at]));

  useEffect(() => {
    const context = canvas.current!.getContext("2d")!;
    const style = getComputedStyle(canvas.current!);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const [full, soft, line, warm, ink, other, rest] = [
      "--accent",
      "--soft",
      "--line",
      "--warm",
      "--ink",
      "--c2",
      "--rest",
    ].map(colour) as string[];
    const sharp = devicePixelRatio || 1;
    Object.assign(canvas.current!, { width: width * sharp, height: height * sharp });
    context.scale(sharp, sharp);
    const toCorner = (id: number): [number, number] => {
      const cell = place.get(id)!;
      return [(cell % columns) * (size + GAP), Math.floor(cell / columns) * (size + GAP)];
    };
    context.fillStyle = line!;
    for (const id of ids)
      context.fillRect(toCorner(id)[0] + size / 2 - 0.5, toCorner(id)[1] + size / 2 - 0.5, 1, 1);
    for (let row = 0; frame && row < frame.ids.length; row++) {
      const id = frame.ids[row]!;
      if (!place.has(id)) continue;
      const [x, y] = toCorner(id);
      const status = about.statuses[frame.status[side][row]!]!;
      context.clearRect(x - 1, y - 1, size + 2, size + 2);
      if (status === "active" || status === "confirmed") {
        // The border keeps a faded memory visible as a cell.
        context.globalAlpha = 0.6;
        context.lineWidth = 1;
        context.strokeStyle = rest!;
        context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      }
      context.globalAlpha = 0.15 + 0.85 * (frame.keep[side][row]! / 255);
      context.fillStyle = full!;
      context.strokeStyle = full!;
      context.lineWidth = 1.5;
      if (status === "active") context.fillRect(x, y, size, size);
      else if (status === "staged") context.strokeRect(x + 1, y + 1, size - 2, size - 2);
      else if (status === "confirmed") {
        context.fillRect(x, y, size, size);
        context.globalAlpha = 1;
        context.strokeStyle = other!;
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, size - 2, size - 2);
      } else if (status === "superseded") {
        context.globalAlpha = 1;
        context.strokeStyle = warm!;
        context.strokeRect(x + 1, y + 1, size - 2, size - 2);
        context.beginPath();
        context.moveTo(x + 1, y + size - 1);
        context.lineTo(x + size - 1, y + 1);
        context.stroke();
      } else if (status === "consolidated") {
        context.globalAlpha = 1;
        context.fillStyle = other!;
        context.fillRect(x, y, size, size * 0.45);
        context.fillRect(x, y + size * 0.55, size, size * 0.45);
      } else {
        context.globalAlpha = 1;
        context.fillStyle = soft!;
        context.beginPath();
        context.arc(x + size / 2, y + size / 2, Math.max(1.2, size / 8), 0, 7);
        context.fill();
      }
      context.globalAlpha = 1;
      if (touched.has(id) || chosen.includes(id) || id === over) {
        context.strokeStyle = touched.has(id) ? warm! : ink!;
        context.lineWidth = 2;
        context.strokeRect(x - 0.5, y - 0.5, size + 1, size + 1);
      }
    }
  });

  const pick = (event: MouseEvent): number | null => {
    const box = canvas.current!.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / (size + GAP));
    const id = ids[Math.floor((event.clientY - box.top) / (size + GAP)) * columns + column];
    return column < columns &&
      id !== undefined &&
      Array.prototype.includes.call(frame?.ids ?? [], id)
      ? id
      : null;
  };
  const counts = new Map<string, number>();
  for (const code of Array.from(frame?.status[side] ?? [])) {
    const word = about.statuses[code]!;
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const left = frame?.ids.length
    ? Array.from(frame.keep[side]).reduce((sum, byte) => sum + byte, 0) / frame.ids.length / 255
    : null;
  const summary =
    [...counts].map(([word, many]) => `${many} ${word}`).join(", ") || "no memories yet";
  const shown = over === null ? undefined : memories.get(over);
  const row = over === null || !frame ? -1 : Array.prototype.indexOf.call(frame.ids, over);
  return (
    <figure class="field">
      <figcaption>
        <b>{visible(title)}</b>{" "}
        <span class="note">{`${summary}${left === null ? "" : ` · ${Math.round(100 * left)}% mean retention`}`}</span>
      </figcaption>
      <div>
        <canvas
          ref={canvas}
          style={{ width: `${width}px`, height: `${height}px` }}
          role="img"
          data-theme-of={theme}
          aria-label={`${plural(frame?.ids.length ?? 0, "memory", "memories")} under ${visible(title)}: ${summary}`}
          onMouseMove={(event) => setOver(pick(event))}
          onMouseLeave={() => setOver(null)}
          onClick={(event) => {
            const id = pick(event);
            if (id !== null) choose(id);
          }}
        />
      </div>
      <p class="note under">
        {shown && row >= 0 ? (
          <>
            {`#${shown.id} ${about.statuses[frame!.status[side][row]!]}, ${Math.round((100 * frame!.keep[side][row]!) / 255)}% retention: `}
            <UserText text={shown.text} />
          </>
        ) : (
          " "
        )}
      </p>
    </figure>
  );
}
