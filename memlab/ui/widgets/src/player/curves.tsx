/** What is left of a few memories as time goes on, and what a pack would let go by a date. */

import { scale } from "../shared/scale";
import { num, plural, Said, visible } from "../shared/text";
import { useRows, useTrait } from "../shared/widget";
import type { About, Gone, Memory, Side } from "./types";

const WIDTH = 900;
const HEIGHT = 230;
const LEFT = 44;
const BOTTOM = 24;
const DASHES = ["", "7 4", "2 3"];
type Point = { tuned: number; id: number; at: number; retention: number | null };

type Props = {
  about: About;
  memories: Map<number, Memory>;
  still: string;
  params: Record<string, number>;
  until: string;
  change: (params: Record<string, number>, until: string) => void;
  choose: (ids: number[]) => void;
};

export function Curves({ about, memories, still, params, until, change, choose }: Props) {
  const points = useRows<Point>("_curves");
  const [gone] = useTrait<Gone>("_gone");
  const ids = [...new Set(points.map((one) => one.id))];
  const times = points.map((one) => Number(one.at));
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const x = (at: number) => LEFT + (WIDTH - LEFT - 8) * ((at - from) / (to - from || 1));
  const y = scale([0, 1], 4);
  const up = (value: number) => (HEIGHT - BOTTOM) * (1 - y.place(value));
  const lines = new Map<string, Point[]>();
  for (const one of points)
    lines.set(`${one.tuned}-${one.id}`, [...(lines.get(`${one.tuned}-${one.id}`) ?? []), one]);
  const labels = points.length
    ? [0, 0.25, 0.5, 0.75, 1].map((share) => from + share * (to - from))
    : [];
  const tuned = (gone.sides?.length ?? 0) > 1;
  return (
    <section aria-label="Time to come" class="tocome">
      <div class="controls">
        {about.params.map((one) => {
          const value = params[one.name] ?? one.value;
          return (
            <label key={one.name} class="slider">
              {one.name}
              <span>
                <input
                  type="range"
                  disabled={!!still}
                  value={value}
                  min={Number.isFinite(one.low) ? one.low : 0}
                  max={Number.isFinite(one.high) ? one.high : 10 * (one.value || 1)}
                  step="any"
                  aria-valuetext={num(value, 2)}
                  onInput={(event) =>
                    change({ ...params, [one.name]: Number(event.currentTarget.value) }, until)
                  }
                />
                <output>{`${num(value, 2)}${value === one.value ? "" : ` (was ${num(one.value, 2)})`}`}</output>
              </span>
            </label>
          );
        })}
        <label>
          until
          <input
            type="date"
            value={until}
            disabled={!!still}
            onChange={(event) =>
              event.currentTarget.value && change(params, event.currentTarget.value)
            }
          />
        </label>
        <button
          type="button"
          disabled={!!still || !Object.keys(params).length}
          onClick={() => change({}, until)}
        >
          As it is
        </button>
      </div>
      {!about.params.length && (
        <p class="note">
          {
            "This pack has no parameter of how memories fade: (param :name value :low … :high …) in its policies makes one."
          }
        </p>
      )}
      {points.length > 0 && (
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          role="img"
          aria-label={`What is left of ${plural(ids.length, "memory", "memories")} until ${until}`}
        >
          {y.ticks.map((tick) => (
            <g key={tick}>
              <line class="grid" x1={LEFT} x2={WIDTH - 8} y1={up(tick)} y2={up(tick)} />
              <text
                x={LEFT - 6}
                y={up(tick) + 4}
                text-anchor="end"
              >{`${Math.round(100 * tick)}%`}</text>
            </g>
          ))}
          {labels.map((at, place) => (
            <text
              key={at}
              x={x(at)}
              y={HEIGHT - 6}
              text-anchor={place === 0 ? "start" : place === 4 ? "end" : "middle"}
            >
              {new Date(at).toISOString().slice(0, 10)}
            </text>
          ))}
          {[...lines].map(([name, line]) => (
            <polyline
              key={name}
              class="curve"
              stroke={`var(--c${ids.indexOf(line[0]!.id) % 8})`}
              stroke-dasharray={DASHES[line[0]!.tuned]}
              points={line
                .filter((one) => one.retention !== null)
                .map((one) => `${x(Number(one.at)).toFixed(1)},${up(one.retention!).toFixed(1)}`)
                .join(" ")}
            />
          ))}
        </svg>
      )}
      <ul class="keys" aria-label="Memories whose curves are drawn">
        {ids.map((id, place) => (
          <li key={id}>
            <b style={{ background: `var(--c${place % 8})` }} />
            <span class="note">{`#${id}`}</span> <Said text={memories.get(id)?.text ?? ""} />
            <button
              type="button"
              class="plain"
              disabled={!!still || ids.length < 2}
              aria-label={`Draw memory ${id} no longer`}
              onClick={() => choose(ids.filter((one) => one !== id))}
            >
              ×
            </button>
          </li>
        ))}
        {tuned && <li class="note">– – as the sliders say</li>}
      </ul>
      {gone.sides?.[0] && (
        <div class="gone">
          <Total title={visible(gone.pack)} side={gone.sides[0]} until={gone.until!} />
          {gone.sides[1] && (
            <Total title="as the sliders say" side={gone.sides[1]} until={gone.until!} />
          )}
        </div>
      )}
    </section>
  );
}

function Total({ title, side, until }: { title: string; side: Side; until: string }) {
  return (
    <div>
      <p class="total">
        <b class="number">{side.count.toLocaleString("en")}</b>
        {` of ${side.of.toLocaleString("en")} would be let go by ${until.slice(0, 10)}, `}
        <span class="note">{title}</span>
      </p>
      <div class="portion" aria-hidden="true">
        <i class="moves" style={{ width: `${(100 * side.count) / Math.max(1, side.of)}%` }} />
      </div>
      {side.count > 0 && (
        <details>
          <summary>
            {side.count > side.first.length ? `The first ${side.first.length}` : "Which"}
          </summary>
          <ol>
            {side.first.map((one) => (
              <li key={one.id}>
                <span class="note">{`${one.at} #${one.id} ${one.to}`}</span>{" "}
                <Said text={one.text} />
              </li>
            ))}
          </ol>
        </details>
      )}
    </div>
  );
}
