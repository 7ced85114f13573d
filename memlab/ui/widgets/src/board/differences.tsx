/** The recalls on which two policies differ most, with the five that either would put first. */
import { num, Said, visible } from "../shared/text";
import { useTrait } from "../shared/widget";
import type { Differences as Found, Item } from "./types";

const OPEN = 2;

export function Differences({
  policies,
  choose,
  still,
}: {
  policies: string[];
  choose: (pair: string[]) => void;
  still: string;
}) {
  const [found] = useTrait<Found>("_differences");
  const [pair] = useTrait<string[]>("pair");
  const pick = (side: number, name: string) => {
    const next = [...pair];
    next[side] = name;
    if (next[0] !== next[1]) choose(next);
  };
  return (
    <section aria-label="Disagreements">
      <div class="controls">
        {[0, 1].map((side) => (
          <label key={side}>
            {side ? "against" : "compare"}
            <select
              value={pair[side] ?? ""}
              disabled={!!still}
              onChange={(event) => pick(side, event.currentTarget.value)}
            >
              {policies.map((name) => (
                <option key={name} value={name} disabled={name === pair[1 - side]}>
                  {visible(name)}
                </option>
              ))}
            </select>
          </label>
        ))}
      </div>
      {found.recalls?.length === 0 && (
        <p class="note">Both put the same memories first in every recall.</p>
      )}
      {found.recalls?.map((one, place) => (
        <details key={one.decision} class="recall" open={place < OPEN}>
          <summary>
            <Said text={one.query ?? "a question that was not kept"} />{" "}
            <span class="note">{`recall ${one.decision}, ${one.shared} in common`}</span>
          </summary>
          <div class="heads">
            {one.heads.map((items, side) => (
              <div key={side}>
                <p class="note">
                  <code>{visible(side ? found.b : found.a)}</code>
                </p>
                <ol>
                  {items.map((item) => (
                    <Line key={item.memory} item={item} />
                  ))}
                </ol>
              </div>
            ))}
          </div>
        </details>
      ))}
    </section>
  );
}

function Line({ item }: { item: Item }) {
  const moved =
    item.other === null ? "only here" : item.other === item.rank ? "" : `${item.other} there`;
  const earned =
    item.reward === null
      ? item.shown
        ? "shown, not judged"
        : "never shown"
      : `earned ${num(item.reward, item.reward % 1 ? 2 : 0)}`;
  return (
    <li class={item.other === null ? "only" : ""}>
      <span class="rank number">{item.rank}</span>
      <Said text={item.text ?? `memory ${item.memory}`} />
      <span class="marks">
        {moved && <span class="note">{moved}</span>}
        <span class={`tag ${item.reward === null ? "" : item.reward > 0 ? "good" : "bad"}`}>
          {earned}
        </span>
      </span>
    </li>
  );
}
