// Shows the live page in place of the record that a notebook keeps.
//
// When a watch ends, the kernel replaces the widget's output by static HTML, so that a saved notebook shows what was
// recorded. The output's view is removed then, but the widget's model lives on. This module finds the record in the
// host's document by its class and puts the page there: the one that was removed, as the reader left it, or a new one.
import { make } from "./core/dom.js";
import { Pages } from "./pages.js";

const LOOK_MS = 60; // changes of the document within this time are looked at together
const PARKED_MS = 5000; // how long a removed page waits for its record
/** Classes with which JupyterLab, Notebook and nbclassic style HTML outputs. The page has styles of its own. */
const TEXT_CLASSES = ["jp-RenderedHTMLCommon", "rendered_html"];

/** @typedef {{root: HTMLElement, pages: Pages}} Page */
/** @typedef {Page & {before: ChildNode[], restore: () => void}} PlacedPage with what was there before */

export class RecordPages {
  /** @param {string} name class of the records @param {Store} store @param {() => Trail} makeTrail */
  constructor(name, store, makeTrail) {
    this.name = name;
    this.store = store;
    this.makeTrail = makeTrail;
    /** @type {Page[]} pages whose view was removed */
    this.parked = [];
    /** @type {Map<Element, PlacedPage>} record -> the page in it */
    this.placed = new Map();
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.timer = null;
    this.watcher = new MutationObserver(() => this.planLook());
    this.isWatching = false;
    this.listener = () => this.begin();
    store.listeners.add(this.listener);
    this.begin();
  }

  /** Looks for records once there can be any: when the recording has ended. */
  begin() {
    const { state } = this.store.meta;
    if (this.isWatching || state === undefined || state === "watching") return;
    this.isWatching = true;
    this.watcher.observe(document.body, { childList: true, subtree: true });
    this.planLook();
  }

  destroy() {
    this.store.listeners.delete(this.listener);
    this.watcher.disconnect();
    if (this.timer !== null) clearTimeout(this.timer);
    this.parked.forEach(({ pages }) => pages.destroy());
    this.placed.forEach(({ pages }) => pages.destroy());
  }

  /** @param {Page} page */
  park(page) {
    this.parked.push(page);
    this.planLook();
    setTimeout(() => {
      if (!this.parked.includes(page)) return;
      this.parked = this.parked.filter((other) => other !== page);
      page.pages.destroy();
    }, PARKED_MS);
  }

  planLook() {
    this.timer ??= setTimeout(() => this.look(), LOOK_MS);
  }

  look() {
    this.timer = null;
    if (!this.isWatching) return;
    for (const [node, page] of this.placed) {
      if (!node.isConnected) this.remove(node, page);
    }
    for (const node of document.getElementsByClassName(this.name)) {
      if (!this.placed.has(node)) this.place(node);
    }
  }

  /** @param {Element} node */
  place(node) {
    let page = this.parked.pop();
    if (!page) {
      const root = make("div");
      page = { root, pages: new Pages({ root, store: this.store, trail: this.makeTrail() }) };
    }
    // The host's text styles are taken off the output of a record.
    const styled = TEXT_CLASSES.map((name) => ({ name, output: node.closest(`.${name}`) }));
    styled.forEach(({ name, output }) => output?.classList.remove(name));
    const restore = () => styled.forEach(({ name, output }) => output?.classList.add(name));
    this.placed.set(node, { ...page, before: [...node.childNodes], restore });
    node.replaceChildren(page.root);
  }

  /** @param {Element} node @param {PlacedPage} page */
  remove(node, { root, pages, before, restore }) {
    this.placed.delete(node);
    restore();
    node.replaceChildren(...before); // a host that shows the node again begins anew
    this.park({ root, pages });
  }
}
