// A button that opens a list of commands over the page: arrow keys move, Enter runs, Escape closes and gives the focus back.
import { Icon } from "./blocks.js";
import { findAll, onKeys, targetOf } from "./dom.js";
import { html } from "./view.js";
import { useLayoutEffect, useRef, useState } from "../vendor/hooks.js";

/** @param {{label: string, className: string, commands: Command[]}} props */
export function Menu({ label, className, commands }) {
  const [isOpen, setOpen] = useState(false);
  const [isOnTheRight, setOnTheRight] = useState(false);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const items = () => findAll(place.current, "[role=menuitem]");
  const close = () => {
    setOpen(false);
    place.current?.querySelector("button")?.focus({ preventScroll: true });
  };
  /** @param {Command} command */
  const run = (command) => {
    close();
    command.run();
  };
  useLayoutEffect(() => {
    if (!isOpen) return;
    const [own, around] = [place.current, place.current?.closest(".cdiag")].map((node) => node?.getBoundingClientRect());
    setOnTheRight(Boolean(own && around && own.left + own.right > around.left + around.right)); // so that it stays inside of the page
    items()[0]?.focus();
  }, [isOpen]);
  /** @param {FocusEvent} event */
  const onBlur = ({ relatedTarget: next }) => {
    if (!(next instanceof Node) || !place.current?.contains(next)) setOpen(false);
  };
  /** @param {KeyboardEvent} event @param {number} step */
  const move = (event, step) => {
    const nodes = items();
    const here = nodes.findIndex((node) => node === targetOf(event).closest("button"));
    nodes.at((here + step) % nodes.length)?.focus();
  };
  const onKey = onKeys({
    ArrowDown: (event) => move(event, 1),
    ArrowUp: (event) => move(event, -1),
    Home: () => items()[0].focus(),
    End: () => items().at(-1)?.focus(),
    Escape: close,
  });
  if (!commands.length) return null;
  return html`<div class="cdiag-menu" ref=${place} onKeyDown=${isOpen && onKey} onFocusOut=${onBlur}>
    <button type="button" class=${className} aria-haspopup="menu" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}>
      ${label} <${Icon} name="down" />
    </button>
    <div class=${isOnTheRight ? "cdiag-menu-list is-right" : "cdiag-menu-list"} role="menu" aria-label=${label} hidden=${!isOpen}>
      ${commands.map((command) => html`
        <button type="button" role="menuitem" class="cdiag-menu-item" tabindex="-1" key=${command.key} data-command=${command.key}
          onClick=${() => run(command)}>
          ${command.label} <span class="cdiag-count">${command.note ?? ""}</span>
        </button>`)}
    </div>
  </div>`;
}
