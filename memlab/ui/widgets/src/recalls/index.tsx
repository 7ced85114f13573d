/** Recall log: search and pages over all recalls, each of which opens as of its instant. */
import { STYLES } from "../explorer/index";
import { plural } from "../shared/text";
import {
  useAsk,
  useForm,
  useLatest,
  useOfflineReason,
  useRows,
  useTrait,
  widget,
} from "../shared/widget";
import { NoRecalls, OUTCOMES, type Outcome, type Recall, Recalls, summarizePage } from "./list";
import css from "./recalls.css";

type Log = { all: number; matching: number; page: number };

function RecallLog() {
  const ask = useAsk();
  const offline = useOfflineReason();
  const [search] = useTrait<string>("search");
  const [outcome] = useTrait<string>("outcome");
  const [start] = useTrait<number>("start");
  const [log] = useTrait<Log>("_log");
  const recalls = useRows<Recall>("_recalls");
  const [form, setForm] = useForm({ search, outcome, start });
  const list = useLatest((values: typeof form) => ask("list", values));
  const change = (part: Partial<typeof form>) => {
    const next = { ...form, start: 0, ...part };
    setForm(next);
    list(next);
  };
  return (
    <div class="log">
      <div class="finding">
        <label class="wide">
          Search
          <input
            type="search"
            dir="auto"
            value={form.search}
            disabled={!!offline}
            placeholder="Query, agent or session"
            onInput={(event) => change({ search: event.currentTarget.value })}
          />
        </label>
        <label>
          Outcome
          <select
            value={form.outcome}
            disabled={!!offline}
            onChange={(event) => change({ outcome: event.currentTarget.value })}
          >
            <option value="">all</option>
            {(Object.keys(OUTCOMES) as Outcome[]).map((name) => (
              <option key={name} value={name}>
                {OUTCOMES[name]}
              </option>
            ))}
          </select>
        </label>
        <span class="pages">
          <button
            type="button"
            disabled={!!offline || !form.start}
            onClick={() => change({ start: Math.max(0, form.start - log.page) })}
          >
            Newer
          </button>
          <span class="note" aria-live="polite">
            {summarizePage(log, form.start)}
          </span>
          <button
            type="button"
            disabled={!!offline || form.start + log.page >= log.matching}
            onClick={() => change({ start: form.start + log.page })}
          >
            Older
          </button>
        </span>
      </div>
      {offline && (
        <p class="note">{`${offline} This page has the latest of ${plural(log.all, "recall")}.`}</p>
      )}
      {recalls.length ? <Recalls /> : <NoRecalls />}
    </div>
  );
}

export default widget("Recall log", RecallLog, STYLES + css);
