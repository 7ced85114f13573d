/**
 * The frame of every widget: one root element, one place for faults, traits as state, and requests to Python.
 *
 *     import { useAsk, useTrait, widget } from "../shared/widget";
 *     function Counter() {
 *       const [count, setCount] = useTrait<number>("count");
 *       return <button onClick={() => setCount(count + 1)}>{count}</button>;
 *     }
 *     export default widget("Counter", Counter);
 */
import {
  Component,
  type ComponentChildren,
  type ComponentType,
  createContext,
  render,
} from "preact";
import { useCallback, useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Model, Offline } from "./model";
import { rows, type Table, table } from "./table";
import { visible } from "./text";
import { followTheme } from "./theme";
import theme from "./theme.css";

// Milliseconds until a widget shows that a request is under way: below that a note would only flicker.
const SLOW = 400;
// Milliseconds until it says that Python does not answer: longer than any single request of a large lab.
const SILENT = 20_000;

/** A request that Python has not answered yet. */
type PendingRequest = {
  resolve: (value: unknown) => void;
  timer: ReturnType<typeof setTimeout>;
};

/** A message of Python: the answer to the request `id`. `tables` names the values that arrive as buffers. */
type Reply = {
  id: number;
  error?: string;
  value?: Record<string, unknown>;
  tables?: string[];
};

/** The connection of one widget to Python. `ask` never rejects: it shows the fault and resolves to undefined. */
export class Link {
  fault = "";
  changed: () => void = () => {};
  private waiting = new Map<number, PendingRequest>();
  private last = 0;
  private fresh = 0; // The first request whose answer removes the fault: earlier ones say nothing about it.

  constructor(readonly model: Model & Offline) {
    model.on("msg:custom", this.receive);
    model.on("change:fault", this.readFault);
    // Jupyter sends this event when the kernel of a model has ended.
    model.on("comm_live_update", this.reportLostKernel);
    this.readFault();
  }

  get pending(): number {
    return this.waiting.size;
  }

  /** Call `answer_<verb>` of the Python half; resolves to undefined if that fails. */
  ask<Answer = Record<string, unknown>>(
    verb: string,
    values: Record<string, unknown> = {},
  ): Promise<Answer | undefined> {
    if (this.model.offline) {
      this.showFault(this.model.offline);
      return Promise.resolve(undefined);
    }
    const id = ++this.last;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.showFault(
          "Python has not answered for 20 seconds. It may be busy. If the kernel was restarted, run the cell again.",
          id,
        );
      }, SILENT);
      this.waiting.set(id, { resolve: (value) => resolve(value as Answer | undefined), timer });
      this.changed();
      try {
        this.model.send({ id, verb, arguments: values });
      } catch (error) {
        this.settle(id, undefined);
        this.showFault(
          `Python cannot be reached: ${error instanceof Error ? error.message : error}. Run the cell again.`,
        );
      }
    });
  }

  /** Show a sentence in the place for faults until request `fresh` or a later one is answered; an empty one removes it. */
  showFault(fault: string, fresh = this.last + 1): void {
    this.fault = fault;
    this.fresh = fresh;
    this.changed();
  }

  close(): void {
    this.model.off("msg:custom", this.receive);
    this.model.off("change:fault", this.readFault);
    this.model.off("comm_live_update", this.reportLostKernel);
    this.dropRequests();
  }

  private dropRequests(): void {
    for (const id of [...this.waiting.keys()]) this.settle(id, undefined);
  }

  private settle(id: number, value: unknown): void {
    const request = this.waiting.get(id);
    if (!request) return;
    clearTimeout(request.timer);
    this.waiting.delete(id);
    request.resolve(value);
    this.changed();
  }

  private readFault = (): void => this.showFault((this.model.get("fault") as string) ?? "");

  private reportLostKernel = (): void => {
    this.dropRequests();
    this.showFault(
      "Python has stopped because the kernel was restarted or shut down. Run the cell again.",
    );
  };

  private receive = (reply: Reply | undefined, buffers: DataView[] = []): void => {
    if (!reply || !this.waiting.has(reply.id)) return; // Another view of the same model asked.
    const { id, error, value = {}, tables = [] } = reply;
    if (error !== undefined) {
      this.settle(id, undefined);
      this.showFault(error);
      return;
    }
    for (const [index, name] of tables.entries()) value[name] = table(buffers[index]);
    if (id >= this.fresh) this.showFault("");
    this.settle(id, value);
  };
}

const Context = createContext<Link>(null as unknown as Link);

/** Return `ask(verb, values)`, which calls `answer_<verb>` of the Python half. */
export function useAsk(): Link["ask"] {
  const link = useContext(Context);
  return useCallback((verb, values) => link.ask(verb, values), [link]);
}

/** Return the sentence that explains why controls that need Python are disabled; empty if Python answers. */
export function useOfflineReason(): string {
  return useContext(Context).model.offline ?? "";
}

/** Return the sentence that explains why controls that write are disabled; empty if the lab can be written. */
export function useReadOnly(): string {
  const { model } = useContext(Context);
  return model.offline || (model.get("read_only") as string) || "";
}

/** Return a function from a verb to its tooltip, the summary of `answer_<verb>` of the Python half. */
export function useHint(): (verb: string) => string {
  const hints = (useContext(Context).model.get("hints") ?? {}) as Record<string, string>;
  return (verb) => hints[verb] ?? "";
}

/** Return the value of a synced trait, and a function that sets it. */
export function useTrait<T>(name: string): [T, (value: T) => void] {
  const { model } = useContext(Context);
  const [value, setValue] = useState<T>(() => model.get(name) as T);
  useEffect(() => {
    const follow = () => setValue(() => model.get(name) as T);
    follow();
    model.on(`change:${name}`, follow);
    return () => model.off(`change:${name}`, follow);
  }, [model, name]);
  const set = useCallback(
    (next: T) => {
      model.set(name, next);
      model.save_changes();
    },
    [model, name],
  );
  return [value, set];
}

/** Return a trait of Arrow bytes as a table. */
export function useTable(name: string): Table | null {
  const [bytes] = useTrait<DataView | null>(name);
  return useMemo(() => table(bytes), [bytes]);
}

/** Return a trait of Arrow bytes as row objects. */
export function useRows<Row>(name: string): Row[] {
  const bytes = useTable(name);
  return useMemo(() => rows<Row>(bytes), [bytes]);
}

/**
 * Return the values of a form, ahead of the traits that Python sends back. A value that comes back is ignored if it is
 * an echo of an earlier input; without that, a slow answer would remove letters that were typed meanwhile.
 */
export function useForm<Form extends object>(state: Form): [Form, (next: Form) => void] {
  const [form, setForm] = useState(state);
  const sent = useRef<string[]>([]);
  const key = JSON.stringify(state);
  useEffect(() => {
    const echo = sent.current.lastIndexOf(key);
    if (echo < 0) setForm(state);
    // Earlier inputs are answered, too.
    sent.current = echo < 0 ? [] : sent.current.slice(echo + 1);
  }, [key]);
  const set = useCallback((next: Form) => {
    sent.current.push(JSON.stringify(next));
    setForm(next);
  }, []);
  return [form, set];
}

/**
 * Return a function that runs `call` once at a time. While it runs, only the latest arguments wait, so that each keystroke
 * or drag can call it.
 */
export function useLatest<Arguments extends unknown[]>(
  call: (...values: Arguments) => Promise<unknown>,
): (...values: Arguments) => void {
  const newest = useRef(call);
  newest.current = call;
  const state = useRef<{ busy: boolean; next: Arguments | null }>({ busy: false, next: null });
  return useCallback((...values: Arguments) => {
    const queue = state.current;
    queue.next = values;
    if (queue.busy) return;
    queue.busy = true;
    void (async () => {
      while (queue.next) {
        const latest = queue.next;
        queue.next = null;
        await newest.current(...latest);
      }
      queue.busy = false;
    })();
  }, []);
}

/** A boundary that shows an error of rendering as a fault, and reports it like any other error of the page. */
class Boundary extends Component<{ link: Link; children: ComponentChildren }> {
  componentDidCatch(error: Error): void {
    this.props.link.showFault(`This widget failed: ${error.message}`);
    reportError(error);
  }

  render() {
    return this.props.children;
  }
}

function Frame({ link, title, View }: { link: Link; title: string; View: ComponentType }) {
  const [, redraw] = useState(0);
  const [slow, setSlow] = useState(false);
  link.changed = () => redraw((count) => count + 1);
  const pending = link.pending > 0;
  useEffect(() => {
    if (!pending) return setSlow(false);
    const timer = setTimeout(() => setSlow(true), SLOW);
    return () => clearTimeout(timer);
  }, [pending]);
  return (
    <Context.Provider value={link}>
      <header>
        <h2>{title}</h2>
        <span class="busy" role="status">
          {slow ? "Python is working …" : ""}
        </span>
      </header>
      {link.fault && (
        <div key="alert" class="alert" role="alert">
          <p>{visible(link.fault)}</p>
          <button type="button" onClick={() => link.showFault("")}>
            Dismiss
          </button>
        </div>
      )}
      <div key="body" class="body">
        {/* Without keys, Preact would replace the body by the alert, and its inputs would lose their text. */}
        <Boundary link={link}>
          <View />
        </Boundary>
      </div>
    </Context.Provider>
  );
}

/** The module that anywidget loads: `export default widget("Title", View, css)`. */
export function widget(title: string, View: ComponentType, css = "") {
  return {
    render({ model, el }: { model: Model; el: HTMLElement }): () => void {
      const style = document.createElement("style");
      // Several widgets share a page, so the styles of one apply within its root only. A selector in a scope begins at the
      // root, which `.memlab` would look for inside the root.
      style.textContent = `${theme}\n@scope (.memlab[aria-label="${title}"]) {${css.replaceAll(".memlab", ":scope")}}`;
      const root = document.createElement("section");
      root.className = "memlab";
      root.setAttribute("aria-label", title);
      // Without this, Jupyter handles keys as commands and drags as its own.
      root.dataset.lmSuppressShortcuts = "true";
      // Jupyter checks the focused element first: without the mark, arrow keys on a slider would be commands.
      root.addEventListener(
        "focusin",
        (event) => ((event.target as HTMLElement).dataset.lmSuppressShortcuts = "true"),
      );
      el.append(style, root);
      const link = new Link(model);
      const unfollow = followTheme(root);
      render(<Frame link={link} title={title} View={View} />, root);
      return () => {
        unfollow();
        link.close();
        render(null, root);
        style.remove();
        root.remove();
      };
    },
  };
}
