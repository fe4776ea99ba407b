// Makes elements and finds them.

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string>} attributes
 * @param {Node[]} children
 */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** @param {Event} event */
export function targetOf(event) {
  return /** @type {Element} */ (event.target);
}

/**
 * Handles keys by a table. A key that does something does not reach what is around; one whose action returns false does.
 * @param {Record<string, (event: KeyboardEvent) => unknown>} actions
 */
export function onKeys(actions) {
  return (/** @type {KeyboardEvent} */ event) => {
    if (!Object.hasOwn(actions, event.key) || actions[event.key](event) === false) return;
    event.preventDefault();
    event.stopPropagation();
  };
}

/**
 * The elements below one that a selector matches, in their order.
 * @param {Element | null | undefined} root
 * @param {string} selector
 */
export function findAll(root, selector) {
  return [.../** @type {Iterable<HTMLElement>} */ (root?.querySelectorAll(selector) ?? [])];
}

/** @type {SaveText} Saves a text as a file, as the browser saves a download. */
export function saveFile(name, type, text) {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
