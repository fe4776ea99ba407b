// Explanations and whole texts on hover and on focus: one box per page, above everything. Escape hides it.
import { findAll, make, targetOf } from "./dom.js";

const WAIT_MS = 250; // of hovering before it opens
const GAP = 6; // px between it and what it explains

let count = 0;

/** @param {Element} start whose explanation is looked for, or its text if that is cut off; else those of what it is in */
function findHint(start) {
  for (let node = /** @type {HTMLElement | null} */ (start); node && !node.classList.contains("cdiag"); node = node.parentElement) {
    const text = node.dataset.hint || (isCut(node) ? node.textContent ?? "" : null);
    if (text !== null) return { node, text };
  }
  return null;
}

/** @type {Is<HTMLElement>} */
function isCut(node) {
  return node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).textOverflow === "ellipsis";
}

/** Follows the pointer and the focus in an element, until it is destroyed. */
export class Hints {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    count += 1;
    this.box = make("div", { class: "cdiag-tooltip", id: `cdiag-tooltip-${count}`, role: "tooltip", hidden: "" });
    root.append(this.box);
    /** @type {HTMLElement | null} what it explains now */
    this.owner = null;
    /** True while it explains what has the focus: then only the end of the focus and Escape hide it. */
    this.isOfFocus = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    root.addEventListener("mouseover", (event) => this.plan(findHint(targetOf(event))));
    root.addEventListener("mouseleave", () => this.plan(null));
    root.addEventListener("focusin", (event) => this.onFocus(targetOf(event)));
    root.addEventListener("focusout", () => this.hide());
    // The focus itself scrolls what it reaches into view.
    root.addEventListener("scroll", () => (this.isOfFocus ? this.place() : this.hide()), { capture: true, passive: true });
    root.addEventListener("keydown", (event) => this.onKey(event), { capture: true });
  }

  destroy() {
    clearTimeout(this.timer);
  }

  /** @param {{node: HTMLElement, text: string} | null} hint */
  plan(hint) {
    clearTimeout(this.timer);
    if (hint?.node === this.owner && hint) return;
    if (hint) this.timer = setTimeout(() => this.show(hint.node, hint.text), WAIT_MS);
    else if (!this.isOfFocus) this.hide();
  }

  /** @param {Element} node that has the focus: also the texts in it that are cut off are shown */
  onFocus(node) {
    if (!(node instanceof HTMLElement) || !node.matches(":focus-visible")) return;
    const cut = [node, ...findAll(node, "*")].filter(isCut);
    const text = [node.dataset.hint, ...cut.map((each) => each.textContent)].filter(Boolean).join("\n");
    if (!text) return;
    this.show(node, text);
    this.isOfFocus = this.owner !== null;
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.key !== "Escape" || this.box.hidden) return;
    if (this.owner?.matches(".cdiag-term")) event.stopPropagation(); // the first Escape hides the explanation and nothing else
    this.hide();
  }

  hide() {
    clearTimeout(this.timer);
    this.owner?.removeAttribute("aria-describedby");
    this.owner = null;
    this.isOfFocus = false;
    this.box.hidden = true;
  }

  /** @param {HTMLElement} node @param {string} text */
  show(node, text) {
    this.hide();
    if (!node.isConnected) return;
    this.owner = node;
    this.box.textContent = text;
    this.box.hidden = false;
    node.setAttribute("aria-describedby", this.box.id);
    this.place();
  }

  /** Below the element, or above it where there is no room; inside of the page. */
  place() {
    const [at, around] = [this.owner ?? this.root, this.root].map((node) => node.getBoundingClientRect());
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const left = Math.max(4, Math.min(at.left - around.left, around.width - width - 4));
    const isBelow = at.bottom + GAP + height < Math.min(around.bottom, innerHeight);
    const top = isBelow ? at.bottom + GAP : at.top - GAP - height;
    Object.assign(this.box.style, { left: `${left}px`, top: `${top - around.top}px` });
  }
}
