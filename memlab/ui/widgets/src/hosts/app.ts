/** The page of MCP Apps, in a host's sandboxed frame: why a recall showed what it showed, and the policy studio. */
import { Bridge } from "./bridge";
import { AppModel } from "./models";
import { made, showRecall } from "./recall";

type Bundle = { render: (given: { model: unknown; el: HTMLElement }) => () => void };
const ready = globalThis as unknown as { memlabBundle?: Bundle };

const panel = document.querySelector<HTMLElement>("#recall")!;
const studio = document.querySelector<HTMLElement>("#studio")!;
const turn = document.querySelector<HTMLButtonElement>("#turn")!;
let modes: string[] = [];

const bridge = new Bridge(window.parent, (method, params) => {
  if (method === "ui/notifications/tool-result" && !panel.hidden) {
    showRecall(bridge, params, panel).then(offer).catch((error) => failed(panel, error));
  } else if (method === "ui/notifications/tool-cancelled") failed(panel, new Error("The recall was cancelled."));
  else if (method === "ui/notifications/host-context-changed") dress(params);
});

/** A way to the studio with this question, and back. */
function offer(question: string | null): void {
  if (question === null) return;
  turn.hidden = false;
  turn.onclick = () => {
    const there = panel.hidden;
    panel.hidden = !there;
    studio.hidden = there;
    turn.textContent = there ? "Try another policy" : "Back to the recall";
    if (!studio.childElementCount) void openStudio([question]);
  };
}

async function openStudio(questions: string[]): Promise<void> {
  studio.replaceChildren(made("p", "The policy studio is loading.", "said"));
  try {
    if (modes.includes("fullscreen")) void bridge.request("ui/request-display-mode", { mode: "fullscreen" }).catch(() => {});
    const model = new AppModel((tool, given) => bridge.call(tool, given));
    const [bundle] = await Promise.all([load("studio"), model.open(questions)]);
    studio.replaceChildren();
    bundle.render({ model, el: studio });
  } catch (error) {
    failed(studio, error);
  }
}

/** A bundle as it is in a notebook. A host lets this page load no file, but run a script that it writes. */
async function load(name: string): Promise<Bundle> {
  const text = await bridge.read(`memlab://bundle/${name}`);
  const own = /export\s*\{\s*([\w$]+) as default\s*\};?\s*$/.exec(text)![1];
  const script = made("script");
  script.type = "module";
  script.append(`${text}\nglobalThis.memlabBundle = ${own}; dispatchEvent(new Event("memlab-bundle"));`);
  const loaded = new Promise((resolve) => addEventListener("memlab-bundle", resolve, { once: true }));
  document.head.append(script);
  await loaded;
  script.remove();
  return ready.memlabBundle!;
}

function failed(where: HTMLElement, error: unknown): void {
  where.replaceChildren(made("h1", "memlab"), made("p", error instanceof Error ? error.message : String(error), "said"));
}

function dress(context: any): void {
  if (context?.theme) document.documentElement.style.colorScheme = context.theme;
  for (const [name, value] of Object.entries<string | undefined>(context?.styles?.variables ?? {})) {
    if (name.startsWith("--") && value) document.documentElement.style.setProperty(name, value);
  }
  modes = context?.availableDisplayModes ?? modes;
}

new ResizeObserver(() => {
  const { width, height } = document.documentElement.getBoundingClientRect();
  bridge.notify("ui/notifications/size-changed", { width: Math.ceil(width), height: Math.ceil(height) });
}).observe(document.documentElement);

bridge
  .request("ui/initialize", {
    protocolVersion: "2026-01-26",
    appInfo: { name: "memlab", version: "1" },
    appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
  })
  .then((answer) => {
    dress(answer?.hostContext);
    bridge.notify("ui/notifications/initialized", {});
    if (panel.hidden) void openStudio([]);
  })
  .catch((error) => failed(panel.hidden ? studio : panel, error));
