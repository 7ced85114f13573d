/** A view of MCP Apps: JSON-RPC 2.0 over postMessage with the host, which passes calls and reads on to memlab. */

/** The result of a tool call; `Content` is the type of its structured content. */
export type ToolResult<Content = unknown> = {
  content?: { text?: string }[];
  structuredContent?: Content;
  isError?: boolean;
};
type PendingRequest = { resolve: (value: unknown) => void; reject: (error: Error) => void };
type Response = { id: number; result?: unknown; error?: { message: unknown } };

export class Bridge {
  private waiting = new Map<number, PendingRequest>();
  private lastId = 0;

  /** `onNotification` is called with the method and the parameters of each notification of the host. */
  constructor(
    private host: Window,
    onNotification: (method: string, params: unknown) => void,
  ) {
    window.addEventListener("message", ({ source, data: message }) => {
      if (source !== host || message?.jsonrpc !== "2.0") return;
      if (message.method === undefined) this.settle(message);
      else if (message.id === undefined) onNotification(message.method, message.params);
      else if (message.method === "ping" || message.method === "ui/resource-teardown")
        this.send({ id: message.id, result: {} });
      else this.send({ id: message.id, error: { code: -32601, message: "Method not found" } });
    });
  }

  notify(method: string, params: object): void {
    this.send({ method, params });
  }

  /** Send a request and return its result, whose type the caller knows. */
  request<Result>(method: string, params: object): Promise<Result> {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve: (value) => resolve(value as Result), reject });
      this.send({ id, method, params });
    });
  }

  /** Call a tool; rejects with the sentence of a refusal. */
  async call(name: string, values: object): Promise<ToolResult> {
    const result = await this.request<ToolResult>("tools/call", { name, arguments: values });
    if (result.isError) throw new Error(result.content?.[0]?.text ?? `The host refused ${name}.`);
    return result;
  }

  /** Return the text of a resource. */
  async read(uri: string): Promise<string> {
    const { contents } = await this.request<{ contents: [{ text: string }] }>("resources/read", {
      uri,
    });
    return contents[0].text;
  }

  private send(message: object): void {
    this.host.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  private settle({ id, result, error }: Response): void {
    const request = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) request?.reject(new Error(String(error.message)));
    else request?.resolve(result);
  }
}
