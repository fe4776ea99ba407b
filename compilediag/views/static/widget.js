// The entry for anywidget hosts (Jupyter, VS Code, marimo): one store for a widget, any number of views on it.
//
// Traits of DashboardWidget (compilediag/views/widget.py) that are read here, all written by the kernel only:
//   snapshot  JSON text of one patch with everything so far; read once, when the widget is initialized
//   page      "dashboard" or "explorer": the page that a view opens with
//   events    event ids; the explorer opens at the guard behind the first that it knows
//
// Messages from the kernel, each with `sent_ms` (Unix ms by the kernel's clock):
//   {type: "patch", patch}  JSON text of what is new
//   {type: "alive"}         nothing is new
//   {type: "error", text}   the kernel's side of the widget failed
// Message to the kernel:
//   {type: "resync"}        a patch was missed; the kernel answers with a patch that has everything
import { Trail } from "./core/place.js";
import { Store } from "./core/store.js";
import { Pages } from "./pages.js";
/** @import { Patch } from "./core/page-types" */

/**
 * @typedef {object} Model anywidget's model
 * @property {(name: string) => any} get
 * @property {(name: string, handler: (message: any) => void) => void} on
 * @property {(message: object) => void} send
 */

/**
 * Parses a patch. It is sent as text, because that preserves NaN and lone surrogates and the host's own JSON does not.
 * @param {string | Patch | null | undefined} value
 * @returns {Patch | null}
 */
function readPatch(value) {
  return typeof value === "string" ? JSON.parse(value) : value ?? null;
}

/**
 * @param {Model} model
 * @param {Store} store
 */
function connect(model, store) {
  /** @param {Patch | null} patch */
  const receive = (patch) => patch && store.receive(patch);
  store.onGap = () => model.send({ type: "resync" });
  receive(readPatch(model.get("snapshot")));
  model.on("msg:custom", (message) => {
    store.noteMessage(message.sent_ms);
    if (message.type === "patch") receive(readPatch(message.patch));
    if (message.type === "error") store.setProblem(message.text);
  });
}

export default () => {
  const store = new Store();
  return {
    /** @param {{model: Model}} host */
    initialize({ model }) {
      connect(model, store);
    },
    /** @param {{model: Model, el: HTMLElement}} host */
    render({ model, el }) {
      const root = document.createElement("div");
      el.append(root);
      const place = { page: model.get("page") ?? "dashboard", events: model.get("events") };
      const pages = new Pages(root, store, new Trail(place));
      return () => pages.destroy();
    },
  };
};
