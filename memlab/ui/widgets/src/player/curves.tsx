/** The predicted retention of a few memories, and the memories that a pack would forget by a date. */

import { scale } from "../shared/scale";
import { num, plural, UserText, visible } from "../shared/text";
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
  offline: string;
  params: Record<string, number>;
  until: string;
  change: (params: Record<string, number>, until: string) => void;
  choose: (ids: number[]) => void;
};

export function Curves({ about, memories, offline, params, until, change, choose }: Props) {
  const points = useRows<Point>("_curves");
  const [gone] = useTrait<Gone>("_gone");
  const ids = [...new Set(points.map((point) => point.id))];
  const times = points.map((point) => Number(point.at));
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const toX = (at: number) => LEFT + (WIDTH - LEFT - 8) * ((at - from) / (to - from || 1));
  // Retention of old memories is far below 1, where all curves would lie on the axis.
  const y = scale([0, Math.max(0.01, ...points.map((point) => point.retention ?? 0))], 4);
  const toY = (value: number) => (HEIGHT - BOTTOM) * (1 - y.place(value));
  const lines = new Map<string, Point[]>();
  for (const point of points) {
    const key = `${point.tuned}-${point.id}`;
    lines.set(key, [...(lines.get(key) ?? []), point]);
  }
  const labels = points.length
    ? [0, 0.25, 0.5, 0.75, 1].map((share) => from + share * (to - from))
    : [];
  const tuned = (gone.sides?.length ?? 0) > 1;
  return (
    <section aria-label="Forecast" class="tocome">
      <div class="controls">
        {about.params.map((param) => {
          const value = params[param.name] ?? param.value;
          return (
            <label key={param.name} class="slider">
              {param.name}
              <span>
                <input
                  type="range"
                  disabled={!!offline}
                  value={value}
                  min={Number.isFinite(param.low) ? param.low : 0}
                  max={Number.isFinite(param.high) ? param.high : 10 * (param.value || 1)}
                  step="any"
                  aria-valuetext={num(value, 2)}
                  onInput={(event) =>
                    change({ ...params, [param.name]: Number(event.currentTarget.value) }, until)
                  }
                />
                <output>{`${num(value, 2)}${value === param.value ? "" : ` (was ${num(param.value, 2)})`}`}</output>
              </span>
            </label>
          );
        })}
        <label>
          until
          <input
            type="date"
            value={until}
            disabled={!!offline}
            onChange={(event) =>
              event.currentTarget.value && change(params, event.currentTarget.value)
            }
          />
        </label>
        <button
          type="button"
          disabled={!!offline || !Object.keys(params).length}
          onClick={() => change({}, until)}
        >
          Reset
        </button>
      </div>
      {!about.params.length && (
        <p class="note">
          {
            "This pack has no parameters of retention. Add one with (param :name value :low … :high …) in a policy."
          }
        </p>
      )}
      {points.length > 0 && (
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          role="img"
          aria-label={`Retention of ${plural(ids.length, "memory", "memories")} until ${until}`}
        >
          {y.ticks.map((tick) => (
            <g key={tick}>
              <line class="grid" x1={LEFT} x2={WIDTH - 8} y1={toY(tick)} y2={toY(tick)} />
              <text
                x={LEFT - 6}
                y={toY(tick) + 4}
                text-anchor="end"
              >{`${num(100 * tick, Math.max(0, y.digits - 2))}%`}</text>
            </g>
          ))}
          {labels.map((at, index) => (
            <text
              key={at}
              x={toX(at)}
              y={HEIGHT - 6}
              text-anchor={index === 0 ? "start" : index === 4 ? "end" : "middle"}
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
                .filter((point) => point.retention !== null)
                .map(
                  (point) =>
                    `${toX(Number(point.at)).toFixed(1)},${toY(point.retention!).toFixed(1)}`,
                )
                .join(" ")}
            />
          ))}
        </svg>
      )}
      <ul class="keys" aria-label="Memories in the chart">
        {ids.map((id, index) => (
          <li key={id}>
            <b style={{ background: `var(--c${index % 8})` }} />
            <span class="note">{`#${id}`}</span> <UserText text={memories.get(id)?.text ?? ""} />
            <button
              type="button"
              class="plain"
              disabled={!!offline || ids.length < 2}
              aria-label={`Hide memory ${id}`}
              onClick={() => choose(ids.filter((other) => other !== id))}
            >
              ×
            </button>
          </li>
        ))}
        {tuned && <li class="note">– – with the slider values</li>}
      </ul>
      {gone.sides?.[0] && (
        <div class="gone">
          <Total title={visible(gone.pack)} side={gone.sides[0]} until={gone.until!} />
          {gone.sides[1] && (
            <Total title="with the slider values" side={gone.sides[1]} until={gone.until!} />
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
        {` of ${side.of.toLocaleString("en")} would be forgotten by ${until.slice(0, 10)}, `}
        <span class="note">{title}</span>
      </p>
      <div class="portion" aria-hidden="true">
        <i class="moves" style={{ width: `${(100 * side.count) / Math.max(1, side.of)}%` }} />
      </div>
      {side.count > 0 && (
        <details>
          <summary>
            {side.count > side.first.length ? `The first ${side.first.length}` : "Show memories"}
          </summary>
          <ol>
            {side.first.map((loss) => (
              <li key={loss.id}>
                <span class="note">{`${loss.at} #${loss.id} ${loss.to}`}</span>{" "}
                <UserText text={loss.text} />
              </li>
            ))}
          </ol>
        </details>
      )}
    </div>
  );
}
