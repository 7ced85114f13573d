/** The quality of two policies on labelled questions: metrics before and after, and the questions gained and lost. */
import { useEffect, useState } from "preact/hooks";
import { num, plural, UserText, visible } from "../shared/text";
import { useAsk, useOfflineReason } from "../shared/widget";

export type Metric = {
  metric: string;
  /** The value after the change. */
  value: number;
  difference: number;
  low: number | null;
  high: number | null;
  gained: number;
  lost: number;
};
export type Changed = { id: number; query: string; before: number | null; after: number | null };
/** As `Quality.describe` of Python returns it: a note if the lab has no question, empty if ranks do not matter. */
export type Quality = {
  note?: string;
  metrics?: Metric[];
  count: number;
  total: number;
  cut: number;
  same: boolean;
  gained: Changed[];
  lost: Changed[];
};

/** Return whether the interval of a difference excludes zero, and on which side. */
export function judge({ low, high }: Metric): "better" | "worse" | "unclear" {
  if (low === null || high === null) return "unclear";
  return low > 0 ? "better" : high < 0 ? "worse" : "unclear";
}

/** Describe a difference with its interval: `+0.020 (−0.008 to +0.048), no significant difference`. */
export function describeDifference(metric: Metric): string {
  const { low, high } = metric;
  const difference = num(metric.difference, 3, true);
  if (low === null || high === null) return `${difference}, too few questions for an interval`;
  const verdict = judge(metric);
  return `${difference} (${num(low, 3, true)} to ${num(high, 3, true)}), ${verdict === "unclear" ? "no significant difference" : verdict}`;
}

/** Describe the questions: all of them, or the random sample that was scored. */
export function describeSample({ count, total }: Pick<Quality, "count" | "total">): string {
  return count < total
    ? `a random sample of ${count.toLocaleString("en")} of ${plural(total, "labelled question")}`
    : plural(count, "labelled question");
}

/** Describe a share of questions: `0.850 (17 of 20)`. */
export function describeHits(hits: number, count: number): string {
  return `${num(hits / count, 3)} (${hits} of ${count})`;
}

/** Describe the questions that a hit@k counts before and after: ` (17 of 20 → 19 of 20)`; "" for other metrics. */
export function describeCounts(metric: Metric, count: number, same: boolean): string {
  if (!metric.metric.startsWith("hit@")) return "";
  const of = (share: number) => `${Math.round(share * count)} of ${count}`;
  return same
    ? ` (${of(metric.value)})`
    : ` (${of(metric.value - metric.difference)} → ${of(metric.value)})`;
}

export function Metrics({ quality: { metrics = [], same, count } }: { quality: Quality }) {
  return (
    <dl class="metrics">
      {metrics.map((metric) => (
        <div key={metric.metric}>
          <dt>{metric.metric === "ndcg@10" ? "nDCG@10" : metric.metric}</dt>
          <dd>
            {!same && `${num(metric.value - metric.difference, 3)} → `}
            <b class={same ? "" : judge(metric)}>{num(metric.value, 3)}</b>
            <span class="counts">{describeCounts(metric, count, same)}</span>
            {!same && " "}
            {!same && <span class="note">{describeDifference(metric)}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The panel next to ranks. A click on a question explains its ranks in words. */
export function QualityPanel({ quality }: { quality: Quality }) {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [open, setOpen] = useState<{ id: number; sentences: string[] } | null>(null);
  useEffect(() => setOpen(null), [quality]); // An explanation of earlier scores would be wrong.
  if (quality.note) return <p class="quality note">{visible(quality.note)}</p>;
  if (!quality.metrics) return null;
  const { gained, lost } = quality.metrics[0]!;
  const toggle = (id: number) =>
    open?.id === id
      ? setOpen(null)
      : void ask<{ sentences: string[] }>("moved", { question: id }).then(
          (answer) => answer && setOpen({ id, ...answer }),
        );
  return (
    <section class="quality" aria-label="Quality on labelled questions">
      <Metrics quality={quality} />
      <p class="note" aria-live="polite">
        {`On ${describeSample(quality)}`}
        {!quality.same && (
          <>
            {`, top ${quality.cut}: `}
            <span class={gained ? "better" : ""}>{`${gained} gained`}</span>
            {", "}
            <span class={lost ? "worse" : ""}>{`${lost} lost`}</span>
          </>
        )}
      </p>
      {!quality.same && (
        <ul class="changes" aria-label="Questions gained and lost">
          {[...quality.lost, ...quality.gained].map((changed, index) => {
            const isLost = index < quality.lost.length;
            return (
              <li key={changed.id}>
                <button
                  type="button"
                  class={`plain ${isLost ? "worse" : "better"}`}
                  aria-expanded={open?.id === changed.id}
                  disabled={!!offline}
                  title={offline || "Why?"}
                  onClick={() => toggle(changed.id)}
                >
                  <span>{isLost ? "✗ lost" : "✓ gained"}</span>
                  <UserText class="line" text={changed.query} />
                  <span class="number">{`${changed.before ?? "–"} → ${changed.after ?? "–"}`}</span>
                </button>
                {open?.id === changed.id && (
                  <div class="told">
                    {open.sentences.map((sentence) => (
                      <p key={sentence} dir="auto">
                        {visible(sentence)}
                      </p>
                    ))}
                  </div>
                )}
              </li>
            );
          })}
          {gained + lost > quality.gained.length + quality.lost.length && (
            <li class="note">{`and ${gained + lost - quality.gained.length - quality.lost.length} more`}</li>
          )}
        </ul>
      )}
    </section>
  );
}
