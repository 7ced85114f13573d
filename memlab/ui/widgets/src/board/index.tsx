/** Evaluation board: policies on a log, their gates and disagreements, a planner, and how a challenge stands. */
import { useEffect, useState } from "preact/hooks";
import { plural, visible } from "../shared/text";
import { useStill, useTrait, widget } from "../shared/widget";
import { useWorking } from "../shared/working";
import css from "./board.css";
import { Differences } from "./differences";
import { Leaderboard } from "./leaderboard";
import { Planner } from "./planner";
import { Sequence } from "./sequence";
import type { About, Challenge, Evaluation, Plan } from "./types";

const SILENCE: [string, string][] = [
  ["", "not set"],
  ["zero", "a reward of 0"],
  ["censor", "unknown, ignored"],
  ["inverse", "unknown, reweighted"],
  ["bounds", "unknown, bounded"],
];
const SPANS: [string, string][] = [
  ["", "none"],
  ["12h", "12 hours"],
  ["1d", "1 day"],
  ["7d", "7 days"],
  ["30d", "30 days"],
];
const CLUSTERS: [string, string][] = [
  ["", "as logged"],
  ["session", "sessions"],
  ["day", "days"],
  ["decision", "recalls"],
];
const PARTS: [string, string][] = [
  ["differences", "Disagreements"],
  ["plan", "Planner"],
  ["challenge", "Challenge"],
];

function Board() {
  const still = useStill();
  const [about] = useTrait<About>("_about");
  const [policies, setPolicies] = useTrait<string[]>("policies");
  const [missing, setMissing] = useTrait<string>("missing");
  const [horizon, setHorizon] = useTrait<string>("horizon");
  const [cluster, setCluster] = useTrait<string>("cluster");
  const [found] = useTrait<Evaluation>("_evaluation");
  const [planned] = useTrait<Plan>("_plan");
  const [challenge] = useTrait<Challenge>("_challenge");
  const [, setPair] = useTrait<string[]>("pair");
  const [part, setPart] = useState("differences");
  const [begin, now] = useWorking();

  const key = JSON.stringify([policies, missing, horizon, cluster]);
  const fresh = (one: { key?: unknown }) => JSON.stringify(one.key) === key;
  useEffect(() => {
    if (!still && about.judged && policies.length && !fresh(found) && (about.atOnce || found.rows))
      void begin("begin", { part: "evaluation" });
  }, [key]);
  useEffect(() => {
    if (still || !found.rows) return;
    if (part === "plan" && !fresh(planned)) void begin("begin", { part });
    if (part === "challenge" && about.challenged && !fresh(challenge))
      void begin("begin", { part });
  }, [part, found]);
  const toggle = (name: string) =>
    setPolicies(
      policies.includes(name) ? policies.filter((one) => one !== name) : [...policies, name],
    );

  return (
    <div class="board">
      <div class="controls">
        <fieldset class="policies" disabled={!!still}>
          <legend>Policies</legend>
          {about.known.map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={policies.includes(name)}
              onClick={() => toggle(name)}
            >
              {visible(name)}
            </button>
          ))}
        </fieldset>
        <Choice
          label="Missing feedback counts as"
          value={missing}
          options={SILENCE}
          set={setMissing}
          still={still}
        />
        <Choice
          label="Time to earn"
          value={horizon}
          options={SPANS}
          set={setHorizon}
          still={still}
        />
        <Choice
          label="Independent are"
          value={cluster}
          options={CLUSTERS}
          set={setCluster}
          still={still}
        />
        <button
          class="primary"
          type="button"
          disabled={!!still || !!now || !policies.length || !about.judged}
          onClick={() => void begin("begin", { part: "evaluation" })}
        >
          Evaluate
        </button>
      </div>
      <p class="note status" aria-live="polite">
        {still ||
          (now
            ? `At work for ${now.seconds.toFixed(0)} s: ${now.work} …`
            : `${plural(about.recalls, "recall")} logged, ${plural(about.judged, "judgement")}`)}
        {now && <span class="working" aria-hidden="true" />}
      </p>
      {!about.judged && <p class="empty">{empty(about)}</p>}
      {found.rows && <Leaderboard found={found} />}
      {found.rows && (
        <>
          <div class="parts" role="group" aria-label="More about it">
            {PARTS.map(([name, title]) => (
              <button
                key={name}
                type="button"
                aria-pressed={part === name}
                onClick={() => setPart(name)}
              >
                {title}
              </button>
            ))}
          </div>
          {part === "differences" && (
            <Differences
              still={still}
              policies={found.rows.map((row) => row.policy)}
              choose={(pair) => {
                setPair(pair);
                void begin("begin", { part: "differences" });
              }}
            />
          )}
          {part === "plan" && <Planner about={about} />}
          {part === "challenge" && <Sequence about={about} />}
        </>
      )}
    </div>
  );
}

type ChoiceProps = {
  label: string;
  value: string;
  options: [string, string][];
  set: (value: string) => void;
  still: string;
};

function Choice({ label, value, options, set, still }: ChoiceProps) {
  const known = options.some(([name]) => name === value)
    ? options
    : [...options, [value, visible(value)] as [string, string]];
  return (
    <label>
      {label}
      <select value={value} disabled={!!still} onChange={(event) => set(event.currentTarget.value)}>
        {known.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function empty(about: About): string {
  if (!about.recalls)
    return "No recall is logged yet. Recalls that an agent asks are; then feedback says how they did.";
  return `${plural(about.recalls, "recall")} and no feedback: a log tells what a policy is worth by what people made of what it showed. lab.feedback(hit, "success") judges one; lab.attribute reads rewards from answers.`;
}

export default widget("Evaluation board", Board, css);
