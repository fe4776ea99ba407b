// Makes elements, sets their text, finds them. Text always becomes a text node, so names from the user's program are never parsed.

/** @typedef {Node | string | null | undefined} Child null, undefined and "" are left out */

/**
 * Makes an element with a class and children; strings become text nodes.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} className
 * @param {Child[]} children
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

/** @param {Event} event */
export function targetOf(event) {
  return /** @type {Element} */ (event.target);
}

/**
 * The elements below one that a selector matches, in their order.
 * @param {Element | null | undefined} root
 * @param {string} selector
 */
export function findAll(root, selector) {
  return [.../** @type {Iterable<HTMLElement>} */ (root?.querySelectorAll(selector) ?? [])];
}

/**
 * Saves a text as a file, as the browser saves a download.
 * @param {string} name
 * @param {string} type
 * @param {string} text
 */
export function saveFile(name, type, text) {
  const link = make("a", "");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
