// A button that copies a text, also where a page may not use the clipboard's own interface.
import { makeButton, setText } from "./dom.js";
import { setHint } from "./hints.js";

const SHOWN_MS = 2000; // how long the button says what happened

/**
 * Makes a button that copies the text that `read` returns when it is clicked, and then says so.
 * @param {string} label for screen readers
 * @param {() => string} read
 */
export function makeCopyButton(label, read) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const button = makeButton("cdiag-copy", "Copy", async () => {
    const isCopied = await copyText(read(), button);
    setText(button, isCopied ? "Copied" : "Not copied");
    clearTimeout(timer);
    timer = setTimeout(() => setText(button, "Copy"), SHOWN_MS);
  });
  setHint(button, label);
  return button;
}

/**
 * Copies a text; false if the browser does not allow it.
 * @param {string} text
 * @param {HTMLElement} beside where the fallback may put its text field
 */
async function copyText(text, beside) {
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
