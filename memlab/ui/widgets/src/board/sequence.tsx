/** The difference of a challenge over time, with its anytime-valid confidence interval. */
import { useState } from "preact/hooks";
import { scale } from "../shared/scale";
import { num, plural, visible } from "../shared/text";
import { useTrait } from "../shared/widget";
import type { About, Challenge, Day, Verdict } from "./types";

const WIDTH = 900;
const HEIGHT = 240;
const LEFT = 46;
const BOTTOM = 24;

export function Sequence({ about }: { about: About }) {
  const [challenge] = useTrait<Challenge>("_challenge");
  if (!about.challenged && !challenge.verdicts) {
    return (
      <p class="note">
        No challenge yet. Start one in “Plan a challenge”, or with lab.challenge("companion",
        reason="…").
      </p>
    );
  }
  return (
    <section aria-label="Challenge">
      {challenge.verdicts?.map((verdict) => (
        <Track key={verdict.challenger} verdict={verdict} />
      ))}
      {challenge.facts && <p class="note">{visible(challenge.facts)}</p>}
      {challenge.notes?.map((note) => (
        <p key={note} class="note">
          {visible(note)}
        </p>
      ))}
    </section>
  );
}

function Track({ verdict }: { verdict: Verdict }) {
  const [index, setIndex] = useState(verdict.days.length - 1);
  const { days } = verdict;
  const day = days[Math.min(index, days.length - 1)];
  const settled = days.slice(Math.min(3, Math.floor(days.length / 4))); // The first intervals are as wide as the range of rewards.
  const y = scale([0, ...settled.flatMap((d) => [d.low, d.high])], 5);
  const toX = (index: number) =>
    LEFT + (WIDTH - LEFT - 10) * (days.length > 1 ? index / (days.length - 1) : 0.5);
  const toY = (value: number) =>
    (HEIGHT - BOTTOM) * (1 - Math.min(1.02, Math.max(-0.02, y.place(value))));
  const line = (get: (d: Day) => number) =>
    days.map((d, index) => `${toX(index).toFixed(1)},${toY(get(d)).toFixed(1)}`);
  const labels =
    days.length > 1
      ? [0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(share * (days.length - 1)))
      : [0];
  return (
    <article class="track">
      <h3 class="headline">{visible(verdict.sentence)}</h3>
      {verdict.withheld.map((text) => (
        <p key={text}>
          <span class="light closed">✕ withheld</span> {visible(text)}
        </p>
      ))}
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Difference between ${visible(verdict.challenger)} and ${visible(verdict.live)} by day; the slider below reads its values`}
      >
        {y.ticks.map((tick) => (
          <g key={tick}>
            <line
              x1={LEFT}
              x2={WIDTH - 10}
              y1={toY(tick)}
              y2={toY(tick)}
              class={Math.abs(tick) < 1e-9 ? "zero" : "grid"}
            />
            <text x={LEFT - 6} y={toY(tick) + 4} text-anchor="end">
              {Math.abs(tick) < 1e-9 ? "0" : num(tick, y.digits, true)}
            </text>
          </g>
        ))}
        <polygon
          class="band"
          points={[...line((d) => d.high), ...line((d) => d.low).reverse()].join(" ")}
        />
        <polyline class="mean" points={line((d) => d.difference).join(" ")} />
        {labels.map((index) => (
          <text
            key={index}
            x={toX(index)}
            y={HEIGHT - 6}
            text-anchor={index === 0 ? "start" : index === days.length - 1 ? "end" : "middle"}
          >
            {days[index]!.day}
          </text>
        ))}
        {day && (
          <g class="looked">
            <line x1={toX(index)} x2={toX(index)} y1={0} y2={HEIGHT - BOTTOM} />
            <circle cx={toX(index)} cy={toY(day.difference)} r={4.5} />
          </g>
        )}
        <text class="side" x={LEFT + 8} y={14}>{`▲ ${visible(verdict.challenger)} better`}</text>
        <text
          class="side"
          x={LEFT + 8}
          y={HEIGHT - BOTTOM - 8}
        >{`▼ ${visible(verdict.live)} better`}</text>
      </svg>
      {day && (
        <div class="controls">
          <label class="slider look">
            day
            <span>
              <input
                type="range"
                min={0}
                max={days.length - 1}
                value={index}
                aria-valuetext={day.day}
                onInput={(event) => setIndex(Number(event.currentTarget.value))}
              />
              <output>{`${day.day}: ${num(day.difference, 2, true)}, between ${num(day.low, 2, true)} and ${num(day.high, 2, true)}, after ${plural(day.recalls, "recall")}`}</output>
            </span>
          </label>
        </div>
      )}
    </article>
  );
}
