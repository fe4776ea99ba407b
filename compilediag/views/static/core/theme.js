// Light or dark, as the host or the system has it, and the colors of the canvas read from the style sheet.

const SURFACES = ["surface", "text", "muted", "grid", "stripe"];
const SIGNS = ["dynamo", "aot", "inductor", "codegen", "triton", "recompile", "failed", "hit", "live", "live-fill"];

/** "dark" or "light": JupyterLab says so on the body, VS Code and marimo by a class, others through the system. */
function currentTheme() {
  const { jpThemeLight } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false" ? "dark" : "light";
  const names = [...document.body.classList, ...document.documentElement.classList];
  if (names.some((name) => name === "vscode-dark" || name === "dark")) return "dark";
  if (names.some((name) => name === "vscode-light" || name === "light")) return "light";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/**
 * Keeps `data-theme` of the root up to date; returns a function that stops.
 * @param {HTMLElement} root
 * @param {() => void} onChange
 */
export function followTheme(root, onChange) {
  const set = () => {
    root.dataset.theme = currentTheme();
    onChange();
  };
  const query = matchMedia("(prefers-color-scheme: dark)");
  const watcher = new MutationObserver(set);
  watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  query.addEventListener("change", set);
  set();
  return () => {
    watcher.disconnect();
    query.removeEventListener("change", set);
  };
}

/**
 * The canvas colors in force at an element: name in the style sheet -> color.
 * @param {Element} node
 * @returns {Record<string, string>}
 */
export function readPalette(node) {
  const style = getComputedStyle(node);
  return Object.fromEntries([...SURFACES, ...SIGNS].map((name) => [name, style.getPropertyValue(`--cd-${name}`).trim()]));
}
