/** The page of `memlab view`: anywidget's model over a websocket. Frames are described in memlab/widgets/_page.py. */
import type { Model } from "../shared/model";

type Callback = (...args: any[]) => void;

class SocketModel implements Model {
  private state: Record<string, any> = {};
  private dirty = new Set<string>();
  private callbacks = new Map<string, Set<Callback>>();
  private socket: WebSocket;
  readonly ready: Promise<void>;

  constructor(url: string) {
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.ready = new Promise((resolve) => {
      this.socket.onmessage = (event) => {
        this.receive(event.data);
        resolve();
      };
    });
    this.socket.onclose = () => {
      this.state.fault = "The connection to memlab has ended. Start it again and reload this page.";
      this.emit("change:fault");
    };
  }

  get(name: string): any {
    return this.state[name];
  }

  set(name: string, value: unknown): void {
    if (this.state[name] === value) return;
    this.state[name] = value;
    this.dirty.add(name);
    this.emit(`change:${name}`);
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

  on(event: string, callback: Callback): void {
    if (!this.callbacks.has(event)) this.callbacks.set(event, new Set());
    this.callbacks.get(event)!.add(callback);
  }

  off(event: string, callback: Callback): void {
    this.callbacks.get(event)?.delete(callback);
  }

  private emit(event: string, ...args: any[]): void {
    for (const callback of [...(this.callbacks.get(event) ?? [])]) callback(...args);
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

const main = document.querySelector("main")!;
const bundle = new URL(`./${main.dataset.widget}.js`, import.meta.url).href; // beside this file, and no part of it
const { default: widget } = await import(bundle);
const model = new SocketModel(`ws://${location.host}/live${location.search}`);
await model.ready;
widget.render({ model, el: main });
