/** Ranks before and after a change: a small chart for each query, and a large one with texts for the chosen query. */
import { num, plural, UserText, visible } from "../shared/text";

// Ranks that are drawn, as in memlab/ui/widgets/ranks.py.
export const HEAD = 8;
// The height of a row in pixels, which fits two lines of text.
const ROW = 38;

export type Move = {
  question: number;
  memory_id: number;
  rank_before: number | null;
  rank_after: number | null;
  score_before: number | null;
  score_after: number | null;
  text: string;
  kind: string;
  wanted: boolean;
};
export type Sum = { question: string; pairs: number; of: number; new: number };

/** Return the direction of a move, which decides the colour and the sign of its line. */
export function direction({
  rank_before: before,
  rank_after: after,
}: Move): "up" | "down" | "level" {
  const gain = (before ?? Infinity) - (after ?? Infinity);
  return gain > 0 ? "up" : gain < 0 ? "down" : "level";
}

const isDrawn = (rank: number | null) => rank !== null && rank <= HEAD;

/** Return the height of a rank in rows; ranks that are not drawn come from below. */
const toRow = (rank: number | null) => (isDrawn(rank) ? rank! - 0.5 : HEAD + 0.9);

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
  const drawn = [...moves].sort((a, b) => order[direction(a)] - order[direction(b)]);
  return (
    <svg
      class={name}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {drawn.map((move) => {
        const [from, to] = [toRow(move.rank_before) * scale, toRow(move.rank_after) * scale];
        const d = `M 0 ${from} C ${width / 2} ${from} ${width / 2} ${to} ${width} ${to}`;
        if (name === "mini") return <path key={move.memory_id} class={direction(move)} d={d} />; // Animating ten charts would drop frames.
        return (
          <path
            key={move.memory_id}
            class={`${direction(move)} glides`}
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
  choose: (index: number) => void;
}) {
  return (
    <ol class="minis" aria-label="Queries">
      {sums.map((sum, index) => (
        <li key={index}>
          <button
            type="button"
            aria-pressed={index === chosen}
            onClick={() => choose(index)}
            title={visible(sum.question)}
          >
            <Lines
              class="mini"
              width={100}
              height={44}
              moves={moves.filter((move) => move.question === index)}
            />
            <span class="ask">
              <UserText text={sum.question} />
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

/** The two rankings side by side, with a line between the ranks of each memory. */
export function Slope({ moves, heads: [before, after], open, toggle }: SlopeProps) {
  const left = moves
    .filter((move) => isDrawn(move.rank_before))
    .sort((a, b) => a.rank_before! - b.rank_before!);
  const right = moves
    .filter((move) => isDrawn(move.rank_after))
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
              <Wanted move={move} />
              <UserText class="line" text={move.text} />
              {!isDrawn(move.rank_after) && (
                <span class="badge down" title="Rank after the change">
                  {move.rank_after === null ? "▼ dropped" : `▼ to ${move.rank_after}`}
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
              <Wanted move={move} />
              {toggle ? (
                <button
                  type="button"
                  class="plain line"
                  aria-expanded={open === move.memory_id}
                  onClick={() => toggle(move.memory_id)}
                  title={`${visible(move.text)}\n#${move.memory_id} · ${visible(move.kind)} · score ${num(move.score_after)}`}
                >
                  <UserText text={move.text} />
                </button>
              ) : (
                <UserText class="line" text={move.text} />
              )}
              <Badge move={move} />
            </li>
          ))}
        </ol>
      </div>
    </div>
  );
}

function Wanted({ move }: { move: Move }) {
  if (!move.wanted) return null;
  return (
    <span class="wanted" role="img" aria-label="wanted" title="wanted">
      ★
    </span>
  );
}

function Badge({ move }: { move: Move }) {
  const where = direction(move);
  if (where === "level")
    return (
      <span class="badge" aria-label="unchanged">
        =
      </span>
    );
  if (!isDrawn(move.rank_before))
    return (
      <span
        class="badge up"
        title="Rank before the change"
      >{`▲ from ${move.rank_before ?? "unranked"}`}</span>
    );
  const steps = Math.abs(move.rank_before! - move.rank_after!);
  return (
    <span
      class={`badge ${where}`}
      title={`Rank ${move.rank_before} before the change`}
    >{`${where === "up" ? "▲" : "▼"} ${steps}`}</span>
  );
}

/** Summarize the moves of all queries: `38 of 450 pairs reordered · 4 new in the top 5 of 3 queries`. */
export function summarizeMoves(sums: Sum[]): string {
  const total = (key: "pairs" | "of" | "new") => sums.reduce((result, sum) => result + sum[key], 0);
  const touched = sums.filter((sum) => sum.new).length;
  if (!total("pairs") && !total("new"))
    return `Same order in ${plural(sums.length, "query", "queries")}`;
  const top = `${total("new").toLocaleString("en")} new in the top 5${touched ? ` of ${plural(touched, "query", "queries")}` : ""}`;
  return `${total("pairs").toLocaleString("en")} of ${total("of").toLocaleString("en")} pairs reordered · ${top}`;
}
