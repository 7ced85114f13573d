/** The difference of a challenge as it grew, with the interval that holds at every look. */
import { useState } from "preact/hooks";
import { scale } from "../shared/scale";
import { num, visible } from "../shared/text";
import { useTrait } from "../shared/widget";
import type { About, Challenge, Day, Verdict } from "./types";

const WIDTH = 900;
const HEIGHT = 240;
const LEFT = 46;
const BOTTOM = 24;

export function Sequence({ about }: { about: About }) {
  const [found] = useTrait<Challenge>("_challenge");
  if (!about.challenged && !found.verdicts) {
    return (
      <p class="note">
        Nothing was challenged yet: the planner lets a pack stand against the live one, as does
        lab.challenge("companion", reason="…").
      </p>
    );
  }
  return (
    <section aria-label="Challenge">
      {found.verdicts?.map((one) => (
        <Track key={one.challenger} one={one} />
      ))}
      {found.notes?.map((note) => (
        <p key={note} class="note">
          {visible(note)}
        </p>
      ))}
    </section>
  );
}

function Track({ one }: { one: Verdict }) {
  const [at, setAt] = useState(one.days.length - 1);
  const { days } = one;
  const day = days[Math.min(at, days.length - 1)];
  const settled = days.slice(Math.min(3, Math.floor(days.length / 4))); // the first intervals span the whole range of rewards
  const y = scale([0, ...settled.flatMap((d) => [d.low, d.high])], 5);
  const x = (place: number) =>
    LEFT + (WIDTH - LEFT - 10) * (days.length > 1 ? place / (days.length - 1) : 0.5);
  const up = (value: number) =>
    (HEIGHT - BOTTOM) * (1 - Math.min(1.02, Math.max(-0.02, y.place(value))));
  const line = (get: (d: Day) => number) =>
    days.map((d, place) => `${x(place).toFixed(1)},${up(get(d)).toFixed(1)}`);
  const labels =
    days.length > 1
      ? [0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(share * (days.length - 1)))
      : [0];
  return (
    <article class="track">
      <h3 class="headline">{visible(one.sentence)}</h3>
      {one.withheld.map((text) => (
        <p key={text}>
          <span class="light closed">✕ withheld</span> {visible(text)}
        </p>
      ))}
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Difference of ${visible(one.challenger)} to ${visible(one.live)}, day by day; the table below has its values`}
      >
        {y.ticks.map((tick) => (
          <g key={tick}>
            <line
              x1={LEFT}
              x2={WIDTH - 10}
              y1={up(tick)}
              y2={up(tick)}
              class={Math.abs(tick) < 1e-9 ? "zero" : "grid"}
            />
            <text x={LEFT - 6} y={up(tick) + 4} text-anchor="end">
              {Math.abs(tick) < 1e-9 ? "0" : num(tick, y.digits, true)}
            </text>
          </g>
        ))}
        <polygon
          class="band"
          points={[...line((d) => d.high), ...line((d) => d.low).reverse()].join(" ")}
        />
        <polyline class="mean" points={line((d) => d.difference).join(" ")} />
        {labels.map((place) => (
          <text
            key={place}
            x={x(place)}
            y={HEIGHT - 6}
            text-anchor={place === 0 ? "start" : place === days.length - 1 ? "end" : "middle"}
          >
            {days[place]!.day}
          </text>
        ))}
        {day && (
          <g class="looked">
            <line x1={x(at)} x2={x(at)} y1={0} y2={HEIGHT - BOTTOM} />
            <circle cx={x(at)} cy={up(day.difference)} r={4.5} />
          </g>
        )}
        <text class="side" x={LEFT + 8} y={14}>{`▲ ${visible(one.challenger)} better`}</text>
        <text
          class="side"
          x={LEFT + 8}
          y={HEIGHT - BOTTOM - 8}
        >{`▼ ${visible(one.live)} better`}</text>
      </svg>
      {day && (
        <div class="controls">
          <label class="slider look">
            look at
            <span>
              <input
                type="range"
                min={0}
                max={days.length - 1}
                value={at}
                aria-valuetext={day.day}
                onInput={(event) => setAt(Number(event.currentTarget.value))}
              />
              <output>{`${day.day}: ${num(day.difference, 2, true)}, between ${num(day.low, 2, true)} and ${num(day.high, 2, true)}, after ${day.recalls.toLocaleString("en")} recalls`}</output>
            </span>
          </label>
        </div>
      )}
    </article>
  );
}
