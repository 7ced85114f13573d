/** A list of recalls by day: queries, the memories that they showed, and whether these helped. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { Explorer } from "../explorer/index";
import { num, plural, UserText } from "../shared/text";
import { useAsk, useOfflineReason, useRows, useTrait } from "../shared/widget";

export type Recall = {
  decision: number;
  at: number;
  query: string | null;
  agent: string | null;
  session: string | null;
  project: string | null;
  outcome: Outcome;
  known: number | null;
  shown: number;
  helped: number;
  failed: number;
  stale: number;
  tokens: number;
};
export type Outcome = "helped" | "failed" | "nothing" | "unrated";
type Item = {
  decision: number;
  position: number;
  memory_id: number;
  superseded_by: number | null;
  status: string | null;
  probe: boolean | null;
  reward: number | null;
  score: number | null;
  text: string | null;
};

/** What a reader is told about each outcome. */
export const OUTCOMES: Record<Outcome, string> = {
  helped: "helped",
  failed: "did not help",
  nothing: "nothing found",
  unrated: "not rated",
};

/** Return the day and the minute of an instant, in UTC. */
export function toDayAndTime(at: number): [string, string] {
  const text = new Date(at).toISOString();
  return [text.slice(0, 10), text.slice(11, 16)];
}

/** Group recalls, newest first, by day. */
export function groupByDay(recalls: Recall[]): [string, Recall[]][] {
  const days = new Map<string, Recall[]>();
  for (const recall of recalls) {
    const [day] = toDayAndTime(recall.at);
    days.set(day, [...(days.get(day) ?? []), recall]);
  }
  return [...days];
}

export function Chip({ outcome }: { outcome: Outcome }) {
  return <span class={`chip ${outcome}`}>{OUTCOMES[outcome]}</span>;
}

/** The recalls of a page. A click shows what was shown, and repeats the query as of that instant. */
export function Recalls({ limit }: { limit?: number }) {
  const recalls = useRows<Recall>("_recalls");
  const items = useRows<Item>("_items");
  const byRecall = useMemo(() => {
    const groups = new Map<number, Item[]>();
    for (const item of items)
      groups.set(item.decision, [...(groups.get(item.decision) ?? []), item]);
    return groups;
  }, [items]);
  const days = groupByDay(recalls.slice(0, limit));
  return (
    <div class="recalls">
      {days.map(([day, group]) => (
        <section key={day} aria-label={day}>
          <h3 class="day">
            {`${weekday(day)} ${day}`}{" "}
            <span class="note">{`UTC · ${plural(group.length, "recall")} here`}</span>
          </h3>
          <ol>
            {group.map((recall) => (
              <Entry
                key={recall.decision}
                recall={recall}
                items={byRecall.get(recall.decision) ?? []}
              />
            ))}
          </ol>
        </section>
      ))}
    </div>
  );
}

function weekday(day: string): string {
  return new Date(`${day}T12:00Z`).toLocaleDateString("en", { weekday: "long", timeZone: "UTC" });
}

function Entry({ recall, items }: { recall: Recall; items: Item[] }) {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [opened] = useTrait<number>("opened");
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(opened === recall.decision), [opened]);
  const [, time] = toDayAndTime(recall.at);
  const best = items.find((item) => (item.reward ?? 0) >= 0.5) ?? items[0];
  const toggle = () => {
    setOpen(!open);
    if (!open && !offline && recall.query !== null && opened !== recall.decision)
      void ask("open", { decision: recall.decision });
  };
  return (
    <li class="entry" data-recall={recall.decision}>
      <button type="button" class="plain line" aria-expanded={open} onClick={toggle}>
        <span class="number time">{time}</span>
        <span class="what">
          <span class="asked">
            {recall.query === null ? (
              <i>text not in the log</i>
            ) : (
              <UserText text={recall.query} class="clamp" />
            )}
          </span>
          {best && !open && (
            <span class="note answer">
              {`#${best.memory_id} `}
              <UserText text={best.text ?? "(purged)"} class="clamp" />
            </span>
          )}
        </span>
        <span class="side note">
          <Chip outcome={recall.outcome} />
          {recall.stale > 0 && <span class="chip nothing">{`${recall.stale} superseded`}</span>}
          <span>
            {(recall.agent ?? recall.session) && (
              <>
                <UserText text={recall.agent ?? recall.session ?? ""} />
                {" · "}
              </>
            )}
            {`${recall.shown} shown · ${recall.tokens.toLocaleString("en")} tokens`}
          </span>
        </span>
      </button>
      {open && (
        <div class="opened">
          <ol class="items" aria-label={`Shown by recall ${recall.decision}`}>
            {items.map((item) => (
              <li key={item.memory_id}>
                <span class="number">{item.position}</span>
                <span>
                  <UserText text={item.text ?? "(purged)"} class="clamp" />
                  <span class="note">
                    {` #${item.memory_id} · score ${num(item.score)}`}
                    {item.probe && " · ◆ exploration item"}
                    {item.superseded_by !== null && ` · superseded by #${item.superseded_by}`}
                  </span>
                </span>
                <span class={`chip ${judge(item.reward)}`}>{describe(item.reward)}</span>
              </li>
            ))}
            {!items.length && <li class="note">No memory was shown.</li>}
          </ol>
          {opened === recall.decision && (
            <section class="then" aria-label="Explorer as of this recall">
              <p class="note">
                {`The query of recall ${recall.decision}, asked again in the lab as it was then, without the project and viewer of the recall. Not logged.`}
              </p>
              <Explorer />
            </section>
          )}
        </div>
      )}
    </li>
  );
}

export function judge(reward: number | null): Outcome {
  return reward === null ? "unrated" : reward >= 0.5 ? "helped" : "failed";
}

function describe(reward: number | null): string {
  return reward === null ? "not rated" : `${OUTCOMES[judge(reward)]} (${num(reward, 2)})`;
}

/** What an empty log says, with the next call. */
export function NoRecalls() {
  const [log] = useTrait<{ all: number }>("_log");
  return (
    <p class="empty">
      {log.all
        ? "No recall matches. Clear the search to see all."
        : 'No recalls logged yet. lab.recall("…") logs one, and lab.feedback(hit, "success") says whether it helped.'}
    </p>
  );
}

/** The count of a page and the buttons to the others. */
export function summarizePage(log: { matching: number; page: number }, start: number): string {
  if (!log.matching) return "no recalls";
  return `${(start + 1).toLocaleString("en")} to ${Math.min(start + log.page, log.matching).toLocaleString("en")} of ${plural(log.matching, "recall")}`;
}
