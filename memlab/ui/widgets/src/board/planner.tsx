/** The planner: how long each design takes to detect a difference from the baseline, by rate and traffic. */
import { useState } from "preact/hooks";
import { num, plural, RECORDED, visible } from "../shared/text";
import { useAsk, useHint, useReadOnly, useTrait } from "../shared/widget";
import type { About, Design, Plan } from "./types";

// Days of a year; the axis ends after two.
const YEAR = 365;
const DESIGNS = {
  extra: "extra items after the results",
  lot: "random items, none extra",
  draft: "draft, the best of both in turn",
  ab: "A/B, one list per recall",
};
type Kind = keyof typeof DESIGNS;

export function Planner({ about }: { about: About }) {
  const ask = useAsk();
  const hint = useHint();
  const readOnly = useReadOnly();
  const [plan] = useTrait<Plan>("_plan");
  const [kind, setKind] = useState<Kind>("extra");
  const [count, setCount] = useState(0); // Items after the results; 0 is "auto".
  const extra = count || "auto";
  const [rate, setRate] = useState(1);
  const [daily, setDaily] = useState(Math.max(1, Math.round(about.daily ?? 20)));
  const [picked, setPicked] = useState("");
  const [reason, setReason] = useState("");
  if (!plan.designs) return <p class="note">…</p>;
  const names = [...new Set(plan.designs.map((design) => design.policy))];
  const policy = names.includes(picked) ? picked : names[0];
  if (!policy) return <p class="note">Choose a policy other than the baseline to plan for.</p>;
  const label = {
    extra: `challenge, ${extra} extra`,
    lot: "challenge by lot",
    draft: "challenge by draft",
    ab: "A/B by recall",
  }[kind];
  const designs = plan.designs
    .filter((design) => design.policy === policy)
    .map((design) => ({
      ...design,
      share: design.design.startsWith("challenge") || design.design.startsWith("A/B") ? rate : 1,
    }));
  const chosen = designs.find((design) => design.design === label)!;
  const longest = 2 * YEAR;
  return (
    <section aria-label="Plan a challenge" class="planner">
      <div class="controls">
        <label>
          policy
          <select value={policy} onChange={(event) => setPicked(event.currentTarget.value)}>
            {names.map((name) => (
              <option key={name} value={name}>
                {visible(name)}
              </option>
            ))}
          </select>
        </label>
        <label>
          design
          <select value={kind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
            {Object.entries(DESIGNS).map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
        {kind === "extra" && (
          <Slider
            label="extra items"
            shown={count ? plural(count, "item") : "auto"}
            value={count}
            low={0}
            high={5}
            step={1}
            set={setCount}
          />
        )}
        <Slider
          label="share that takes part"
          shown={`${Math.round(100 * rate)}% of recalls`}
          value={rate}
          low={0.05}
          high={1}
          step={0.05}
          set={setRate}
        />
        <Slider
          label="recalls per day"
          shown={`${daily}`}
          value={daily}
          low={1}
          high={Math.max(200, 4 * daily)}
          step={1}
          set={setDaily}
        />
      </div>
      <p class="answer" aria-live="polite">
        {summarize(chosen, rate, daily, plan.baseline)}
      </p>
      <table class="designs">
        <thead>
          <tr>
            <th scope="col">design</th>
            <th scope="col" class="drawing">
              <div class="axis" aria-hidden="true">
                {[1, 7, 30, 90, 365].map((day) => (
                  <span key={day} style={{ left: `${placeDay(day, longest)}%` }}>
                    {day === 1 ? "1 day" : day === 365 ? "1 year" : `${day}`}
                  </span>
                ))}
              </div>
            </th>
            <th scope="col" class="number" title="Recalls needed by a test that is read once">
              fixed-sample test
            </th>
            <th
              scope="col"
              class="number"
              title="Recalls needed by a test that is read at any time"
            >
              anytime-valid test
            </th>
            <th
              scope="col"
              class="number"
              title="Items added to the results of a recall, on average"
            >
              extra items
            </th>
            <th
              scope="col"
              class="number"
              title="Fall of recall@k of the results while the challenge runs"
            >
              recall@k lost
            </th>
            <th
              scope="col"
              class="number"
              title="Share of the policy's items that this design can never show"
            >
              unsupported
            </th>
          </tr>
        </thead>
        <tbody>
          {designs.map((design) => {
            const [fixed, anytime] = [
              days(design.one_look, design.share, daily),
              days(design.every_look, design.share, daily),
            ];
            return (
              <tr
                key={design.design}
                class={design === chosen ? "chosen" : ""}
                aria-current={design === chosen}
              >
                <td>
                  {design === chosen ? "▸ " : ""}
                  {design.design}
                </td>
                <td class="drawing">
                  <div
                    class="whisker"
                    role="img"
                    aria-label={`${design.design}: ${fixed === null ? "no verdict" : `${formatDuration(fixed)} for a fixed-sample test, ${anytime === null ? "more than can be planned" : formatDuration(anytime)} for an anytime-valid test`}`}
                  >
                    {fixed !== null && anytime !== null && (
                      <i
                        class="line moves"
                        style={{
                          left: `${placeDay(fixed, longest)}%`,
                          width: `${placeDay(anytime, longest) - placeDay(fixed, longest)}%`,
                        }}
                      />
                    )}
                    {fixed !== null && (
                      <i
                        class="dot hollow moves"
                        style={{ left: `${placeDay(fixed, longest)}%` }}
                      />
                    )}
                    {anytime !== null && (
                      <i class="dot moves" style={{ left: `${placeDay(anytime, longest)}%` }} />
                    )}
                    {fixed === null && <span class="withheld">no verdict</span>}
                  </div>
                </td>
                <td class="number">{formatCount(design.one_look, design.share)}</td>
                <td class="number">{formatCount(design.every_look, design.share)}</td>
                <td class="number">{num(design.extra * design.share, 2)}</td>
                <td class="number">
                  {design.recall_cost === null
                    ? "–"
                    : num(design.recall_cost * design.share, 3, true)}
                </td>
                <td class="number">{`${Math.round(100 * design.unsupported)}%`}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <p class="note">
        {`Recalls needed for a verdict with 80% power, by a model of the rewards of ${plural(plan.recalls, "recall")}: ○ fixed-sample test, ● anytime-valid test. If half of the recalls take part, twice as many are needed.`}
      </p>
      {plan.notes.map((note) => (
        <p key={note} class="note">
          {visible(note)}
        </p>
      ))}
      {about.lab && (
        <form
          class="controls begin"
          onSubmit={(event) => {
            event.preventDefault();
            void ask("challenge", { policy, design: kind, extra, rate, reason }).then(
              (done) => done && setReason(""),
            );
          }}
        >
          <label class="reason">
            Reason
            <input
              type="text"
              value={reason}
              disabled={!!readOnly}
              placeholder={RECORDED}
              onInput={(event) => setReason(event.currentTarget.value)}
            />
          </label>
          <button
            type="submit"
            class="primary"
            disabled={!!readOnly || about.challengers.includes(policy)}
            title={readOnly || hint("challenge")}
          >
            {about.challengers.includes(policy)
              ? "Challenge is running"
              : `Challenge with ${visible(policy)}`}
          </button>
          {readOnly && <p class="note">{readOnly}</p>}
        </form>
      )}
    </section>
  );
}

type SliderProps = {
  label: string;
  shown: string;
  value: number;
  low: number;
  high: number;
  step: number;
  set: (value: number) => void;
};

export function Slider({ label, shown, value, low, high, step, set }: SliderProps) {
  return (
    <label class="slider">
      {label}
      <span>
        <input
          type="range"
          min={low}
          max={high}
          step={step}
          value={value}
          aria-valuetext={shown}
          onInput={(event) => set(Number(event.currentTarget.value))}
        />
        <output>{shown}</output>
      </span>
    </label>
  );
}

function days(recalls: number | null, rate: number, daily: number): number | null {
  return recalls === null ? null : recalls / rate / daily;
}

/** Return the position in per cent on a logarithmic axis that begins at half a day. */
export function placeDay(day: number, longest: number): number {
  const share = Math.log(Math.max(day, 0.5) / 0.5) / Math.log(longest / 0.5);
  return Math.min(100, Math.max(0, 100 * share));
}

/** Round up to two digits, because an extrapolation is no more precise. */
export function roundUp(value: number): string {
  if (value < 100) return String(Math.max(1, Math.ceil(value)));
  const size = 10 ** (Math.floor(Math.log10(value)) - 1);
  return (Math.ceil(value / size) * size).toLocaleString("en");
}

function formatCount(recalls: number | null, rate: number): string {
  return recalls === null ? "–" : roundUp(recalls / rate);
}

/** Return a time in days as words. */
export function formatDuration(day: number): string {
  if (day < 1.5) return "about a day";
  if (day < 60) return `about ${Math.ceil(day)} days`;
  return day < 2 * YEAR ? `about ${Math.round(day / 30)} months` : "more than two years";
}

function summarize(design: Design, rate: number, daily: number, baseline: string): string {
  const gap = `${visible(design.policy)} is expected to score ${num(design.difference, 2, true)} per recall relative to ${visible(baseline)}`;
  if (design.every_look === null)
    return `${gap}. This design cannot detect that in reasonable time.`;
  const fixed =
    design.one_look === null
      ? ""
      : ` A fixed-sample test needs ${roundUp(design.one_look / rate)}.`;
  return `${gap}. A verdict takes about ${roundUp(design.every_look / rate)} recalls, ${formatDuration(days(design.every_look, rate, daily)!)}.${fixed}`;
}
