// The text of one artifact (graph, guards, generated code): inflated here, shown a page at a time.
import { make, makeButton, makeLink, setShown, setText } from "../core/dom.js";
import { formatAmount, formatBytes, formatCount } from "../core/format.js";
import { inflate } from "../core/page-data.js";
import { CodeHighlighter, isCode } from "../core/code-highlight.js";
/** @import { StoredText } from "../core/page-types" */

const PAGE = 60_000; // characters shown at first and added by "show more"
const COLORED = 400_000; // characters that are colored; more elements would make the page slow
const ADDRESS = /^https?:\/\/\S+$/;
const CHUNK = 200_000; // characters of one element when everything is shown

export class ArtifactView {
  /**
   * @param {number} id event id, which names the artifact in the kernel
   * @param {string} name
   * @param {number | null} size in bytes
   * @param {StoredText | undefined} stored undefined if the text is not in the page
   */
  constructor(id, name, size, stored) {
    this.id = id;
    this.stored = stored;
    /** @type {string | null} */
    this.text = null;
    this.shown = 0;
    this.highlighter = isCode(name) ? new CodeHighlighter() : null;
    const label = make("span", "", name);
    this.toggle = makeButton("cdiag-artifact-toggle", "", () => void this.setOpen(!this.isOpen));
    this.toggle.append(make("span", "cdiag-caret"), label, make("span", "cdiag-dim", formatBytes(size)));
    this.toggle.setAttribute("aria-expanded", "false");
    this.pages = make("section", "cdiag-pages");
    this.pages.tabIndex = 0;
    this.note = make("span", "cdiag-dim");
    this.more = makeButton("cdiag-link", "show more", () => this.addPage(PAGE));
    this.all = makeButton("cdiag-link", "show all", () => this.addEverything());
    this.foot = make("div", "cdiag-artifact-foot", this.note, this.more, this.all);
    this.body = make("div", "cdiag-artifact-body", this.pages, this.foot);
    this.node = make("div", "cdiag-artifact", this.toggle, this.body);
    this.node.dataset.artifact = String(id);
    this.isOpen = false;
    setShown(this.body, false);
  }

  /** @param {boolean} open */
  async setOpen(open) {
    this.isOpen = open;
    setShown(this.body, open);
    this.toggle.setAttribute("aria-expanded", String(open));
    if (!open || this.text !== null) return;
    if (!this.stored?.z) return this.showAbsent();
    try {
      this.text = await inflate(this.stored);
    } catch (error) {
      this.text = "";
      return setText(this.note, `this text cannot be read: ${error instanceof Error ? error.message : error}`);
    }
    this.addPage(PAGE);
  }

  showAbsent() {
    setText(this.note, `not in this page; in Python: session.artifact(${this.id})`);
    [this.more, this.all].forEach((button) => setShown(button, false));
  }

  /** @param {number} length */
  addPage(length) {
    const text = this.text ?? "";
    const end = text.indexOf("\n", this.shown + length) + 1 || text.length;
    const part = text.slice(this.shown, end - this.shown > 2 * length ? this.shown + length : end);
    this.shown += part.length;
    this.pages.append(make("pre", "", ...this.pieces(part)));
    this.paintFoot();
  }

  /**
   * A part of the text as it is shown: code in colors, an address as a link.
   * @param {string} part
   * @returns {(string | HTMLElement)[]}
   */
  pieces(part) {
    if (ADDRESS.test(part)) return [makeLink(part, part)];
    const { highlighter } = this;
    if (!highlighter || this.shown > COLORED) return [part];
    return part.split("\n").flatMap((line, i) => [...(i ? ["\n"] : []), ...highlighter.colorLine(line)]);
  }

  /** Adds the rest, a chunk per frame, so that ten megabytes do not freeze the page. */
  addEverything() {
    if (this.shown >= (this.text ?? "").length) return;
    this.addPage(CHUNK);
    requestAnimationFrame(() => this.addEverything());
  }

  paintFoot() {
    const { length } = this.text ?? "";
    const isWhole = this.shown >= length;
    const amount = `${isWhole ? "" : `${formatCount(this.shown)} of `}${formatAmount(length, "character")}`;
    const cut = this.stored?.cut ? ` · cut to fit; the whole text in Python: session.artifact(${this.id})` : "";
    setText(this.note, amount + cut);
    [this.more, this.all].forEach((button) => setShown(button, !isWhole));
  }
}
