/**
 * What every widget stands on: one root, one place for faults, traits as state, and requests to Python.
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
import type { Model, Still } from "./model";
import { rows, type Table, table } from "./table";
import { visible } from "./text";
import { followTheme } from "./theme";
import theme from "./theme.css";

const SLOW = 400; // milliseconds until a request is said to be under way
const SILENT = 20_000; // and until it is said that nobody answers

type Waiting = { resolve: (value: any) => void; timer: ReturnType<typeof setTimeout> };

/** One widget's connection to Python. `ask` never rejects: a fault is shown in the widget, and undefined returned. */
export class Link {
  fault = "";
  changed: () => void = () => {};
  private waiting = new Map<number, Waiting>();
  private last = 0;

  constructor(readonly model: Model & Still) {
    model.on("msg:custom", this.receive);
    model.on("change:fault", this.refault);
    model.on("comm_live_update", this.lost); // Jupyter, once it knows that the kernel of a model is gone
    this.fault = model.get("fault") ?? "";
  }

  get pending(): number {
    return this.waiting.size;
  }

  ask<Answer = Record<string, any>>(
    verb: string,
    values: Record<string, unknown> = {},
  ): Promise<Answer | undefined> {
    if (this.model.still) {
      this.say(this.model.still);
      return Promise.resolve(undefined);
    }
    const id = ++this.last;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.say(
          "Python has not answered for 20 seconds: it is at work, or the kernel was restarted. If it was, run the cell again.",
        );
      }, SILENT);
      this.waiting.set(id, { resolve, timer });
      this.changed();
      try {
        this.model.send({ id, verb, arguments: values });
      } catch (error) {
        this.end(id, undefined);
        this.say(
          `Python cannot be reached (${error instanceof Error ? error.message : error}). Run the cell again.`,
        );
      }
    });
  }

  say(fault: string): void {
    this.fault = fault;
    this.changed();
  }

  close(): void {
    this.model.off("msg:custom", this.receive);
    this.model.off("change:fault", this.refault);
    this.model.off("comm_live_update", this.lost);
    this.forget();
  }

  private forget(): void {
    for (const id of [...this.waiting.keys()]) this.end(id, undefined);
  }

  private end(id: number, value: unknown): void {
    const one = this.waiting.get(id);
    if (!one) return;
    clearTimeout(one.timer);
    this.waiting.delete(id);
    one.resolve(value);
    this.changed();
  }

  private refault = (): void => this.say(this.model.get("fault") ?? "");

  private lost = (): void => {
    this.forget();
    this.say("Python is gone: the kernel was restarted or shut down. Run the cell again.");
  };

  private receive = (content: any, buffers: DataView[] = []): void => {
    if (!this.waiting.has(content?.id)) return; // another view of the same model asked
    if (content.error !== undefined) {
      this.end(content.id, undefined);
      this.say(content.error);
      return;
    }
    const value = content.value;
    for (const [index, name] of (content.tables as string[]).entries())
      value[name] = table(buffers[index]);
    this.say("");
    this.end(content.id, value);
  };
}

const Context = createContext<Link>(null as unknown as Link);

/** `ask(verb, values)` calls `answer_<verb>` of the Python half; undefined when that failed, which is then shown. */
export function useAsk(): Link["ask"] {
  const link = useContext(Context);
  return useCallback((verb, values) => link.ask(verb, values), [link]);
}

/** Show a sentence where faults are shown. */
export function useSay(): (fault: string) => void {
  const link = useContext(Context);
  return useCallback((fault) => link.say(fault), [link]);
}

/** Empty where Python answers; else the sentence that says why what needs it is disabled. */
export function useStill(): string {
  return useContext(Context).model.still ?? "";
}

/** Empty where the lab can be written; else the sentence that says why what writes is disabled. */
export function useReadOnly(): string {
  const { model } = useContext(Context);
  return model.still || model.get("read_only") || "";
}

/** A synced trait and what sets it. */
export function useTrait<T>(name: string): [T, (value: T) => void] {
  const { model } = useContext(Context);
  const [value, setValue] = useState<T>(() => model.get(name));
  useEffect(() => {
    const follow = () => setValue(() => model.get(name));
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

/** A trait of Arrow bytes as a table. */
export function useTable(name: string): Table | null {
  const [bytes] = useTrait<DataView | null>(name);
  return useMemo(() => table(bytes), [bytes]);
}

/** A trait of Arrow bytes as rows. */
export function useRows<Row>(name: string): Row[] {
  const found = useTable(name);
  return useMemo(() => rows<Row>(found), [found]);
}

/**
 * What somebody types or drags: ahead of the state, which comes back into it unless it is an echo of what was typed
 * before. Without that a slow answer takes letters away again.
 */
export function useForm<Form extends object>(state: Form): [Form, (next: Form) => void] {
  const [form, setForm] = useState(state);
  const sent = useRef<string[]>([]);
  const key = JSON.stringify(state);
  useEffect(() => {
    const place = sent.current.lastIndexOf(key);
    if (place < 0) setForm(state);
    sent.current = place < 0 ? [] : sent.current.slice(place + 1); // what was sent before it is answered, too
  }, [key]);
  const set = useCallback((next: Form) => {
    sent.current.push(JSON.stringify(next));
    setForm(next);
  }, []);
  return [form, set];
}

/** A call of which one is under way at a time and only the latest waits: for what follows each keystroke or drag. */
export function useLatest<Given extends unknown[]>(
  call: (...given: Given) => Promise<unknown>,
): (...given: Given) => void {
  const newest = useRef(call);
  newest.current = call;
  const state = useRef<{ busy: boolean; next: Given | null }>({ busy: false, next: null });
  return useCallback((...given: Given) => {
    const now = state.current;
    now.next = given;
    if (now.busy) return;
    now.busy = true;
    void (async () => {
      while (now.next) {
        const taken = now.next;
        now.next = null;
        await newest.current(...taken);
      }
      now.busy = false;
    })();
  }, []);
}

/** What fails while it is drawn is shown as a fault, and reported as any other error of the page. */
class Boundary extends Component<{ link: Link; children: ComponentChildren }> {
  componentDidCatch(error: Error): void {
    this.props.link.say(`This widget failed: ${error.message}`);
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
          {slow ? "Python is at work …" : ""}
        </span>
      </header>
      {link.fault && (
        <div key="alert" class="alert" role="alert">
          <p>{visible(link.fault)}</p>
          <button type="button" onClick={() => link.say("")}>
            Dismiss
          </button>
        </div>
      )}
      <div key="body" class="body">
        {/* without keys a fault takes its place, and what was typed in it is gone */}
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
      // Several widgets share a page: what one says of `.row` is not for the others. Within a scope a selector begins at
      // its root, so `.memlab .row` would want one root in another.
      style.textContent = `${theme}\n@scope (.memlab[aria-label="${title}"]) {${css.replaceAll(".memlab", ":scope")}}`;
      const root = document.createElement("section");
      root.className = "memlab";
      root.setAttribute("aria-label", title);
      // Jupyter takes keys as commands, and drags as its own, unless told that this is a form.
      root.dataset.lmSuppressShortcuts = "true";
      // It asks an element before those around it, so arrow keys on a slider were commands: each says so itself.
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
