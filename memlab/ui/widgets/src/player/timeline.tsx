/** A histogram of all events by kind, with a mark at the current event. */
import { useMemo } from "preact/hooks";
import { visible } from "../shared/text";
import type { About } from "./types";

export type Events = {
  event: ArrayLike<number | bigint>;
  at: ArrayLike<number | bigint>;
  kind: string[];
};
const KINDS = ["remember", "recall", "feedback", "maintain"];
const COLOURS: Record<string, string> = {
  remember: "--c0",
  recall: "--c5",
  feedback: "--c1",
  maintain: "--c2",
  other: "--c3",
};
const BINS = 150; // About one for each six pixels of a widget.

export function Timeline({ about, events, at }: { about: About; events: Events; at: number }) {
  const bins = useMemo(() => {
    const bins = Array.from({ length: BINS }, () => new Map<string, number>());
    const span = Math.max(1, about.head - about.first + 1);
    for (let row = 0; row < events.event.length; row++) {
      const kind = KINDS.includes(events.kind[row]!) ? events.kind[row]! : "other";
      const bin =
        bins[
          Math.min(
            BINS - 1,
            Math.max(0, Math.floor((BINS * (Number(events.event[row]) - about.first)) / span)),
          )
        ]!;
      bin.set(kind, (bin.get(kind) ?? 0) + 1);
    }
    return bins;
  }, [events, about.head]);
  const largest = Math.max(1, ...bins.map((bin) => [...bin.values()].reduce((a, b) => a + b, 0)));
  return (
    <div class="timeline">
      <svg viewBox={`0 0 ${BINS} 30`} preserveAspectRatio="none" aria-hidden="true">
        {bins.map((bin, index) => {
          let top = 30;
          return [...KINDS, "other"].map((kind) => {
            const tall = (28 * (bin.get(kind) ?? 0)) / largest;
            top -= tall;
            return (
              tall > 0 && (
                <rect
                  key={`${index}${kind}`}
                  x={index}
                  y={top}
                  width={0.86}
                  height={tall}
                  fill={`var(${COLOURS[kind]})`}
                />
              )
            );
          });
        })}
        <line
          class="now"
          x1={(BINS * (at - about.first + 0.5)) / (about.head - about.first + 1)}
          x2={(BINS * (at - about.first + 0.5)) / (about.head - about.first + 1)}
          y1={0}
          y2={30}
          vector-effect="non-scaling-stroke"
        />
      </svg>
      <ul class="keys">
        {[...KINDS, "other"].map((kind) => (
          <li key={kind}>
            <b style={{ background: `var(${COLOURS[kind]})` }} />
            {visible(kind)}
          </li>
        ))}
      </ul>
    </div>
  );
}
