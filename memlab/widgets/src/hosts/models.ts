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

/** Over a websocket. Frames are described in memlab/widgets/_page.py. */
export class SocketModel extends Traits implements Model {
  private dirty = new Set<string>();
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
        this.receive(event.data);
        resolve();
      };
      this.socket.onclose = (event) => {
        const why = event.code === 1008 && event.reason;
        reject(new Error(why || "memlab does not answer: start it again, and open the address that it prints."));
        this.state.fault = "The connection to memlab has ended. Start it again, and open the address that it prints.";
        this.emit("change:fault");
        this.ended();
      };
    });
  }

  override set(name: string, value: unknown): void {
    if (this.state[name] === value) return;
    this.dirty.add(name);
    super.set(name, value);
  }

  save_changes(): void {
    const state = Object.fromEntries([...this.dirty].map((name) => [name, this.state[name]]));
    this.dirty.clear();
    this.post({ method: "update", state, buffer_paths: [] });
  }

  send(content: unknown): void {
    if (this.socket.readyState !== WebSocket.OPEN) throw new Error("the connection has ended");
    this.post({ method: "custom", content });
  }

  private post(data: unknown): void {
    this.socket.send(JSON.stringify(data));
  }

  private receive(frame: ArrayBuffer): void {
    const head = new DataView(frame).getUint32(0);
    const { data, sizes } = JSON.parse(new TextDecoder().decode(new Uint8Array(frame, 4, head)));
    let at = 4 + head;
    const buffers: DataView[] = (sizes as number[]).map((size) => {
      const view = new DataView(frame, at, size);
      at += size;
      return view;
    });
    if (data.method === "custom") this.emit("msg:custom", data.content, buffers);
    if (data.method !== "update") return;
    for (const [place, path] of (data.buffer_paths as (string | number)[][]).entries()) {
      let inside = data.state;
      for (const step of path.slice(0, -1)) inside = inside[step];
      inside[path.at(-1)!] = buffers[place];
    }
    Object.assign(this.state, data.state);
    for (const name of Object.keys(data.state)) this.emit(`change:${name}`);
  }
}

export type Kept = { values: Record<string, any>; tables: Record<string, string> };

/** A state that was kept: what is set stays in the page, and nothing can be asked. */
export class KeptModel extends Traits implements Model, Still {
  constructor({ values, tables }: Kept, readonly still: string) {
    super();
    const bytes = (text: string) => new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
    this.state = { ...values, ...Object.fromEntries(Object.entries(tables).map(([name, text]) => [name, bytes(text)])) };
  }

  save_changes(): void {}

  send(): void {
    throw new Error(this.still);
  }
}
