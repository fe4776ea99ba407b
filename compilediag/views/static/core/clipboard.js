// A button that copies a text, also where a page may not use the clipboard's own interface.
import { useState } from "../vendor/hooks.js";
import { html } from "./view.js";

const SHOWN_MS = 2000; // how long the button says what happened

/**
 * A button that copies a text, and then says so.
 * @param {{text: string, hint: string, label?: string, kind?: string}} props `hint` says what is copied
 */
export function Copy({ text, hint, label = "Copy", kind = "" }) {
  const [said, say] = useState("");
  /** @param {MouseEvent} event */
  const copy = async (event) => {
    const button = /** @type {HTMLElement} */ (event.currentTarget);
    say((await copyText(text, button)) ? "Copied" : "Not copied");
    setTimeout(() => say(""), SHOWN_MS);
  };
  return html`<button type="button" class="cdiag-button cdiag-copy ${kind}" data-hint=${hint} onClick=${copy}>${said || label}</button>`;
}

/**
 * Copies a text; false if the browser does not allow it.
 * @param {string} text
 * @param {HTMLElement} beside where the fallback may put its text field
 */
export async function copyText(text, beside) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text, beside); // a page without https has no clipboard, and a frame may forbid it
  }
}

/**
 * @param {string} text
 * @param {HTMLElement} beside
 */
function copySelected(text, beside) {
  const field = document.createElement("textarea");
  field.className = "cdiag-copied-text";
  field.value = text;
  beside.after(field);
  field.select();
  try {
    return document.execCommand("copy");
  } finally {
    field.remove();
    beside.focus({ preventScroll: true });
  }
}
