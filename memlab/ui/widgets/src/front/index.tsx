/** Front view: the policies that a search found, as value against size, each with what it changes. */
import { num, plural, UserText, visible } from "../shared/text";
import { useOfflineReason, useTrait, widget } from "../shared/widget";
import { Diff, type Line } from "../timeline/diff";
import diffs from "../timeline/diff.css";
import css from "./front.css";
import { type Point, placeDots } from "./plot";

type Change = { name: string; before: number | null; after: number | null; change: number | null };
type Policy = Point & {
  gain: number | null;
  gain_low: number | null;
  gain_high: number | null;
  operator: string;
  parents: string[];
  policy: string;
  gained: number;
  lost: number;
  closed: string[];
  lines: Line[];
  differences: string[];
  changes: Change[];
};
type About = { sentence: string; metric: string; start: number | null };

function Front() {
  const [selected, setSelected] = useTrait<string>("selected");
  const [about] = useTrait<About>("_about");
  const [points] = useTrait<Policy[]>("_points");
  const { dots, sizes, values } = placeDots(points, about.start);
  const open = points.find((point) => point.hash === selected);
  return (
    <div class="front">
      <p>{visible(about.sentence)}</p>
      <div class="plot">
        <div class="field">
          {values.ticks.map((tick) => (
            <span key={tick} class="tick y" style={{ bottom: `${100 * values.place(tick)}%` }}>
              {num(tick, values.digits)}
            </span>
          ))}
          {sizes.ticks.map((tick) => (
            <span key={tick} class="tick x" style={{ left: `${100 * sizes.place(tick)}%` }}>
              {tick}
            </span>
          ))}
          {about.start !== null && (
            <s class="start" style={{ bottom: `${100 * values.place(about.start)}%` }} />
          )}
          {dots.map(({ point, left, bottom, low, high }) => {
            const name = point === points[0] ? "start" : point.hash.slice(0, 6);
            return (
              <div key={point.hash} class={point === points[0] ? "base" : ""}>
                <i
                  class="interval"
                  style={{ left: `${left}%`, bottom: `${low}%`, height: `${high - low}%` }}
                />
                <button
                  type="button"
                  class={point.best || point === points[0] ? "dot filled" : "dot"}
                  style={{ left: `${left}%`, bottom: `${bottom}%` }}
                  aria-pressed={point.hash === selected}
                  aria-label={`${name}: size ${point.size}, ${describeEstimate(point)}${point.best ? ", best" : ""}`}
                  title={`${name}: ${describeEstimate(point)}`}
                  onClick={() => setSelected(point.hash === selected ? "" : point.hash)}
                />
                <span class="name" style={{ left: `${left}%`, bottom: `${bottom}%` }}>
                  {name}
                </span>
              </div>
            );
          })}
        </div>
        <p class="note">
          {`${visible(about.metric)} on the report part against size (operations). Each line is the interval of one value; the intervals are not jointly valid.`}
        </p>
      </div>
      {open ? (
        <Opened policy={open} isStart={open === points[0]} />
      ) : (
        <p class="note">Select a dot to see its policy.</p>
      )}
    </div>
  );
}

function Opened({ policy, isStart }: { policy: Policy; isStart: boolean }) {
  const offline = useOfflineReason();
  const heads: [string, string] = ["start", policy.hash.slice(0, 12)];
  return (
    <section aria-label={`Policy ${heads[1]}`}>
      <h3>
        {isStart
          ? `The start, ${describeEstimate(policy)}`
          : `${heads[1]}: ${num(policy.gain, 4, true)} [${num(policy.gain_low, 4, true)}, ${num(policy.gain_high, 4, true)}] over the start, ${policy.gained} gained, ${policy.lost} lost`}
      </h3>
      {!isStart && (
        <p class="note">
          {`${visible(policy.operator)} of ${policy.parents.map((hash) => hash.slice(0, 12)).join(", ") || "no parent"}`}
          {policy.closed.length > 0 &&
            `. Closed ${policy.closed.length > 1 ? "gates" : "gate"}: ${visible(policy.closed.join(", "))}`}
        </p>
      )}
      {isStart ? <pre>{visible(policy.policy)}</pre> : <Diff rows={policy.lines} heads={heads} />}
      {policy.differences.map((difference) => (
        <p key={difference} class="note">
          {visible(difference)}
        </p>
      ))}
      {policy.changes.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">question or cluster</th>
              <th scope="col" class="number">
                start
              </th>
              <th scope="col" class="number">
                policy
              </th>
            </tr>
          </thead>
          <tbody>
            {policy.changes.map((change, index) => (
              <tr key={index} class={(change.change ?? 0) > 0 ? "gained" : "lost"}>
                <td>
                  <UserText text={change.name} />
                </td>
                <td class="number">{num(change.before, 3)}</td>
                <td class="number">{num(change.after, 3)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {policy.gained + policy.lost > policy.changes.length && (
        <p class="note">{`The table shows ${plural(policy.changes.length, "row")} of ${policy.gained + policy.lost}.`}</p>
      )}
      {offline && <p class="note">{visible(offline)}</p>}
    </section>
  );
}

function describeEstimate({ value, low, high }: Point): string {
  return `${num(value, 4)} [${num(low, 4)}, ${num(high, 4)}]`;
}

export default widget("Front view", Front, diffs + css);
