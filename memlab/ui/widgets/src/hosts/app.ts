/** The page of MCP Apps, in a host's sandboxed frame: why a recall showed what it showed. */
import { Bridge } from "./bridge";
import { made, showRecall } from "./recall";

const panel = document.querySelector<HTMLElement>("#recall")!;

const bridge = new Bridge(window.parent, (method, params) => {
  if (method === "ui/notifications/tool-result") showRecall(bridge, params, panel).catch(failed);
  else if (method === "ui/notifications/tool-cancelled")
    failed(new Error("The recall was cancelled."));
  else if (method === "ui/notifications/host-context-changed") dress(params);
});

function failed(error: unknown): void {
  panel.replaceChildren(
    made("h1", "memlab"),
    made("p", error instanceof Error ? error.message : String(error), "said"),
  );
}

function dress(context: any): void {
  if (context?.theme) document.documentElement.style.colorScheme = context.theme;
  for (const [name, value] of Object.entries<string | undefined>(
    context?.styles?.variables ?? {},
  )) {
    if (name.startsWith("--") && value) document.documentElement.style.setProperty(name, value);
  }
}

new ResizeObserver(() => {
  const { width, height } = document.documentElement.getBoundingClientRect();
  bridge.notify("ui/notifications/size-changed", {
    width: Math.ceil(width),
    height: Math.ceil(height),
  });
}).observe(document.documentElement);

bridge
  .request("ui/initialize", {
    protocolVersion: "2026-01-26",
    appInfo: { name: "memlab", version: "1" },
    appCapabilities: { availableDisplayModes: ["inline"] },
  })
  .then((answer) => {
    dress(answer?.hostContext);
    bridge.notify("ui/notifications/initialized", {});
  })
  .catch(failed);
