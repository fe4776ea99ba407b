// Elements and their text. Text always goes through text nodes: nothing that a user's program named is ever parsed.

/** Makes an element with a class and children (strings become text nodes; null and "" are left out). */
export function make(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

/** Sets the text of an element if it differs (an equal assignment would still cost a layout). */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Shows or hides an element. */
export function setShown(node, shown) {
  if (node.hidden === shown) node.hidden = !shown;
}

/** Makes a button that does not submit anything. */
export function makeButton(className, text, onClick) {
  const button = make("button", className, text);
  button.type = "button";
  button.addEventListener("click", onClick);
  return button;
}

/** A sentence in which `code` between backticks becomes a code element. */
export function prose(text) {
  const parts = text.split("`");
  return parts.map((part, i) => (i % 2 && i < parts.length - 1 ? make("code", "", part) : part));
}
