/** Life player: the state of a lab after each event under two packs, what decided the event, and a forecast. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { rows as rowsOf, type Table } from "../shared/table";
import { FoldedText, plural, visible } from "../shared/text";
import {
  useAsk,
  useLatest,
  useOfflineReason,
  useRows,
  useTable,
  useTrait,
  widget,
} from "../shared/widget";
import { useWorking } from "../shared/working";
import { Curves } from "./curves";
import { Field, MARKS } from "./field";
import { findFrame, splitFrames } from "./frames";
import css from "./player.css";
import { type Events, Timeline } from "./timeline";
import type { About, Happened, Memory } from "./types";

const STEP = 220; // Milliseconds of each key frame during playback.

function Player() {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [about] = useTrait<About>("_about");
  const [event, setEvent] = useTrait<number>("event");
  const [packs] = useTrait<string[]>("packs");
  const [chosen] = useTrait<number[]>("chosen");
  const [until] = useTrait<string>("until");
  const [params] = useTrait<Record<string, number>>("params");
  const table = useTable("_events");
  const keyTable = useTable("_frames");
  const exactTable = useTable("_frame");
  const memoryRows = useRows<Memory>("_memories");
  const [begin, now] = useWorking();
  const [playing, setPlaying] = useState(false);
  const [tuned, setTuned] = useState(params);

  const events = useMemo<Events>(() => {
    const column = (name: string) => table?.getChild(name)?.toArray() ?? [];
    return {
      event: column("event") as ArrayLike<number>,
      at: column("at") as ArrayLike<number>,
      kind: column("kind") as string[],
    };
  }, [table]);
  const keys = useMemo(() => splitFrames(keyTable), [keyTable]);
  const exact = useMemo(() => splitFrames(exactTable)[0], [exactTable]);
  const memories = useMemo(
    () => new Map(memoryRows.map((memory) => [Number(memory.id), memory])),
    [memoryRows],
  );
  const ids = useMemo(() => [...memories.keys()], [memories]);
  const at = event || about.head;
  const frame = exact?.event === at ? exact : findFrame(keys, at);
  const row = findRow(events.event, at);

  const [happened, setHappened] = useState<(Happened & { memories: Table }) | null>(null);
  const look = useLatest(async (wanted: number) => {
    setHappened((await ask<Happened & { memories: Table }>("event", { event: wanted })) ?? null);
  });
  const draw = useLatest(
    (wanted: number, memoryIds: number[], day: string, values: Record<string, number>) =>
      begin("curves", { event: wanted, chosen: memoryIds, until: day, params: values }),
  );
  const settle = useMemo(() => {
    let timer: ReturnType<typeof setTimeout>;
    return (call: () => void) => {
      clearTimeout(timer);
      timer = setTimeout(call, 180); // Wait until the slider rests.
    };
  }, []);

  useEffect(() => {
    if (!offline && about.memories && !keys.length) void begin("frames", { packs });
  }, [about.generation, about.memories > 0]);
  useEffect(() => {
    if (offline || !about.memories) return;
    if (playing) return look(at); // The forecast would take longer than a step.
    settle(() => {
      if (!keys.some((frame) => frame.event === at)) void begin("frame", { event: at });
      look(at);
      draw(at, chosen, until, tuned);
    });
  }, [at, playing, about.head, packs.join()]);
  useEffect(() => setTuned(params), [params]);
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => {
      const next = keys.find((frame) => frame.event > (event || about.head));
      if (next) setEvent(next.event);
      else setPlaying(false);
    }, STEP);
    return () => clearInterval(timer);
  }, [playing, event, keys]);

  const play = () => {
    if (!playing && keys.length && at >= keys.at(-1)!.event) setEvent(keys[0]!.event);
    setPlaying(!playing);
  };
  const choose = (id: number) => {
    const next = chosen.includes(id)
      ? chosen.filter((other) => other !== id)
      : [...chosen, id].slice(-6);
    draw(at, next, until, tuned);
  };
  const touched = useMemo(
    () =>
      new Set(
        happened?.event === at
          ? rowsOf<Memory>(happened.memories).map((memory) => Number(memory.id))
          : [],
      ),
    [happened, at],
  );
  if (!about.memories)
    return <p class="empty">This lab has no memories yet: lab.remember("…") stores one.</p>;
  return (
    <div class="player">
      <Timeline about={about} events={events} at={at} />
      <div class="scrub">
        <button
          type="button"
          class="primary"
          aria-pressed={playing}
          disabled={keys.length < 2}
          onClick={play}
        >
          {playing ? "❚❚ Pause" : "▶ Play"}
        </button>
        <button
          type="button"
          aria-label="Previous event"
          disabled={at <= about.first}
          onClick={() => setEvent(at - 1)}
        >
          ‹
        </button>
        <input
          type="range"
          aria-label="Event"
          min={about.first}
          max={about.head}
          value={at}
          aria-valuetext={describeEvent(events, row, at)}
          onInput={(change) => setEvent(Number(change.currentTarget.value))}
        />
        <button
          type="button"
          aria-label="Next event"
          disabled={at >= about.head}
          onClick={() => setEvent(at + 1)}
        >
          ›
        </button>
        <output class="when">{describeEvent(events, row, at)}</output>
      </div>
      <p class="note status" aria-live="polite">
        {offline ||
          (now
            ? `Working for ${now.seconds.toFixed(0)} s: ${now.work} …`
            : frame && frame.event !== at
              ? `nearest key frame: event ${frame.event.toLocaleString("en")}`
              : " ")}
      </p>
      <div class="fields">
        {([0, 1] as const).map((side) => (
          <div key={side}>
            <label class="pack">
              {side ? "compared with" : "pack"}
              <select
                value={packs[side]}
                disabled={!!offline}
                onChange={(change) => {
                  const next = [...packs];
                  next[side] = change.currentTarget.value;
                  setTuned({});
                  void begin("frames", { packs: next });
                }}
              >
                {about.packs.map((name) => (
                  <option key={name} value={name}>
                    {visible(name)}
                  </option>
                ))}
              </select>
            </label>
            <Field
              title={packs[side]!}
              side={side}
              frame={frame}
              about={about}
              memories={memories}
              ids={ids}
              chosen={chosen}
              touched={touched}
              choose={offline ? () => {} : choose}
            />
          </div>
        ))}
      </div>
      <ul class="keys marks" aria-label="Legend of the cells">
        {Object.entries(MARKS).map(([name, text]) => (
          <li key={name}>
            <i class={`cell ${name}`} />
            {text}
          </li>
        ))}
        <li class="note">paler = lower retention</li>
        {about.drawn < about.memories && (
          <li class="note">{`${about.drawn.toLocaleString("en")} of ${plural(about.memories, "memory", "memories")}, an even sample`}</li>
        )}
      </ul>
      <NearbyEvents events={events} row={row} at={at} go={setEvent} />
      {happened && <Decided happened={happened} />}
      <Curves
        about={about}
        memories={memories}
        offline={offline}
        params={tuned}
        until={until}
        change={(values, day) => {
          setTuned(values);
          draw(at, chosen, day, values);
        }}
        choose={(memoryIds) => draw(at, memoryIds, until, tuned)}
      />
    </div>
  );
}

/** Buttons for the events around the current one. */
function NearbyEvents({
  events,
  row,
  at,
  go,
}: {
  events: Events;
  row: number;
  at: number;
  go: (event: number) => void;
}) {
  const from = Math.max(0, Math.min(row - 3, events.event.length - 7));
  const nearby = Array.from(
    { length: Math.min(7, events.event.length) },
    (_, index) => from + index,
  );
  return (
    <div class="around" role="group" aria-label="Nearby events">
      {nearby.map((row) => {
        const event = Number(events.event[row]);
        return (
          <button key={event} type="button" aria-pressed={event === at} onClick={() => go(event)}>
            <span class="note">{event.toLocaleString("en")}</span> {visible(events.kind[row]!)}
          </button>
        );
      })}
    </div>
  );
}

function Decided({ happened }: { happened: Happened & { memories: Table } }) {
  const [open, setOpen] = useState<string | null>(null);
  const shown = happened.deciders.find((decider) => decider.slot === open);
  return (
    <section class="decided" aria-label="Selected event">
      <h3>{`Event ${happened.event.toLocaleString("en")}: ${visible(happened.kind)}${happened.what ? `, ${visible(happened.what)}` : ""}`}</h3>
      <ul>
        {rowsOf<Memory & { status: string }>(happened.memories).map((memory) => (
          <li key={memory.id}>
            <span class="note">{`#${memory.id} ${memory.status}`}</span>{" "}
            <FoldedText text={memory.text} />
          </li>
        ))}
        {happened.count > happened.memories.numRows && (
          <li class="note">{`and ${plural(happened.count - happened.memories.numRows, "other memory", "other memories")}`}</li>
        )}
      </ul>
      <p>
        {happened.deciders.length > 0 ? (
          "Decided by "
        ) : happened.pack ? (
          ""
        ) : (
          <span class="note">No policy decided this event.</span>
        )}
        {happened.deciders.map((decider) => (
          <button
            key={decider.slot}
            type="button"
            class="slot"
            aria-expanded={open === decider.slot}
            onClick={() => setOpen(open === decider.slot ? null : decider.slot)}
          >
            {`${decider.slot} v${decider.number}`} <span class="note">{`[${decider.hash}]`}</span>
          </button>
        ))}
      </p>
      {shown && (
        <div class="source">
          <p class="note">{`${visible(shown.pack)}/${shown.slot}, version ${shown.number}${shown.reason ? `: ${visible(shown.reason)}` : ""}`}</p>
          <pre tabIndex={0}>
            <code>{visible(shown.source)}</code>
          </pre>
        </div>
      )}
    </section>
  );
}

/** Return the row of the last event at or before `wanted`, by binary search. */
function findRow(events: ArrayLike<number | bigint>, wanted: number): number {
  let [low, high] = [0, events.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (Number(events[middle]) <= wanted) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

function describeEvent(events: Events, row: number, at: number): string {
  const time = events.at[row];
  return `event ${at.toLocaleString("en")}${time === undefined ? "" : ` · ${new Date(Number(time)).toISOString().slice(0, 16).replace("T", " ")}`}`;
}

export default widget("Life player", Player, css);
