/** anywidget's model without Jupyter: one over a websocket to `memlab view`, and one of a saved state. */
import type { Listener, Model, Offline } from "../shared/model";

/** The values of traits by name, and the listeners to their changes. */
class Traits {
  protected state: Record<string, unknown> = {};
  private listeners = new Map<string, Set<Listener>>();

  get(name: string): unknown {
    return this.state[name];
  }

  set(name: string, value: unknown): void {
    if (this.state[name] === value) return;
    this.state[name] = value;
    this.emit(`change:${name}`);
  }

  on(event: string, listener: Listener): void {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event)!.add(listener);
  }

  off(event: string, listener: Listener): void {
    this.listeners.get(event)?.delete(listener);
  }

  protected emit(event: string, ...values: unknown[]): void {
    for (const listener of [...(this.listeners.get(event) ?? [])]) listener(...(values as never[]));
  }
}

/** A message of Python: `update` with the values of traits, or `custom` with an answer. */
type Message = {
  method?: string;
  state?: Record<string, unknown>;
  buffer_paths?: string[][];
  content?: unknown;
};

/** The traits of a widget whose other half is in Python: changes are sent in both directions. */
abstract class Live extends Traits {
  private changedNames = new Set<string>();

  override set(name: string, value: unknown): void {
    if (this.state[name] === value) return;
    this.changedNames.add(name);
    super.set(name, value);
  }

  /** Return the traits that were set since the last call. */
  protected takeChanges(): Record<string, unknown> {
    const state = Object.fromEntries(
      [...this.changedNames].map((name) => [name, this.state[name]]),
    );
    this.changedNames.clear();
    return state;
  }

  protected receive(message: Message, buffers: DataView[]): void {
    if (message.method === "custom") this.emit("msg:custom", message.content, buffers);
    if (message.method !== "update") return;
    const state = message.state!;
    for (const [index, path] of message.buffer_paths!.entries()) {
      let parent = state;
      for (const key of path.slice(0, -1)) parent = parent[key] as Record<string, unknown>;
      parent[path.at(-1)!] = buffers[index];
    }
    Object.assign(this.state, state);
    for (const name of Object.keys(state)) this.emit(`change:${name}`);
  }
}

/** A model over a websocket, whose frames are described in memlab/ui/widgets/view.py. */
export class SocketModel extends Live implements Model {
  private socket: WebSocket;
  /** Resolves with the first state; rejects with a sentence where Python refuses the widget. */
  readonly ready: Promise<void>;
  ended: () => void = () => {};

  constructor(url: string) {
    super();
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.ready = new Promise((resolve, reject) => {
      this.socket.onmessage = (event) => {
        this.unpack(event.data);
        resolve();
      };
      this.socket.onclose = (event) => {
        const why = event.code === 1008 && event.reason;
        reject(
          new Error(
            why || "memlab does not answer. Start it again and open the address that it prints.",
          ),
        );
        this.state.fault =
          "The connection to memlab has ended. Start it again and open the address that it prints.";
        this.emit("change:fault");
        this.ended();
      };
    });
  }

  save_changes(): void {
    this.post({ method: "update", state: this.takeChanges(), buffer_paths: [] });
  }

  send(content: unknown): void {
    if (this.socket.readyState !== WebSocket.OPEN) throw new Error("the connection has ended");
    this.post({ method: "custom", content });
  }

  private post(data: unknown): void {
    this.socket.send(JSON.stringify(data));
  }

  private unpack(frame: ArrayBuffer): void {
    const headerSize = new DataView(frame).getUint32(0);
    const header = new TextDecoder().decode(new Uint8Array(frame, 4, headerSize));
    const { data, sizes } = JSON.parse(header);
    let offset = 4 + headerSize;
    const buffers: DataView[] = (sizes as number[]).map((size) => {
      const view = new DataView(frame, offset, size);
      offset += size;
      return view;
    });
    this.receive(data, buffers);
  }
}

function decodeBase64(text: string): DataView {
  return new DataView(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer);
}

/** The saved traits of a widget: values as JSON, tables as Arrow in base64. */
export type SavedState = { values: Record<string, unknown>; tables: Record<string, string> };

/** A model of a saved state: what is set stays in the page, and no request is answered. */
export class SavedModel extends Traits implements Model, Offline {
  constructor(
    { values, tables }: SavedState,
    readonly offline: string,
  ) {
    super();
    this.state = {
      ...values,
      ...Object.fromEntries(
        Object.entries(tables).map(([name, text]) => [name, decodeBase64(text)]),
      ),
    };
  }

  save_changes(): void {}

  send(): void {
    throw new Error(this.offline);
  }
}
