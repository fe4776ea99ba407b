// Light or dark, as the host or the system has it, and the colors of the canvas read from the style sheet.

const SURFACES = ["surface", "text", "muted", "line", "stripe"];
const SIGNS = ["need", "re", "re-text", "re-soft", "bad", "bad-text", "bad-soft", "good", "accent", "live-fill"];
const PHASES = ["dynamo", "aot", "inductor", "codegen", "triton", "tuning"].flatMap((kind) => [`p-${kind}`, `i-${kind}`]);

// Classes of the body or the page: VS Code and marimo. VS Code's light high contrast has both of its classes.
const LIGHT = ["vscode-high-contrast-light", "vscode-light", "light"];
const DARK = ["vscode-dark", "vscode-high-contrast", "dark"];
// Attributes with the word itself: Colab, and pages that use one of the usual names.
const ATTRIBUTES = ["theme", "data-theme", "data-bs-theme", "data-color-mode"];

/** @type {(root: HTMLElement) => string} as the host says, else by what is behind the element, else as the system has it */
function currentTheme(root) {
  const { jpThemeLight } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false" ? "dark" : "light";
  const nodes = [document.body, document.documentElement];
  const names = nodes.flatMap((node) => [...node.classList, ...ATTRIBUTES.map((name) => node.getAttribute(name))]);
  if (names.some((name) => name && LIGHT.includes(name))) return "light";
  if (names.some((name) => name && DARK.includes(name))) return "dark";
  for (let node = root.parentElement; node; node = node.parentElement) {
    const numbers = getComputedStyle(node).backgroundColor.match(/^rgba?\((.*)\)$/)?.[1].split(/[ ,/]+/);
    const [red, green, blue, alpha = 1] = (numbers ?? []).map(Number);
    if (blue !== undefined && alpha > 0.5) return 0.3 * red + 0.59 * green + 0.11 * blue < 128 ? "dark" : "light";
  }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/**
 * Keeps `data-theme` of the root up to date until `signal` ends it. `onChange` runs after each change of colors, also where a
 * host loads the style sheet of a theme after it has said its name: the root's background changes then, and that is a
 * transition (theme.css).
 * @param {HTMLElement} root
 * @param {AbortSignal | undefined} signal
 * @param {() => void} onChange
 */
export function followTheme(root, signal, onChange) {
  const set = () => {
    root.dataset.theme = currentTheme(root);
    onChange();
    // JupyterLab hides its notebooks for this moment, and what is hidden has no size to paint in.
    if (!root.clientWidth) requestAnimationFrame(() => requestAnimationFrame(onChange));
  };
  const watcher = new MutationObserver(set);
  for (const node of [document.body, document.documentElement]) watcher.observe(node, { attributes: true });
  signal?.addEventListener("abort", () => watcher.disconnect());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", set, { signal });
  root.addEventListener("transitionend", (event) => event.target === root && set(), { signal });
  set();
}

/** @type {(node: Element) => Record<string, string>} name in the style sheet -> color of the canvas in force at an element */
export function readPalette(node) {
  const style = getComputedStyle(node);
  return Object.fromEntries([...SURFACES, ...SIGNS, ...PHASES].map((name) => [name, style.getPropertyValue(`--cd-${name}`).trim()]));
}
