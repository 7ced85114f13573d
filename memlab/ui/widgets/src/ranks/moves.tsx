/** Ranks before and after: one small chart a question, and the chosen one large, with what stands there. */
import { num, plural, Said, visible } from "../shared/text";

export const HEAD = 8;
const ROW = 30;

export type Move = {
  question: number;
  memory_id: number;
  rank_before: number | null;
  rank_after: number | null;
  score_before: number | null;
  score_after: number | null;
  text: string;
  kind: string;
};
export type Sum = { question: string; pairs: number; of: number; new: number };

/** Up, down or where it was: what a line's colour and its sign say. */
function way({ rank_before: before, rank_after: after }: Move): "up" | "down" | "level" {
  const gain = (before ?? Infinity) - (after ?? Infinity);
  return gain > 0 ? "up" : gain < 0 ? "down" : "level";
}

const inside = (rank: number | null) => rank !== null && rank <= HEAD;

/** Height of a rank on a scale of rows; what is not in the head comes from below. */
const at = (rank: number | null) => (inside(rank) ? rank! - 0.5 : HEAD + 0.9);

function Lines({
  moves,
  width,
  height,
  class: name,
}: {
  moves: Move[];
  width: number;
  height: number;
  class: string;
}) {
  const scale = height / (HEAD + (name === "slope" ? 0 : 0.4));
  const order = { level: 0, down: 1, up: 2 };
  const drawn = [...moves].sort((a, b) => order[way(a)] - order[way(b)]);
  return (
    <svg
      class={name}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {drawn.map((move) => {
        const [from, to] = [at(move.rank_before) * scale, at(move.rank_after) * scale];
        const d = `M 0 ${from} C ${width / 2} ${from} ${width / 2} ${to} ${width} ${to}`;
        if (name === "mini") return <path key={move.memory_id} class={way(move)} d={d} />; // ten charts that glide would cost frames
        return (
          <path
            key={move.memory_id}
            class={`${way(move)} glides`}
            d={d}
            style={`d: path("${d}")`}
          />
        );
      })}
    </svg>
  );
}

export function Minis({
  sums,
  moves,
  chosen,
  choose,
}: {
  sums: Sum[];
  moves: Move[];
  chosen: number;
  choose: (place: number) => void;
}) {
  return (
    <ol class="minis" aria-label="Questions">
      {sums.map((sum, place) => (
        <li key={place}>
          <button
            type="button"
            aria-pressed={place === chosen}
            onClick={() => choose(place)}
            title={visible(sum.question)}
          >
            <Lines
              class="mini"
              width={100}
              height={44}
              moves={moves.filter((move) => move.question === place)}
            />
            <span class="ask">
              <Said text={sum.question} />
            </span>
            <span class={sum.new ? "count some" : "count"}>
              {sum.new ? plural(sum.new, "change") : sum.pairs ? "same top 5" : "same order"}
            </span>
          </button>
        </li>
      ))}
    </ol>
  );
}

export type SlopeProps = {
  moves: Move[];
  heads: [string, string];
  open: number | null;
  toggle?: (memory: number) => void;
};

/** The two orders side by side, a line from each memory's place in one to its place in the other. */
export function Slope({ moves, heads: [before, after], open, toggle }: SlopeProps) {
  const left = moves
    .filter((move) => inside(move.rank_before))
    .sort((a, b) => a.rank_before! - b.rank_before!);
  const right = moves
    .filter((move) => inside(move.rank_after))
    .sort((a, b) => a.memory_id - b.memory_id);
  const height = ROW * Math.max(left.length, right.length);
  return (
    <div class="slopes">
      <div class="heads">
        <span>{before}</span>
        <span />
        <span>{after}</span>
      </div>
      <div class="sides" style={{ height: `${height}px` }}>
        <ol class="side" aria-label={before}>
          {left.map((move) => (
            <li
              key={move.memory_id}
              class="row"
              style={{
                height: `${ROW}px`,
                transform: `translateY(${(move.rank_before! - 1) * ROW}px)`,
              }}
            >
              <span class="place number">{move.rank_before}</span>
              <Said class="line" text={move.text} />
              {!inside(move.rank_after) && (
                <span class="badge down" title="Its rank after">
                  {move.rank_after === null ? "▼ out" : `▼ to ${move.rank_after}`}
                </span>
              )}
            </li>
          ))}
        </ol>
        <div class="between">
          <Lines class="slope" width={80} height={HEAD * ROW} moves={moves} />
        </div>
        <ol class="side after" aria-label={after}>
          {right.map((move) => (
            <li
              key={move.memory_id}
              class={`row glides ${open === move.memory_id ? "open" : ""}`}
              data-memory={move.memory_id}
              data-rank={move.rank_after}
              style={{
                height: `${ROW}px`,
                transform: `translateY(${(move.rank_after! - 1) * ROW}px)`,
              }}
            >
              <span class="place number">{move.rank_after}</span>
              {toggle ? (
                <button
                  type="button"
                  class="plain line"
                  aria-expanded={open === move.memory_id}
                  onClick={() => toggle(move.memory_id)}
                  title={`${visible(move.text)}\n#${move.memory_id} · ${visible(move.kind)} · score ${num(move.score_after)}`}
                >
                  <Said text={move.text} />
                </button>
              ) : (
                <Said class="line" text={move.text} />
              )}
              <Badge move={move} />
            </li>
          ))}
        </ol>
      </div>
    </div>
  );
}

function Badge({ move }: { move: Move }) {
  const where = way(move);
  if (where === "level")
    return (
      <span class="badge" aria-label="unmoved">
        =
      </span>
    );
  if (!inside(move.rank_before))
    return (
      <span class="badge up" title="Its rank before">{`▲ from ${move.rank_before ?? "none"}`}</span>
    );
  const steps = Math.abs(move.rank_before! - move.rank_after!);
  return (
    <span
      class={`badge ${where}`}
      title={`Rank ${move.rank_before} before`}
    >{`${where === "up" ? "▲" : "▼"} ${steps}`}</span>
  );
}

/** `38 of 450 pairs reordered · 4 top-5 changes in 3 questions`. */
export function summary(sums: Sum[]): string {
  const total = (key: "pairs" | "of" | "new") => sums.reduce((sum, one) => sum + one[key], 0);
  const touched = sums.filter((one) => one.new).length;
  if (!total("pairs") && !total("new"))
    return `The same order in ${plural(sums.length, "question")}`;
  const top = `${plural(total("new"), "top-5 change")}${touched ? ` in ${plural(touched, "question")}` : ""}`;
  return `${total("pairs").toLocaleString("en")} of ${total("of").toLocaleString("en")} pairs reordered · ${top}`;
}
