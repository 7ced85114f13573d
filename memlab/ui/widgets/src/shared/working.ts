/** Work that takes longer than a request: begun in Python, and asked about until it is done. */
import { useCallback, useRef, useState } from "preact/hooks";
import { useAsk } from "./widget";

export type Working = { work: string; seconds: number };
const PAUSE = 300; // milliseconds between two questions how far it is

/** `begin(verb, values)`, and what is under way. Its results arrive as traits. */
export function useWorking(): [
  (verb: string, values: Record<string, unknown>) => Promise<void>,
  Working | null,
] {
  const ask = useAsk();
  const [now, setNow] = useState<Working | null>(null);
  const asking = useRef(false);
  const begin = useCallback(
    async (verb: string, values: Record<string, unknown>) => {
      if ((await ask(verb, values)) === undefined || asking.current) return;
      asking.current = true;
      for (;;) {
        const found = await ask<Partial<Working>>("progress");
        setNow(found?.work ? (found as Working) : null);
        if (!found?.work) break; // all is done, or it was refused, which is shown
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
      }
      asking.current = false;
    },
    [ask],
  );
  return [begin, now];
}
