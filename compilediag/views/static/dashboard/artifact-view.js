// The text of one artifact (graph, guards, generated code): inflated here, shown a page at a time.
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { formatBytes, formatCount } from "../core/format.js";
import { Highlighter, isCode } from "./code-highlight.js";

const PAGE = 60_000; // characters shown at first and added by "show more"
const COLOURED = 400_000; // characters that are coloured; more elements would make the page slow
const ADDRESS = /^https?:\/\/\S+$/;
const CHUNK = 200_000; // characters of one element when everything is shown

/** Inflates base64 of zlib-deflated UTF-8. */
export async function inflate(base64) {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

export class ArtifactView {
  /** `kept` is {z, cut} or undefined if the text is not in the page; `id` names it in the kernel. */
  constructor(id, name, size, kept) {
    this.id = id;
    this.kept = kept;
    this.text = null;
    this.shown = 0;
    this.highlighter = isCode(name) ? new Highlighter() : null;
    const label = make("span", "", name);
    this.toggle = makeButton("cdiag-artifact-toggle", "", () => this.setOpen(!this.isOpen));
    this.toggle.append(make("span", "cdiag-caret"), label, make("span", "cdiag-dim", formatBytes(size)));
    this.toggle.setAttribute("aria-expanded", "false");
    this.pages = make("div", "cdiag-pages");
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

  async setOpen(open) {
    this.isOpen = open;
    setShown(this.body, open);
    this.toggle.setAttribute("aria-expanded", String(open));
    if (!open || this.text !== null) return;
    if (!this.kept?.z) return this.sayAbsent();
    try {
      this.text = await inflate(this.kept.z);
    } catch (error) {
      this.text = "";
      return void setText(this.note, `this text cannot be read: ${error.message}`);
    }
    this.addPage(PAGE);
  }

  sayAbsent() {
    setText(this.note, `not in this page; in Python: session.artifact(${this.id})`);
    [this.more, this.all].forEach((button) => setShown(button, false));
  }

  addPage(length) {
    const end = this.text.indexOf("\n", this.shown + length) + 1 || this.text.length;
    const part = this.text.slice(this.shown, end - this.shown > 2 * length ? this.shown + length : end);
    this.shown += part.length;
    this.pages.append(make("pre", "", ...this.pieces(part)));
    this.paintFoot();
  }

  /** A part of the text as it is shown: code in colours, an address as a link. */
  pieces(part) {
    if (ADDRESS.test(part)) {
      const link = make("a", "cdiag-link", part);
      Object.assign(link, { href: part, target: "_blank", rel: "noopener noreferrer" });
      return [link];
    }
    if (!this.highlighter || this.shown > COLOURED) return [part];
    return part.split("\n").flatMap((line, i) => [...(i ? ["\n"] : []), ...this.highlighter.line(line)]);
  }

  /** The rest, a chunk a frame, so that ten megabytes do not freeze the page. */
  addEverything() {
    if (this.shown >= this.text.length) return;
    this.addPage(CHUNK);
    requestAnimationFrame(() => this.addEverything());
  }

  paintFoot() {
    const whole = this.shown >= this.text.length;
    const amount = `${whole ? "" : `${formatCount(this.shown)} of `}${formatCount(this.text.length)} characters`;
    const cut = this.kept.cut ? ` · cut to fit; the whole text in Python: session.artifact(${this.id})` : "";
    setText(this.note, amount + cut);
    [this.more, this.all].forEach((button) => setShown(button, !whole));
  }
}
