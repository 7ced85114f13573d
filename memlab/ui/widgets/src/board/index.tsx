/** Evaluation board: policies on a log, their gates and disagreements, a planner, and how a challenge stands. */
import { useEffect, useState } from "preact/hooks";
import { plural, visible } from "../shared/text";
import { useOfflineReason, useTrait, widget } from "../shared/widget";
import { useWorking } from "../shared/working";
import css from "./board.css";
import { Differences } from "./differences";
import { Leaderboard } from "./leaderboard";
import { Planner } from "./planner";
import { Sequence } from "./sequence";
import type { About, Challenge, Evaluation, Plan } from "./types";

const MISSING_FEEDBACK: [string, string][] = [
  ["", "left open (default)"],
  ["zero", "reward 0"],
  ["censor", "unknown, ignored"],
  ["inverse", "unknown, reweighted"],
  ["bounds", "unknown, bounded"],
];
const HORIZONS: [string, string][] = [
  ["", "no limit (default)"],
  ["12h", "12 hours"],
  ["1d", "1 day"],
  ["7d", "7 days"],
  ["30d", "30 days"],
];
const CLUSTERS: [string, string][] = [
  ["", "as logged (default)"],
  ["session", "session"],
  ["day", "day"],
  ["decision", "no groups"],
];
const PARTS: [string, string][] = [
  ["differences", "Disagreements"],
  ["plan", "Plan a challenge"],
  ["challenge", "Challenge"],
];

function Board() {
  const offline = useOfflineReason();
  const [about] = useTrait<About>("_about");
  const [policies, setPolicies] = useTrait<string[]>("policies");
  const [missing, setMissing] = useTrait<string>("missing");
  const [horizon, setHorizon] = useTrait<string>("horizon");
  const [cluster, setCluster] = useTrait<string>("cluster");
  const [evaluation] = useTrait<Evaluation>("_evaluation");
  const [plan] = useTrait<Plan>("_plan");
  const [challenge] = useTrait<Challenge>("_challenge");
  const [, setPair] = useTrait<string[]>("pair");
  const [part, setPart] = useState("differences");
  const [begin, working] = useWorking();

  const key = JSON.stringify([policies, missing, horizon, cluster]);
  const isCurrent = (result: { key?: unknown }) => JSON.stringify(result.key) === key;
  useEffect(() => {
    if (
      !offline &&
      about.judged &&
      policies.length &&
      !isCurrent(evaluation) &&
      (about.atOnce || evaluation.rows)
    )
      void begin("begin", { part: "evaluation" });
  }, [key]);
  useEffect(() => {
    if (offline || !evaluation.rows) return;
    if (part === "plan" && !isCurrent(plan)) void begin("begin", { part });
    if (part === "challenge" && about.challenged && !isCurrent(challenge))
      void begin("begin", { part });
  }, [part, evaluation]);
  const toggle = (name: string) =>
    setPolicies(
      policies.includes(name) ? policies.filter((other) => other !== name) : [...policies, name],
    );

  return (
    <div class="board">
      <div class="controls">
        <fieldset class="policies" disabled={!!offline}>
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
          about={
            missing
              ? "What a result without feedback earns."
              : "Only needed if more than a tenth of the feedback is missing."
          }
          value={missing}
          options={MISSING_FEEDBACK}
          set={setMissing}
          offline={offline}
        />
        <Choice
          label="Count feedback within"
          about="Feedback that comes later is ignored, and recalls that are younger than this are left out."
          value={horizon}
          options={HORIZONS}
          set={setHorizon}
          offline={offline}
        />
        <Choice
          label="Group recalls by"
          about="Recalls of one group count as one observation, which makes intervals wider."
          value={cluster}
          options={CLUSTERS}
          set={setCluster}
          offline={offline}
        />
        <button
          class="primary"
          type="button"
          disabled={!!offline || !!working || !policies.length || !about.judged}
          onClick={() => void begin("begin", { part: "evaluation" })}
        >
          Evaluate
        </button>
      </div>
      <p class="note status" aria-live="polite">
        {offline ||
          (working
            ? `Working for ${working.seconds.toFixed(0)} s: ${working.work} …`
            : `${plural(about.recalls, "recall")} logged, ${plural(about.judged, "judgement")}`)}
        {working && <span class="working" aria-hidden="true" />}
      </p>
      {!about.judged && <p class="empty">{describeEmpty(about)}</p>}
      {evaluation.rows && <Leaderboard evaluation={evaluation} />}
      {evaluation.rows && (
        <>
          <div class="parts" role="group" aria-label="Details of the evaluation">
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
              offline={offline}
              policies={evaluation.rows.map((row) => row.policy)}
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
  about: string;
  value: string;
  options: [string, string][];
  set: (value: string) => void;
  offline: string;
};

function Choice({ label, about, value, options, set, offline }: ChoiceProps) {
  // A value that was set from Python may not be one of the options.
  const choices = options.some(([name]) => name === value)
    ? options
    : [...options, [value, visible(value)] as [string, string]];
  return (
    <label>
      {label}
      <select
        value={value}
        disabled={!!offline}
        onChange={(event) => set(event.currentTarget.value)}
      >
        {choices.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
      <small>{about}</small>
    </label>
  );
}

function describeEmpty(about: About): string {
  if (!about.recalls)
    return "No recalls logged yet. Query with lab.recall(…), then record feedback on the results.";
  return `${plural(about.recalls, "recall")} and no feedback, so policies cannot be compared yet. Record feedback with lab.feedback(hit, "success"), or derive rewards from answers with lab.agents.credits.answer.`;
}

export default widget("Evaluation board", Board, css);
