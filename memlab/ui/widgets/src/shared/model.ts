/** What a host gives a widget: anywidget's model, of which Jupyter, a websocket and a snapshot are three kinds. */
export interface Model {
  get(name: string): any;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, callback: (...args: any[]) => void): void;
  off(event: string, callback: (...args: any[]) => void): void;
  send(content: unknown): void;
}

/** Why Python cannot be asked: a model that sets it (a snapshot) answers no request. */
export interface Still {
  still?: string;
}
