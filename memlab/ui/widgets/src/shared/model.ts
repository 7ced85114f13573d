/** The model that a host gives a widget, as anywidget defines it. Jupyter, a websocket and a snapshot each have one. */
export interface Model {
  /** Return the value of a trait, whose type its reader knows. */
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, listener: Listener): void;
  off(event: string, listener: Listener): void;
  send(content: unknown): void;
}

/** A function that is called with the values of an event; which values depends on the event. */
export type Listener = (...values: never[]) => void;

/** The reason why a model answers no request, as a sentence: a snapshot has no Python behind it. */
export interface Offline {
  offline?: string;
}
