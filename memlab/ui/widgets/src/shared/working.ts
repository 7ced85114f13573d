/** Work that takes longer than a request: Python begins it, and the widget polls until it is done. */
import { useCallback, useRef, useState } from "preact/hooks";
import { useAsk } from "./widget";

export type Working = { work: string; seconds: number };
// Milliseconds between two polls: soon enough for a person, and cheap for the kernel.
const POLL_INTERVAL = 300;

/** Return `begin(verb, values)` and the work that is under way, or null. Results arrive as traits. */
export function useWorking(): [
  (verb: string, values: Record<string, unknown>) => Promise<void>,
  Working | null,
] {
  const ask = useAsk();
  const [current, setCurrent] = useState<Working | null>(null);
  const isPolling = useRef(false);
  const begin = useCallback(
    async (verb: string, values: Record<string, unknown>) => {
      if ((await ask(verb, values)) === undefined || isPolling.current) return;
      isPolling.current = true;
      for (;;) {
        const progress = await ask<Partial<Working>>("progress");
        setCurrent(progress?.work ? (progress as Working) : null);
        if (!progress?.work) break; // The work is done, or failed and shows a fault.
        await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL));
      }
      isPolling.current = false;
    },
    [ask],
  );
  return [begin, current];
}
