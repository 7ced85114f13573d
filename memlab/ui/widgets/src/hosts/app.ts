/** The page of MCP Apps, in a host's sandboxed frame: why a recall showed what it showed. */
import { Bridge, type ToolResult } from "./bridge";
import { createElement, type Recalled, showRecall } from "./recall";

/** The part of a host's context that memlab uses: its theme and its CSS variables. */
type HostContext = { theme?: string; styles?: { variables?: Record<string, string | undefined> } };

const panel = document.querySelector<HTMLElement>("#recall")!;

const bridge = new Bridge(window.parent, (method, params) => {
  if (method === "ui/notifications/tool-result")
    showRecall(bridge, params as ToolResult<Recalled>, panel).catch(showError);
  else if (method === "ui/notifications/tool-cancelled")
    showError(new Error("The recall was cancelled."));
  else if (method === "ui/notifications/host-context-changed") applyTheme(params as HostContext);
});

function showError(error: unknown): void {
  panel.replaceChildren(
    createElement("h1", "memlab"),
    createElement("p", error instanceof Error ? error.message : String(error), "said"),
  );
}

function applyTheme(context: HostContext | undefined): void {
  if (context?.theme) document.documentElement.style.colorScheme = context.theme;
  for (const [name, value] of Object.entries(context?.styles?.variables ?? {})) {
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
  .request<{ hostContext?: HostContext } | undefined>("ui/initialize", {
    protocolVersion: "2026-01-26",
    appInfo: { name: "memlab", version: "1" },
    appCapabilities: { availableDisplayModes: ["inline"] },
  })
  .then((answer) => {
    applyTheme(answer?.hostContext);
    bridge.notify("ui/notifications/initialized", {});
  })
  .catch(showError);
