/** Memory table: all memories in rows that load while scrolling, charts that filter each other, and corrections. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { rows, type Table } from "../shared/table";
import { Icon, plural, UserText, visible } from "../shared/text";
import {
  useAsk,
  useForm,
  useLatest,
  useOfflineReason,
  useRows,
  useTrait,
  widget,
} from "../shared/widget";
import { Details, USED } from "./details";
import { type Bar, Span, type Wanted, Words } from "./heads";
import css from "./table.css";

type Ask = ReturnType<typeof useAsk>;

type Row = {
  id: number;
  text: string;
  kind: string;
  status: string;
  speaker: string | null;
  project: string | null;
  session: string | null;
  created: number | Date;
  access: number;
  pinned: boolean;
  superseded_by: number | null;
  conflict: boolean;
};
type About = {
  memories: number;
  shown: number;
  event: number;
  conflicts: number;
  writable: boolean;
  most: number;
};
type Filters = Record<string, Wanted | boolean[]>;
type Request = { filters: Filters; search: string; by: string; sort: [string, boolean] | [] };

const ROW = 42; // Pixels of a row.
const VIEW = 10 * ROW;
const PAGE = 100; // Rows of one request, as in memlab/ui/widgets/_table.py.
// Browsers draw no element above some 16 million pixels. A million rows share half of that.
const TALLEST = 8_000_000;
const HEADS: [string, "words" | "span"][] = [
  ["kind", "words"],
  ["status", "words"],
  ["speaker", "words"],
  ["project", "words"],
  ["session", "words"],
  ["created", "span"],
  ["access", "span"],
];

const WIDTHS: Record<string, string> = {
  kind: "100px",
  status: "92px",
  speaker: "86px",
  project: "86px",
  session: "86px",
  created: "116px",
  access: "74px",
};

function MemoryTable() {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [filters] = useTrait<Filters>("filters");
  const [search] = useTrait<string>("search");
  const [by] = useTrait<string>("by");
  const [sort] = useTrait<Request["sort"]>("sort");
  const [ids, setIds] = useTrait<number[]>("ids");
  const [among, setAmong] = useTrait<number[]>("among");
  const [about] = useTrait<About>("_about");
  const bars = useRows<Bar>("_bars");
  const first = useRows<Row>("_page");
  const [open, setOpen] = useState<number | null>(null);
  const [hidden, setHidden] = useState(["session"]);

  const [form, setForm] = useForm<Request>({ filters, search, by, sort });
  const show = useLatest((request: Request) => ask("show", request));
  const change = (part: Partial<Request>) => {
    const next = { ...form, ...part };
    setForm(next);
    show(next);
  };
  const filter = (column: string, wanted: Wanted | boolean[] | undefined) => {
    const { [column]: _, ...rest } = form.filters;
    change({ filters: wanted ? { ...rest, [column]: wanted } : rest });
  };
  const byColumn = useMemo(() => {
    const columns = new Map<string, Bar[]>(HEADS.map(([name]) => [name, []]));
    for (const bar of bars) columns.get(bar.column)?.push(bar);
    return columns;
  }, [bars]);
  const filled = HEADS.filter(
    ([name]) =>
      form.filters[name] ||
      name === "kind" ||
      byColumn.get(name)!.some((bar) => bar.value !== null || bar.low !== null),
  );
  // A column that filters stays, so that no row is missing without a reason on screen.
  const heads = filled.filter(([name]) => form.filters[name] || !hidden.includes(name));
  const columns = `18px ${8 + 8 * String(about.memories).length}px minmax(200px, 1fr) ${heads.map(([name]) => WIDTHS[name]).join(" ")}`;
  const filtered =
    Object.keys(form.filters).length > 0 || form.search.trim() !== "" || among.length > 0;
  const ticked = useMemo(() => new Set(ids), [ids]);
  const tick = (id: number) =>
    setIds(ticked.has(id) ? ids.filter((other) => other !== id) : [...ids, id]);
  const tickAll = async () => {
    const answer = await ask<{ rows: Table }>("ids");
    if (answer)
      setIds(
        Array.from(answer.rows.getChild("id").toArray() as ArrayLike<number | bigint>, Number),
      );
  };
  const label: Record<string, string> = { access: "recalled", created: "remembered" };
  // Without an order of its own, the table shows the newest first, or the best match.
  const order: Request["sort"] = form.sort.length || about.most ? form.sort : ["created", true];

  return (
    <div class="memories">
      <div class="tools" role="search">
        <label class="search">
          Search
          <input
            type="search"
            dir="auto"
            value={form.search}
            disabled={!!offline}
            placeholder={
              form.by === "meaning"
                ? "Topic of the memory"
                : form.by === "like"
                  ? "Number of a memory"
                  : "Words of the text"
            }
            onInput={(event) => change({ search: event.currentTarget.value })}
          />
        </label>
        <label>
          By
          <select
            value={form.by}
            disabled={!!offline}
            onChange={(event) => change({ by: event.currentTarget.value })}
          >
            <option value="word">words</option>
            <option value="meaning">meaning</option>
            <option value="like">similar to #</option>
          </select>
        </label>
        {about.conflicts > 0 && (
          <button
            type="button"
            aria-pressed={!!form.filters.conflict}
            disabled={!!offline}
            onClick={() => filter("conflict", form.filters.conflict ? undefined : [true])}
          >
            <Icon shape="warning" /> {`In conflict (${about.conflicts.toLocaleString("en")})`}
          </button>
        )}
        <button
          type="button"
          disabled={!!offline || !filtered}
          onClick={() => {
            setAmong([]);
            change({ filters: {}, search: "" });
          }}
        >
          Clear filters
        </button>
        <details class="columns">
          <summary>Columns</summary>
          <div role="group" aria-label="Columns">
            {filled.map(([name]) => (
              <label key={name}>
                <input
                  type="checkbox"
                  checked={!hidden.includes(name)}
                  onChange={() =>
                    setHidden(
                      hidden.includes(name)
                        ? hidden.filter((other) => other !== name)
                        : [...hidden, name],
                    )
                  }
                />
                {label[name] ?? name}
              </label>
            ))}
          </div>
        </details>
        <button
          type="button"
          disabled={!!offline}
          aria-label="Refresh"
          title="Refresh"
          onClick={() => show(form)}
        >
          ↻
        </button>
      </div>
      {offline && <p class="note">{offline}</p>}
      <p class="note about" aria-live="polite">
        {summarize(about, form)}
        {among.length > 0 && (
          <button
            type="button"
            class="plain chip"
            disabled={!!offline}
            onClick={() => setAmong([])}
          >{`within ${among.length.toLocaleString("en")} selected ✕`}</button>
        )}
      </p>
      <div
        class="sheet"
        role="table"
        aria-label="Memories"
        aria-rowcount={about.shown + 1}
        style={{ "--columns": columns }}
      >
        <div role="rowgroup">
          <div class="row head" role="row" aria-rowindex={1}>
            <span role="columnheader" class="tick">
              <input
                type="checkbox"
                aria-label="Select all shown"
                checked={ids.length > 0 && ids.length >= about.shown}
                disabled={!!offline || !about.shown}
                onChange={(event) => (event.currentTarget.checked ? void tickAll() : setIds([]))}
              />
            </span>
            <Head
              name="id"
              label="#"
              sort={order}
              change={(to) => change({ sort: to })}
              offline={!!offline}
            />
            <Head
              name="text"
              label="text"
              sort={order}
              change={(to) => change({ sort: to })}
              offline={!!offline}
            />
            {heads.map(([name, kind]) => (
              <Head
                key={name}
                name={name}
                label={label[name] ?? name}
                sort={order}
                change={(to) => change({ sort: to })}
                offline={!!offline}
                clear={form.filters[name] ? () => filter(name, undefined) : undefined}
              >
                {kind === "words" ? (
                  <Words
                    column={name}
                    bars={byColumn.get(name)!}
                    wanted={form.filters[name] as Wanted}
                    change={(to) => filter(name, to)}
                  />
                ) : (
                  <Span
                    column={name}
                    bars={byColumn.get(name)!}
                    wanted={form.filters[name] as Wanted}
                    change={(to) => filter(name, to)}
                  />
                )}
              </Head>
            ))}
          </div>
        </div>
        <Body
          about={about}
          first={first}
          heads={heads.map(([name]) => name)}
          ticked={ticked}
          tick={tick}
          open={open}
          setOpen={setOpen}
        />
      </div>
      {!about.shown && (
        <p class="empty">
          {about.memories
            ? "No memory matches these filters."
            : 'This lab has no memories yet: lab.remember("…") stores one.'}
        </p>
      )}
      {ids.length > 0 && (
        <Ticked
          ids={ids}
          clear={() => setIds([])}
          only={() => setAmong(ids)}
          writable={about.writable}
        />
      )}
      {open !== null && (
        <Details
          memory={open}
          writable={about.writable}
          version={about.event}
          open={setOpen}
          like={(memory) => change({ search: String(memory), by: "like", filters: {} })}
        />
      )}
    </div>
  );
}

type HeadProps = {
  name: string;
  label: string;
  sort: Request["sort"];
  change: (to: Request["sort"]) => void;
  offline: boolean;
  clear?: () => void;
  children?: preact.ComponentChildren;
};

function Head({ name, label, sort, change, offline, clear, children }: HeadProps) {
  const sorted = sort[0] === name ? (sort[1] ? "descending" : "ascending") : "none";
  const next: Request["sort"] =
    sorted === "none" || (sorted === "descending" && name === "created") // the default order
      ? [name, false]
      : sorted === "ascending"
        ? [name, true]
        : [];
  return (
    <div role="columnheader" aria-sort={sorted} class={clear ? "filtered" : ""}>
      <span class="name">
        <button
          type="button"
          class="plain"
          disabled={offline}
          onClick={() => change(next)}
          title={`Sort by ${label}`}
        >
          {label}
          <span aria-hidden="true">
            {sorted === "none" ? <i> ↕</i> : sorted === "ascending" ? " ↑" : " ↓"}
          </span>
        </button>
        {clear && (
          <button
            type="button"
            class="plain clear"
            aria-label={`Clear the filter of ${label}`}
            onClick={clear}
          >
            ✕
          </button>
        )}
      </span>
      {children}
    </div>
  );
}

type BodyProps = {
  about: About;
  first: Row[];
  heads: string[];
  ticked: Set<number>;
  tick: (id: number) => void;
  open: number | null;
  setOpen: (id: number | null) => void;
};

function Body({ about, first, heads, ticked, tick, open, setOpen }: BodyProps) {
  const ask = useAsk();
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [focus, setFocus] = useState<number | null>(null);
  const pages = useRef(new Map<number, Row[]>());
  const version = useRef<unknown>(null);
  const [, redraw] = useState(0);
  if (version.current !== first) {
    version.current = first;
    pages.current = new Map([[0, first]]);
  }
  const total = about.shown;
  const tall = Math.min(total * ROW, TALLEST);
  const view = Math.min(VIEW, Math.max(ROW, tall));
  // If all rows are too tall for one element, the scroll bar is a scale and rows are placed from the top of the view.
  const exact = tall === total * ROW;
  const scroll = Math.min(top, Math.max(0, tall - view));
  const start = exact
    ? Math.floor(scroll / ROW)
    : Math.round((scroll / Math.max(1, tall - view)) * Math.max(0, total - view / ROW));
  const end = Math.min(total, start + Math.ceil(view / ROW) + 2);
  const fetch = useLatest(async (from: number, to: number) => {
    const request = version.current;
    for (let page = Math.floor(from / PAGE); page * PAGE < to; page++) {
      if (pages.current.has(page)) continue;
      const answer = await ask<{ rows: Table }>("page", { start: page * PAGE, count: PAGE });
      if (!answer || request !== version.current) return;
      pages.current.set(page, rows<Row>(answer.rows));
      redraw((count) => count + 1);
    }
  });
  useEffect(() => {
    for (let page = Math.floor(start / PAGE); page * PAGE < end; page++)
      if (!pages.current.has(page)) return fetch(start, end);
  });
  useLayoutEffect(() => {
    // Scroll to the top for another order.
    if (box.current) box.current.scrollTop = 0;
    setTop(0);
  }, [about.shown, first[0]?.id]);
  useLayoutEffect(() => {
    if (focus !== null)
      box.current
        ?.querySelector<HTMLElement>(`[data-at="${focus}"] .open`)
        ?.focus({ preventScroll: true });
  }, [focus, start]);
  const move = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    const index = Number(
      (event.target as HTMLElement).closest<HTMLElement>("[data-at]")?.dataset.at,
    );
    if (!by || Number.isNaN(index)) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(total - 1, index + by));
    if (exact && (next * ROW < scroll || (next + 1) * ROW > scroll + view))
      box.current!.scrollTop = Math.max(0, next * ROW - (by > 0 ? view - ROW : 0));
    if (!exact && (next < start || next >= end - 2)) {
      const above = by > 0 ? next - Math.floor(view / ROW) + 2 : next;
      box.current!.scrollTop = (above / Math.max(1, total - view / ROW)) * (tall - view);
    }
    setFocus(next);
  };
  const shown = [];
  for (let index = start; index < end; index++) {
    const row = pages.current.get(Math.floor(index / PAGE))?.[index % PAGE];
    const y = exact ? index * ROW : scroll + (index - start) * ROW;
    shown.push(
      row ? (
        <div
          key={index}
          class={row.id === open ? "row opened" : "row"}
          role="row"
          aria-rowindex={index + 2}
          data-at={index}
          data-memory={row.id}
          style={{ top: `${y}px` }}
        >
          <span role="cell" class="tick">
            <input
              type="checkbox"
              aria-label={`Select memory ${row.id}`}
              checked={ticked.has(row.id)}
              onChange={() => tick(row.id)}
            />
          </span>
          <span role="cell" class="number">
            {row.id}
          </span>
          <span role="cell" class="what">
            {row.pinned && (
              <b class="mark" title="Pinned">
                <Icon shape="pin" />
                <span class="hidden">pinned</span>
              </b>
            )}
            {row.conflict && (
              <b class="mark" title="Contradicts another memory">
                <Icon shape="warning" />
                <span class="hidden">in conflict</span>
              </b>
            )}
            <button
              type="button"
              class="plain open"
              aria-expanded={row.id === open}
              onClick={() => setOpen(row.id === open ? null : row.id)}
            >
              <UserText text={row.text.replaceAll("\n", " ")} />
            </button>
          </span>
          {heads.map((name) => (
            <span
              key={name}
              role="cell"
              class={name === "access" ? "number" : name === "created" ? "created" : ""}
              title={name === "created" ? formatMinute(row.created) : undefined}
            >
              {cell(row, name)}
            </span>
          ))}
        </div>
      ) : (
        <div
          key={index}
          class="row waiting"
          role="row"
          aria-rowindex={index + 2}
          style={{ top: `${y}px` }}
        >
          <span role="cell">…</span>
        </div>
      ),
    );
  }
  return (
    <div
      class="scroll"
      role="rowgroup"
      ref={box}
      style={{ height: `${total ? view : 0}px` }}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={move}
    >
      <div role="presentation" style={{ height: `${tall}px` }}>
        {shown}
      </div>
    </div>
  );
}

function cell(row: Row, name: string) {
  if (name === "created") return formatMinute(row.created).slice(0, 10);
  if (name === "status")
    return (
      <span class={`status ${USED.includes(row.status) ? "used" : "unused"}`}>{row.status}</span>
    );
  if (name === "access") return row.access.toLocaleString("en");
  const value = row[name as "kind" | "speaker" | "project" | "session"];
  return value === null ? <span class="none">–</span> : <UserText text={value} />;
}

/** Format a time as `2026-03-01 12:00`. */
function formatMinute(time: number | Date): string {
  return new Date(Number(time)).toISOString().slice(0, 16).replace("T", " ");
}

function Ticked({
  ids,
  clear,
  only,
  writable,
}: {
  ids: number[];
  clear: () => void;
  only: () => void;
  writable: boolean;
}) {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [reason, setReason] = useState<string | null>(null);
  const [done, setDone] = useState("");
  const blocked = !!offline || !writable;
  const act = (verb: string, values: Record<string, unknown>, what: string) =>
    ask<{ ids: number[] }>(verb, values).then(
      (answer) => answer && setDone(`${plural(answer.ids.length, "memory", "memories")} ${what}`),
    );
  return (
    <div class="ticked" role="group" aria-label="Selected memories">
      <strong>{`${ids.length.toLocaleString("en")} selected`}</strong>
      <button type="button" disabled={!!offline} onClick={only}>
        Show only these
      </button>
      <button
        type="button"
        disabled={blocked}
        onClick={() => act("forget", { memories: ids }, "forgotten")}
      >
        Forget
      </button>
      <button
        type="button"
        disabled={blocked}
        onClick={() => act("restore", { memories: ids }, "restored")}
      >
        Restore
      </button>
      <button
        type="button"
        disabled={blocked}
        aria-expanded={reason !== null}
        onClick={() => setReason(reason === null ? "" : null)}
      >
        Flag as wrong …
      </button>
      {reason !== null && (
        <>
          <input
            type="text"
            aria-label="Why are they wrong?"
            placeholder="Why are they wrong?"
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
          <button
            type="button"
            class="primary"
            disabled={!reason.trim()}
            onClick={() =>
              act("wrong", { memories: ids, reason }, "flagged as wrong").then(() =>
                setReason(null),
              )
            }
          >
            Flag as wrong
          </button>
        </>
      )}
      <button type="button" disabled={!!offline} onClick={() => void exportRows(ask)}>
        Export as JSON lines
      </button>
      <button type="button" class="plain" onClick={clear}>
        Clear selection
      </button>
      <span class="done" role="status">
        {done}
      </span>
    </div>
  );
}

/** Save the selected memories as a file that `lab.load` reads. Python sends it in parts. */
async function exportRows(ask: Ask): Promise<void> {
  const parts: string[] = [];
  for (let start: number | null = 0; start !== null; ) {
    const part: { lines: string; next: number | null } | undefined = await ask("export", { start });
    if (!part) return;
    parts.push(part.lines);
    start = part.next;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: "application/x-ndjson" }));
  link.download = "memories.jsonl";
  link.click();
  URL.revokeObjectURL(link.href);
}

function summarize(about: About, form: Request): string {
  const all = plural(about.memories, "memory", "memories");
  const best = about.most && !form.sort.length ? ", best match first" : "";
  const some =
    about.shown === about.memories ? all : `${about.shown.toLocaleString("en")} of ${all}${best}`;
  if (!form.search.trim() || form.by === "word") return some;
  return form.by === "meaning"
    ? `${some} · results of a recall for “${visible(form.search)}” (at most ${about.most}, not logged)`
    : `${some} · the ${about.most} most similar to memory ${visible(form.search)}`;
}

export default widget("Memory table", MemoryTable, css);
