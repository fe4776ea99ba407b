// Tells a page when the browser prints.

/**
 * Runs a function before and one after the browser prints; returns a function that stops.
 * @param {() => void} before runs before the listeners of the page's parts, which draw in its theme
 * @param {() => void} after
 */
export function followPrint(before, after) {
  addEventListener("beforeprint", before, { capture: true });
  addEventListener("afterprint", after);
  return () => {
    removeEventListener("beforeprint", before, { capture: true });
    removeEventListener("afterprint", after);
  };
}
