/** The policies on one scale, each with its confidence interval, its verdict and its gates. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { type Scale, scale } from "../shared/scale";
import { num, visible } from "../shared/text";
import type { Evaluation, Gate, Row } from "./types";

export function Leaderboard({ evaluation }: { evaluation: Evaluation }) {
  const rows = evaluation.rows!;
  const [open, setOpen] = useState<string | null>(null);
  const base = rows.find((row) => row.policy === evaluation.baseline)?.value ?? null;
  const on = scale(
    rows.flatMap((row) =>
      row.value === null ? [row.lower, row.upper] : [row.value, row.low, row.high],
    ),
  );
  return (
    <section aria-label="Leaderboard">
      <h3 class="headline">{visible(evaluation.headline)}</h3>
      {evaluation.facts && <p class="note">{visible(evaluation.facts)}</p>}
      {evaluation.next && <p class="next">{visible(evaluation.next)}</p>}
      <table class="leaders">
        <thead>
          <tr>
            <th scope="col">policy</th>
            <th scope="col" class="drawing">
              <Axis on={on} label="reward per recall" />
            </th>
            <th scope="col" class="number">
              value
            </th>
            <th scope="col" class="number">{`minus ${visible(evaluation.baseline)}`}</th>
            <th scope="col" class="number">
              p
            </th>
            <th scope="col">gates</th>
            <th scope="col">verdict</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Fragment key={row.policy}>
              <tr class={row.policy === evaluation.baseline ? "base" : ""}>
                <th scope="row">
                  <code>{visible(row.policy)}</code>
                </th>
                <td class="drawing">
                  <Whisker row={row} on={on} base={base} />
                </td>
                <td class="number">
                  {row.value === null ? "–" : num(row.value, 3)}
                  <br />
                  <span class="note">{span(row.low, row.high)}</span>
                </td>
                <td class="number">
                  {row.difference === null ? "" : num(row.difference, 3, true)}
                  <br />
                  <span class="note">
                    {row.difference === null
                      ? ""
                      : span(row.difference_low, row.difference_high, true)}
                  </span>
                </td>
                <td class="number">
                  {row.p === null ? "" : row.p < 0.001 ? "< .001" : num(row.p, 3)}
                </td>
                <td>
                  <button
                    type="button"
                    class="plain gates"
                    aria-expanded={open === row.policy}
                    aria-label={`Gates of ${visible(row.policy)}: ${states(row.gates)}`}
                    onClick={() => setOpen(open === row.policy ? null : row.policy)}
                  >
                    <Lights gates={row.gates} />
                  </button>
                </td>
                <td>
                  <Finding row={row} base={evaluation.baseline} />
                </td>
              </tr>
              {open === row.policy && (
                <tr>
                  <td colSpan={7} class="detail">
                    <Gates row={row} />
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
          {evaluation.refusals.map((refusal) => (
            <tr key={refusal.policy}>
              <th scope="row">
                <code>{visible(refusal.policy)}</code>
              </th>
              <td colSpan={5} class="note">
                {visible(refusal.reason)}
              </td>
              <td>
                <span class="tag withheld">✕ refused</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <Waiting rows={rows} />
      <details class="method">
        <summary>Method</summary>
        <p>
          {visible(evaluation.method)}. Dots are estimates, lines their confidence intervals. Pale
          bars are the bounds of the value without sampling error. p-values and intervals of
          differences are Bonferroni-adjusted.
        </p>
        {evaluation.notes.map((note) => (
          <p key={note}>{visible(note)}</p>
        ))}
      </details>
    </section>
  );
}

function Axis({ on, label }: { on: Scale; label: string }) {
  return (
    <div class="axis" aria-hidden="true" title={label}>
      {on.ticks.map((tick) => (
        <span key={tick} style={{ left: `${100 * on.place(tick)}%` }}>
          {num(tick, on.digits)}
        </span>
      ))}
    </div>
  );
}

function Whisker({ row, on, base }: { row: Row; on: Scale; base: number | null }) {
  const toPercent = (value: number) => Math.min(100, Math.max(0, 100 * on.place(value)));
  const bar = (low: number | null, high: number | null) =>
    low === null || high === null
      ? undefined
      : {
          left: `${toPercent(low)}%`,
          width: `${Math.max(0.3, toPercent(high) - toPercent(low))}%`,
        };
  const description =
    row.value === null
      ? `no estimate; the bounds are ${num(row.lower, 3)} and ${num(row.upper, 3)}`
      : `${num(row.value, 3)}, interval ${span(row.low, row.high)}`;
  return (
    <div
      class="whisker"
      role="img"
      aria-label={`${visible(row.policy)}: ${description}`}
      title={description}
    >
      {on.ticks.map((tick) => (
        <s key={tick} style={{ left: `${toPercent(tick)}%` }} />
      ))}
      {base !== null && <b class="baseline" style={{ left: `${toPercent(base)}%` }} />}
      {bar(row.lower, row.upper) && (
        <i
          class={row.value === null ? "bounds alone" : "bounds"}
          style={bar(row.lower, row.upper)}
        />
      )}
      {row.value !== null && bar(row.low, row.high) && (
        <i class="line" style={bar(row.low, row.high)} />
      )}
      {row.value !== null && (
        <i class={`dot ${tone(row)}`} style={{ left: `${toPercent(row.value)}%` }} />
      )}
      {row.value === null && (
        <span
          class="withheld"
          style={{ left: `${row.upper === null ? 0 : toPercent(row.upper) + 1}%` }}
        >
          withheld
        </span>
      )}
    </div>
  );
}

const SIGNS = { open: "✓", closed: "✕", untested: "?", "not needed": "–" };

function Lights({ gates }: { gates: Gate[] }) {
  return (
    <span class="lights" aria-hidden="true">
      {gates.map((gate) => (
        <i
          key={gate.name}
          class={gate.state.replace(" ", "-")}
          title={`${gate.name}: ${gate.state}`}
        >
          {SIGNS[gate.state]}
        </i>
      ))}
    </span>
  );
}

function Gates({ row }: { row: Row }) {
  return (
    <table class="gatelist">
      <caption class="hidden">{`Gates of ${row.policy}`}</caption>
      <thead>
        <tr>
          <th scope="col">gate</th>
          <th scope="col">measured</th>
          <th scope="col">required</th>
          <th scope="col">state</th>
          <th scope="col">how to open it</th>
        </tr>
      </thead>
      <tbody>
        {row.gates.map((gate) => (
          <tr key={gate.name}>
            <td>{gate.name}</td>
            <td>{gate.shown}</td>
            <td>{gate.asked}</td>
            <td>
              <span
                class={`light ${gate.state.replace(" ", "-")}`}
              >{`${SIGNS[gate.state]} ${gate.state}`}</span>
            </td>
            <td>
              {gate.state === "open" ? "" : `${visible(gate.finding)} ${visible(gate.advice)}`}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The findings and the advice of the gates that are closed or untested, visible without a click. */
function Waiting({ rows }: { rows: Row[] }) {
  const shared = new Map<string, { gate: Gate; policies: string[] }>();
  for (const row of rows)
    for (const gate of row.gates) {
      if (gate.state !== "closed" && gate.state !== "untested") continue;
      const text = `${gate.finding} ${gate.advice}`;
      shared.set(text, { gate, policies: [...(shared.get(text)?.policies ?? []), row.policy] });
    }
  if (!shared.size) return null;
  return (
    <ul class="waiting" aria-label="Closed and untested gates, and how to open them">
      {[...shared].map(([text, { gate, policies }]) => (
        <li key={text}>
          <span
            class={`light ${gate.state}`}
          >{`${SIGNS[gate.state]} ${gate.name}, ${gate.state}`}</span>
          <span>
            <code>{policies.map(visible).join(", ")}</code>
            {`: ${visible(text)}`}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Finding({ row, base }: { row: Row; base: string }) {
  if (row.policy === base) return <span class="tag">baseline</span>;
  const sign = { good: "▲", bad: "▼", none: "◦", withheld: "✕" }[tone(row)];
  return <span class={`tag ${tone(row)}`}>{`${sign} ${row.verdict.split(",")[0]}`}</span>;
}

function tone(row: Row): "good" | "bad" | "withheld" | "none" {
  if (row.value === null) return "withheld";
  return row.verdict === "better" ? "good" : row.verdict === "worse" ? "bad" : "none";
}

function states(gates: Gate[]): string {
  const parts = (["closed", "untested"] as const).flatMap((state) => {
    const names = gates.filter((gate) => gate.state === state).map((gate) => gate.name);
    return names.length ? [`${names.length} ${state}, ${names.join(", ")}`] : [];
  });
  return parts.length
    ? parts.join("; ")
    : `all ${gates.filter((gate) => gate.state === "open").length} required gates are open`;
}

export function span(low: number | null, high: number | null, signed = false): string {
  return low === null || high === null
    ? "no interval"
    : `${num(low, 3, signed)} to ${num(high, 3, signed)}`;
}
