// Types of the page's elements and data, which the compiler cannot know.

/** Elements that every page with the script has, by id. */
interface PageElements {
  announcer: HTMLElement;
  agent: HTMLSelectElement;
  archive: HTMLElement;
  attach: HTMLInputElement;
  composer: HTMLFormElement;
  conversation: HTMLElement;
  earlier: HTMLElement;
  editing: HTMLElement;
  files: HTMLElement;
  folder: HTMLInputElement;
  format: HTMLSelectElement;
  found: HTMLElement;
  imported: HTMLElement;
  later: HTMLElement;
  menu: HTMLElement;
  note: HTMLElement;
  pending: HTMLElement;
  query: HTMLInputElement;
  raw: HTMLElement;
  renaming: HTMLDialogElement;
  retitle: HTMLFormElement;
  search: HTMLFormElement;
  send: HTMLElement;
  settings: HTMLDialogElement;
  sidebar: HTMLElement;
  status: HTMLElement;
  stop: HTMLElement;
  text: HTMLTextAreaElement;
  title: HTMLInputElement;
  transcripts: HTMLInputElement;
  undo: HTMLElement;
}

/** Effects of buttons, by `data-action`. */
type Actions = Record<string, (button: HTMLElement, action: string) => unknown>;

/** A change to an element; see `Op` in crates/render/src/html/op.rs. */
type Ops = Record<string, (target: HTMLElement, ...rest: any[]) => void>;
type Patch = [name: string, id: string, ...rest: any][];

interface Upload {
  name: string;
  key: string;
  sent: Promise<any>;
}

/** A message that is being sent. */
interface OutgoingMessage {
  text: string;
  files: Upload[];
  mode: string;
  /** Id of the earlier message that it replaces, or empty. */
  replaces: string;
  /** The idempotency key. */
  clientId: string;
  /** Whether it was not sent because the server could not be reached. */
  isOffline?: boolean;
}

/** A found element, which may be a field. */
interface Field extends HTMLElement {
  value: string;
  defaultValue: string;
  select(): void;
  setSelectionRange(from: number, to: number): void;
}
interface ParentNode {
  querySelector(selector: string): Field | null;
  querySelectorAll(selector: string): NodeListOf<Field>;
}
interface Document {
  createElement(tag: "template"): HTMLTemplateElement;
  createElement(tag: string): Field;
}
interface EventTarget {
  closest(selector: string): HTMLElement | null;
}
interface Element {
  closest(selector: string): HTMLElement | null;
}
