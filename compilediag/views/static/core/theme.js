// Light or dark, as the host or the system has it, and the colours of the canvas read from the style sheet.

const SURFACES = ["surface", "text", "muted", "grid", "stripe"];
const SIGNS = ["dynamo", "aot", "inductor", "codegen", "triton", "recompile", "failed", "hit", "live", "live-fill"];

/** "dark" or "light": JupyterLab says so on the body, VS Code and marimo by a class, others through the system. */
export function currentTheme() {
  const { jpThemeLight } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false" ? "dark" : "light";
  const names = [...document.body.classList, ...document.documentElement.classList];
  if (names.some((name) => name === "vscode-dark" || name === "dark")) return "dark";
  if (names.some((name) => name === "vscode-light" || name === "light")) return "light";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Keeps `data-theme` of the root right; returns a function that stops. */
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

/** The canvas colours in force at an element: name in the style sheet -> colour. */
export function readPalette(node) {
  const style = getComputedStyle(node);
  const colour = (name) => style.getPropertyValue(`--cd-${name}`).trim();
  return Object.fromEntries([...SURFACES, ...SIGNS].map((name) => [name, colour(name)]));
}
