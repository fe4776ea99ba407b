// Makes elements and sets their text. Text always becomes a text node, so names from the user's program are never parsed.

/** @typedef {Node | string | null | undefined} Child null, undefined and "" are left out */

/**
 * Makes an element with a class and children; strings become text nodes.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} className
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  for (const child of children) if (child !== null && child !== undefined && child !== "") node.append(child);
  return node;
}

/**
 * Sets the text of an element if it differs; an equal assignment would still cost a layout.
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Shows or hides an element.
 * @param {HTMLElement} node
 * @param {boolean} shown
 */
export function setShown(node, shown) {
  if (node.hidden === shown) node.hidden = !shown;
}

/**
 * Gives an element these children in this order. A child that holds the focus or selected text is not moved, because
 * moving it would lose them.
 * @param {Element} parent
 * @param {Element[]} nodes
 */
export function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  if (nodes.every((node, i) => parent.children[i] === node)) return;
  const fixed = nodes.findIndex((node) => parent.contains(node) && holdsAttention(node));
  if (fixed < 0) return parent.append(...nodes);
  nodes[fixed].before(...nodes.slice(0, fixed));
  nodes[fixed].after(...nodes.slice(fixed + 1));
}

/**
 * True if the focus or selected text is in an element.
 * @param {Element} node
 */
function holdsAttention(node) {
  if (node.matches(":focus-within")) return true;
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(node, true);
}

/**
 * Makes a button that does not submit a form.
 * @param {string} className
 * @param {string} text
 * @param {() => void} onClick
 */
export function makeButton(className, text, onClick) {
  const button = make("button", className, text);
  button.type = "button";
  button.addEventListener("click", onClick);
  return button;
}

/**
 * Makes a search box that calls `onInput` at every change.
 * @param {string} placeholder
 * @param {string} label for screen readers
 * @param {() => void} onInput
 */
export function makeSearch(placeholder, label, onInput) {
  const search = make("input", "cdiag-search");
  search.type = "search";
  search.placeholder = placeholder;
  search.spellcheck = false;
  search.setAttribute("aria-label", label);
  search.addEventListener("input", onInput);
  return search;
}

/** The only addresses in our own sentences: torch's pages about graph breaks. Texts of a program can hold any other. */
export const ADDRESS = /(https:\/\/meta-pytorch\.github\.io\/compile-graph-break-site\/gb\/gb\d{1,6}\.html)(?!\S)/;

/**
 * Makes a link that opens in a tab of its own.
 * @param {string} url
 * @param {string} text
 */
export function makeLink(url, text) {
  const link = make("a", "cdiag-link", text);
  return Object.assign(link, { href: url, target: "_blank", rel: "noopener noreferrer" });
}

/**
 * Splits a sentence so that `code` between backticks becomes a code element, and an address a link.
 * @param {string} text
 * @returns {(string | HTMLElement)[]}
 */
export function makeProse(text) {
  const parts = text.split("`");
  const made = parts.map((part, i) => (i % 2 && i < parts.length - 1 ? [make("code", "", part)] : linkAddresses(part)));
  return made.flat();
}

/**
 * @param {string} text
 * @returns {(string | HTMLElement)[]}
 */
function linkAddresses(text) {
  return text.split(ADDRESS).map((part, i) => (i % 2 ? makeLink(part, part) : part));
}

/**
 * Shows a sentence with code between backticks, and more after it. An equal one changes nothing, so that a selection
 * stays; an empty one is hidden.
 * @param {HTMLElement} node
 * @param {string} text
 * @param {Child[]} more
 */
export function setProse(node, text, more = []) {
  const made = node.cloneNode(false);
  for (const child of [...makeProse(text), ...more]) if (child) made.appendChild(typeof child === "string" ? new Text(child) : child);
  if (!node.isEqualNode(made)) node.replaceChildren(...made.childNodes);
  setShown(node, node.hasChildNodes());
}

/**
 * Gives an element one child per sentence; a child whose text is the same stays.
 * @param {HTMLElement} parent
 * @param {"li" | "p"} tag
 * @param {string[]} texts
 */
export function setSentences(parent, tag, texts) {
  const known = new Map([...parent.children].map((child) => [child.textContent, child]));
  arrange(parent, texts.map((text) => {
    const made = make(tag, "", ...makeProse(text));
    return known.get(made.textContent) ?? made;
  }));
}

/**
 * The element that an event came from.
 * @param {Event} event
 * @returns {Element}
 */
export function targetOf(event) {
  return /** @type {Element} */ (event.target);
}
