/** The page of `memlab view`, served or in a folder: each widget behind a tab, loaded when it is first opened. */
import { visible } from "../shared/text";
import { followTheme } from "../shared/theme";
import theme from "../shared/theme.css";
import { SavedModel, type SavedState, SocketModel } from "./models";
import css from "./page.css";

type About = { tabs: Record<string, string>; title: string; note: string; still?: string };
type Bundle = { default: { render: (host: { model: unknown; el: HTMLElement }) => () => void } };
const here = (document.currentScript as HTMLScriptElement).src;
const saved = globalThis as unknown as {
  memlabState?: Record<string, SavedState>;
  memlabBundles?: Record<string, string>;
};

const about: About = JSON.parse(document.getElementById("memlab")!.textContent!);
const main = document.querySelector("main")!;
const names = Object.keys(about.tabs);

/** Import a bundle as a module. A page on a disk may import no file, so its bundles are texts in a script. */
async function loadBundle(name: string): Promise<Bundle> {
  if (location.protocol !== "file:") return import(new URL(`./${name}.js`, here).href);
  if (!saved.memlabBundles) await loadScript(new URL("../bundles.js", here).href);
  const url = URL.createObjectURL(
    new Blob([saved.memlabBundles![name]!], { type: "text/javascript" }),
  );
  return import(url).finally(() => URL.revokeObjectURL(url));
}

function loadScript(src: string): Promise<unknown> {
  const element = document.createElement("script");
  element.src = src;
  document.head.append(element);
  return new Promise((resolve, reject) =>
    Object.assign(element, { onload: resolve, onerror: reject }),
  );
}

async function showWidget(name: string, el: HTMLElement): Promise<void> {
  try {
    const loading = loadBundle(name);
    let model: SavedModel | SocketModel;
    if (saved.memlabState) model = new SavedModel(saved.memlabState[name]!, about.still ?? "");
    else {
      model = new SocketModel(`ws://${location.host}/live/${name}${location.search}`);
      model.ended = () => badge?.replaceChildren("ended");
      await model.ready;
    }
    const bundle = await loading;
    el.replaceChildren();
    bundle.default.render({ model, el });
  } catch (error) {
    el.textContent = visible(error instanceof Error ? error.message : String(error));
    el.className = "failed";
  }
}

let badge: HTMLElement | undefined;
if (names.length === 1 && !about.still) void showWidget(names[0]!, main);
else showTabs();

function showTabs(): void {
  const make = <Tag extends keyof HTMLElementTagNameMap>(
    tag: Tag,
    name: string,
    ...inside: (Node | string)[]
  ) => {
    const element = document.createElement(tag);
    element.className = name;
    element.append(...inside);
    return element;
  };
  const style = make("style", "", theme, css);
  badge = make("span", "badge", about.note);
  const lab = make("bdi", "lab", visible(about.title));
  const list = make("div", "tabs");
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Widgets");
  const bar = make(
    "header",
    "memlab bar",
    make("h1", "", make("span", "mark", "memlab"), lab),
    list,
    badge,
  );
  document.body.prepend(style, bar);
  followTheme(bar);
  const loaded = new Set<string>();
  const panels = new Map<string, HTMLElement>();
  const buttons = new Map<string, HTMLButtonElement>();

  const open = (wanted: string) => {
    const chosen = names.includes(wanted) ? wanted : names[0]!;
    if (!loaded.has(chosen)) {
      loaded.add(chosen);
      void showWidget(chosen, panels.get(chosen)!);
    }
    for (const [name, button] of buttons) {
      button.setAttribute("aria-selected", String(name === chosen));
      button.tabIndex = name === chosen ? 0 : -1;
    }
    for (const [name, panel] of panels) panel.hidden = name !== chosen;
    return chosen;
  };
  for (const name of names) {
    const button = make("button", "", about.tabs[name]!);
    Object.assign(button, { type: "button", id: `tab-${name}` });
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", `panel-${name}`);
    button.onclick = () => {
      location.hash = name;
    };
    button.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = names[(names.indexOf(name) + step + names.length) % names.length]!;
      location.hash = next;
      buttons.get(next)!.focus();
    };
    const panel = make("section", "panel", "…");
    panel.id = `panel-${name}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", button.id);
    buttons.set(name, button);
    panels.set(name, panel);
    list.append(button);
    main.append(panel);
  }
  addEventListener("hashchange", () => open(location.hash.slice(1)));
  open(location.hash.slice(1));
}
