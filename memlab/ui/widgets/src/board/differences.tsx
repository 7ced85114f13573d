/** The recalls on which two policies differ most, with the top five results of each. */
import { FoldedText, num, plural, UserText, visible } from "../shared/text";
import { useTrait } from "../shared/widget";
import type { Differences as Disagreements, Item } from "./types";

// Recalls that are open at first: enough to see the pattern without scrolling.
const OPEN = 2;

export function Differences({
  policies,
  choose,
  offline,
}: {
  policies: string[];
  choose: (pair: string[]) => void;
  offline: string;
}) {
  const [disagreements] = useTrait<Disagreements>("_differences");
  const [pair] = useTrait<string[]>("pair");
  const pick = (side: number, name: string) => {
    const next = [...pair];
    next[side] = name;
    if (next[0] !== next[1]) choose(next);
  };
  if (policies.length < 2)
    return <p class="note">Choose a second policy above to see where the results differ.</p>;
  return (
    <section aria-label="Disagreements">
      <div class="controls">
        {[0, 1].map((side) => (
          <label key={side}>
            {side ? "with" : "compare"}
            <select
              value={pair[side] ?? ""}
              disabled={!!offline}
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
      {disagreements.recalls?.length === 0 && (
        <p class="note">Both policies return the same top results in every recall.</p>
      )}
      {disagreements.recalls?.map((recall, index) => (
        <details key={recall.decision} class="recall" open={index < OPEN}>
          <summary>
            <UserText text={recall.query ?? "(text not in the log)"} />{" "}
            <span class="note">{`recall ${recall.decision}, ${plural(recall.shared, "shared result")}`}</span>
          </summary>
          <div class="heads">
            {recall.heads.map((items, side) => (
              <div key={side}>
                <p class="note">
                  <code>{visible(side ? disagreements.b : disagreements.a)}</code>
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
    item.other === null
      ? "only in this list"
      : item.other === item.rank
        ? ""
        : `rank ${item.other} in the other list`;
  const outcome =
    item.reward === null
      ? item.shown
        ? "shown, no feedback"
        : "not shown"
      : `reward ${num(item.reward, item.reward % 1 ? 2 : 0)}`;
  return (
    <li class={item.other === null ? "only" : ""}>
      <span class="rank number">{item.rank}</span>
      <FoldedText text={item.text ?? `memory ${item.memory}`} />
      <span class="marks">
        {moved && <span class="note">{moved}</span>}
        <span class={`tag ${item.reward === null ? "" : item.reward > 0 ? "good" : "bad"}`}>
          {outcome}
        </span>
      </span>
    </li>
  );
}
