/** anywidget's model without Jupyter: over a websocket to `memlab view`, and of a state that was kept. */
import type { Model, Still } from "../shared/model";

type Callback = (...args: any[]) => void;

/** Values by name, and who listens to them. */
class Traits {
  protected state: Record<string, any> = {};
  private callbacks = new Map<string, Set<Callback>>();

  get(name: string): any {
    return this.state[name];
  }

  set(name: string, value: unknown): void {
    if (this.state[name] === value) return;
    this.state[name] = value;
    this.emit(`change:${name}`);
  }

  on(event: string, callback: Callback): void {
    if (!this.callbacks.has(event)) this.callbacks.set(event, new Set());
    this.callbacks.get(event)!.add(callback);
  }

  off(event: string, callback: Callback): void {
    this.callbacks.get(event)?.delete(callback);
  }

  protected emit(event: string, ...args: any[]): void {
    for (const callback of [...(this.callbacks.get(event) ?? [])]) callback(...args);
  }
}

/** A message of Python: `update` with what a widget's traits are now, or `custom` with an answer. */
type Message = {
  method?: string;
  state?: Record<string, any>;
  buffer_paths?: (string | number)[][];
  content?: any;
};

/** Traits of a widget that Python has: what is set here is sent there, and what it sends is set here. */
abstract class Live extends Traits {
  private dirty = new Set<string>();

  override set(name: string, value: unknown): void {
    if (this.state[name] === value) return;
    this.dirty.add(name);
    super.set(name, value);
  }

  /** What was set since it was asked for last. */
  protected taken(): Record<string, unknown> {
    const state = Object.fromEntries([...this.dirty].map((name) => [name, this.state[name]]));
    this.dirty.clear();
    return state;
  }

  protected receive(message: Message, buffers: DataView[]): void {
    if (message.method === "custom") this.emit("msg:custom", message.content, buffers);
    if (message.method !== "update") return;
    const state = message.state!;
    for (const [place, path] of message.buffer_paths!.entries()) {
      let inside = state;
      for (const step of path.slice(0, -1)) inside = inside[step];
      inside[path.at(-1)!] = buffers[place];
    }
    Object.assign(this.state, state);
    for (const name of Object.keys(state)) this.emit(`change:${name}`);
  }
}

/** Over a websocket. Frames are described in memlab/ui/widgets/view.py. */
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
            why || "memlab does not answer: start it again, and open the address that it prints.",
          ),
        );
        this.state.fault =
          "The connection to memlab has ended. Start it again, and open the address that it prints.";
        this.emit("change:fault");
        this.ended();
      };
    });
  }

  save_changes(): void {
    this.post({ method: "update", state: this.taken(), buffer_paths: [] });
  }

  send(content: unknown): void {
    if (this.socket.readyState !== WebSocket.OPEN) throw new Error("the connection has ended");
    this.post({ method: "custom", content });
  }

  private post(data: unknown): void {
    this.socket.send(JSON.stringify(data));
  }

  private unpack(frame: ArrayBuffer): void {
    const head = new DataView(frame).getUint32(0);
    const { data, sizes } = JSON.parse(new TextDecoder().decode(new Uint8Array(frame, 4, head)));
    let at = 4 + head;
    const buffers: DataView[] = (sizes as number[]).map((size) => {
      const view = new DataView(frame, at, size);
      at += size;
      return view;
    });
    this.receive(data, buffers);
  }
}

function bytes(text: string): DataView {
  return new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
}

export type Kept = { values: Record<string, any>; tables: Record<string, string> };

/** A state that was kept: what is set stays in the page, and nothing can be asked. */
export class KeptModel extends Traits implements Model, Still {
  constructor(
    { values, tables }: Kept,
    readonly still: string,
  ) {
    super();
    this.state = {
      ...values,
      ...Object.fromEntries(Object.entries(tables).map(([name, text]) => [name, bytes(text)])),
    };
  }

  save_changes(): void {}

  send(): void {
    throw new Error(this.still);
  }
}
