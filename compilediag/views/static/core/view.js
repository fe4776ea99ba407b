// What components are written with: html`<${Step} step=${step} />`, without a build step. A text always becomes a text
// node, so names from the user's program are never parsed. Properties are written out: data is never spread into an element.
import { htm } from "../vendor/htm.js";
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/hooks.js";
import { h, render } from "../vendor/preact.js";

/**
 * An empty text is nothing, as false is. As a text node it would keep its place until an element comes there, and that would
 * take over a sibling of its kind; the siblings after it would lose theirs, and be made again.
 * @param {any} child
 */
const orNothing = (child) => (child === "" ? null : child);
const build = htm.bind((type, props, ...children) => h(type, props, ...children.map(orNothing)));

/** @type {(strings: TemplateStringsArray, ...values: any[]) => ComponentChild} */
export const html = (strings, ...values) => {
  const made = build(strings, ...values);
  return Array.isArray(made) ? made.map(orNothing) : made;
};

/**
 * Draws components into an element that they have for themselves; drawing again changes only what differs, so focus,
 * selection and open folds stay.
 * @param {Element} root
 * @param {ComponentChild} view
 */
export function draw(root, view) {
  render(view, root);
}

/** @type {Component<{node: HTMLElement}>} Holds an element that draws itself, such as the timeline. */
export function Held({ node }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => place.current?.replaceChildren(node), [node]);
  return html`<div class="cdiag-held" ref=${place}></div>`;
}

/** @param {number} ms after which a component is drawn again while it is shown, and so on; never for 0 */
export function useTicks(ms) {
  const [, setCount] = useState(0);
  useEffect(() => {
    if (!ms) return undefined;
    const timer = setInterval(() => setCount((count) => count + 1), ms);
    return () => clearInterval(timer);
  }, [ms]);
}
