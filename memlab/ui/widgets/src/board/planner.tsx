/** What would tell a policy from the baseline, and when: sliders for the design, the rate and the traffic. */
import { useState } from "preact/hooks";
import { num, plural, visible } from "../shared/text";
import { useAsk, useReadOnly, useTrait } from "../shared/widget";
import type { About, Design, Plan } from "./types";

const YEAR = 365;
const DESIGNS = {
  extra: "extra items beside the head",
  lot: "by lot, none more",
  ab: "A/B, one whole head",
};
type Kind = keyof typeof DESIGNS;

export function Planner({ about }: { about: About }) {
  const ask = useAsk();
  const readOnly = useReadOnly();
  const [plan] = useTrait<Plan>("_plan");
  const [kind, setKind] = useState<Kind>("extra");
  const [extra, setExtra] = useState(1); // items beside the head
  const [rate, setRate] = useState(1);
  const [daily, setDaily] = useState(Math.max(1, Math.round(about.daily ?? 20)));
  const [picked, setPicked] = useState("");
  const [reason, setReason] = useState("");
  if (!plan.designs) return <p class="note">…</p>;
  const names = [...new Set(plan.designs.map((one) => one.policy))];
  const policy = names.includes(picked) ? picked : names[0];
  if (!policy)
    return <p class="note">There is no policy to plan for: choose another than the baseline.</p>;
  const label = {
    extra: `challenge, ${extra} extra`,
    lot: "challenge by lot",
    ab: "A/B by recall",
  }[kind];
  const designs = plan.designs
    .filter((one) => one.policy === policy)
    .map((one) => ({
      ...one,
      share: one.design.startsWith("challenge") || one.design.startsWith("A/B") ? rate : 1,
    }));
  const chosen = designs.find((one) => one.design === label)!;
  const longest = 2 * YEAR;
  return (
    <section aria-label="Planner" class="planner">
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
            {Object.entries(DESIGNS).map(([name, said]) => (
              <option key={name} value={name}>
                {said}
              </option>
            ))}
          </select>
        </label>
        {kind === "extra" && (
          <Slider
            label="extra items"
            shown={plural(extra, "item")}
            value={extra}
            low={1}
            high={5}
            step={1}
            set={setExtra}
          />
        )}
        <Slider
          label="rate"
          shown={`${Math.round(100 * rate)}% of recalls`}
          value={rate}
          low={0.05}
          high={1}
          step={0.05}
          set={setRate}
        />
        <Slider
          label="traffic"
          shown={`${daily} recalls a day`}
          value={daily}
          low={1}
          high={Math.max(200, 4 * daily)}
          step={1}
          set={setDaily}
        />
      </div>
      <p class="answer" aria-live="polite">
        {sentence(chosen, rate, daily, plan.baseline)}
      </p>
      <table class="designs">
        <thead>
          <tr>
            <th scope="col">design</th>
            <th scope="col" class="drawing">
              <div class="axis" aria-hidden="true">
                {[1, 7, 30, 90, 365].map((day) => (
                  <span key={day} style={{ left: `${place(day, longest)}%` }}>
                    {day === 1 ? "1 day" : day === 365 ? "1 year" : `${day}`}
                  </span>
                ))}
              </div>
            </th>
            <th scope="col" class="number">
              one planned look
            </th>
            <th scope="col" class="number">
              at every look
            </th>
            <th scope="col" class="number">
              extra a recall
            </th>
            <th scope="col" class="number">
              never shown
            </th>
          </tr>
        </thead>
        <tbody>
          {designs.map((one) => {
            const [once, every] = [
              days(one.one_look, one.share, daily),
              days(one.every_look, one.share, daily),
            ];
            return (
              <tr
                key={one.design}
                class={one === chosen ? "chosen" : ""}
                aria-current={one === chosen}
              >
                <td>
                  {one === chosen ? "▸ " : ""}
                  {one.design}
                </td>
                <td class="drawing">
                  <div
                    class="whisker"
                    role="img"
                    aria-label={`${one.design}: ${once === null ? "no verdict" : `${long(once)} for one look, ${every === null ? "more than can be planned" : long(every)} at every look`}`}
                  >
                    {once !== null && every !== null && (
                      <i
                        class="line moves"
                        style={{
                          left: `${place(once, longest)}%`,
                          width: `${place(every, longest) - place(once, longest)}%`,
                        }}
                      />
                    )}
                    {once !== null && (
                      <i class="dot hollow moves" style={{ left: `${place(once, longest)}%` }} />
                    )}
                    {every !== null && (
                      <i class="dot moves" style={{ left: `${place(every, longest)}%` }} />
                    )}
                    {once === null && <span class="withheld">no verdict</span>}
                  </div>
                </td>
                <td class="number">{count(one.one_look, one.share)}</td>
                <td class="number">{count(one.every_look, one.share)}</td>
                <td class="number">{num(one.extra * one.share, 2)}</td>
                <td class="number">{`${Math.round(100 * one.unsupported)}%`}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <p class="note">
        {`Recalls for a verdict four times of five, by a model of rewards on ${plural(plan.recalls, "recall")}; ○ one planned look, ● looked at every day. At a rate of r a verdict takes 1/r times the recalls.`}
      </p>
      {plan.notes.map((one) => (
        <p key={one} class="note">
          {visible(one)}
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
              placeholder="Why is it compared?"
              onInput={(event) => setReason(event.currentTarget.value)}
            />
          </label>
          <button
            type="submit"
            class="primary"
            disabled={!!readOnly || about.challengers.includes(policy)}
            title={readOnly || "Logged; ends with lab.policies.end_challenge"}
          >
            {about.challengers.includes(policy)
              ? "Is a challenger"
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

/** A place in per cent on a logarithmic axis from half a day on. */
function place(day: number, longest: number): number {
  const share = Math.log(Math.max(day, 0.5) / 0.5) / Math.log(longest / 0.5);
  return Math.min(100, Math.max(0, 100 * share));
}

/** Two digits, as anything more would promise what an extrapolation cannot keep. */
function rounded(value: number): string {
  if (value < 100) return String(Math.max(1, Math.ceil(value)));
  const size = 10 ** (Math.floor(Math.log10(value)) - 1);
  return (Math.ceil(value / size) * size).toLocaleString("en");
}

function count(recalls: number | null, rate: number): string {
  return recalls === null ? "–" : rounded(recalls / rate);
}

function long(day: number): string {
  if (day < 1.5) return "about a day";
  if (day < 60) return `about ${Math.ceil(day)} days`;
  return day < 2 * YEAR ? `about ${Math.round(day / 30)} months` : "more than two years";
}

function sentence(one: Design, rate: number, daily: number, baseline: string): string {
  const gap = `${visible(one.policy)} is expected to earn ${num(one.difference, 2, true)} a recall against ${visible(baseline)}`;
  if (one.every_look === null)
    return `${gap}: too little for a verdict in reasonable time by this design.`;
  const once =
    one.one_look === null
      ? ""
      : `; one planned look would do after ${rounded(one.one_look / rate)}`;
  return `${gap}. A verdict takes about ${rounded(one.every_look / rate)} recalls, ${long(days(one.every_look, rate, daily)!)}${once}.`;
}
