/** A view of MCP Apps: JSON-RPC 2.0 over postMessage with the host, which passes calls and reads on to memlab. */
export type Answer = { content?: { text?: string }[]; structuredContent?: any; isError?: boolean };
type Waiting = { resolve: (value: any) => void; reject: (error: Error) => void };

export class Bridge {
  private waiting = new Map<number, Waiting>();
  private asked = 0;

  /** `hear` is given what the host notifies of. */
  constructor(
    private host: Window,
    hear: (method: string, params: any) => void,
  ) {
    window.addEventListener("message", ({ source, data: message }) => {
      if (source !== host || message?.jsonrpc !== "2.0") return;
      if (message.method === undefined) this.answered(message);
      else if (message.id === undefined) hear(message.method, message.params);
      else if (message.method === "ping" || message.method === "ui/resource-teardown")
        this.send({ id: message.id, result: {} });
      else this.send({ id: message.id, error: { code: -32601, message: "Method not found" } });
    });
  }

  notify(method: string, params: object): void {
    this.send({ method, params });
  }

  request(method: string, params: object): Promise<any> {
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }

  /** What a tool answers; rejects with the sentence of a refusal. */
  async call(name: string, given: object): Promise<Answer> {
    const answer: Answer = await this.request("tools/call", { name, arguments: given });
    if (answer.isError) throw new Error(answer.content?.[0]?.text ?? `The host refused ${name}.`);
    return answer;
  }

  async read(uri: string): Promise<string> {
    return (await this.request("resources/read", { uri })).contents[0].text;
  }

  private send(message: object): void {
    this.host.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  private answered({
    id,
    result,
    error,
  }: {
    id: number;
    result?: unknown;
    error?: { message: unknown };
  }): void {
    const open = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) open?.reject(new Error(String(error.message)));
    else open?.resolve(result);
  }
}
