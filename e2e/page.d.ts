// What the compiler cannot know about the page: what is in it.

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

/** What every page has. */
type Sure = <K extends keyof PageElements>(id: K) => PageElements[K];

/** What a button does, by its data-action. */
type Actions = Record<string, (button: HTMLElement, action: string) => unknown>;

/** A change to an element; see `Op` in crates/render/src/dom.rs. */
type Ops = Record<string, (it: HTMLElement, ...rest: any[]) => void>;
type Patch = [name: string, id: string, ...rest: any][];

interface Upload {
  name: string;
  key: string;
  sent: Promise<any>;
}

/** A message on its way. */
interface Said {
  text: string;
  files: Upload[];
  mode: string;
  /** An earlier message that it takes the place of. */
  replaces: string;
  clientId: string;
  /** The server could not be reached with it. */
  isOffline?: boolean;
}

/** What is searched for is an element or a field. */
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
