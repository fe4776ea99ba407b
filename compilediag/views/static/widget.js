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
import { Shell } from "./pages.js";

/** Parses a patch. It is sent as text, because that preserves NaN and lone surrogates and the host's own JSON does not. */
function readPatch(value) {
  return typeof value === "string" ? JSON.parse(value) : value;
}

function connect(model, store) {
  store.onGap = () => model.send({ type: "resync" });
  const snapshot = readPatch(model.get("snapshot"));
  if (snapshot) store.receive(snapshot);
  model.on("msg:custom", (message) => {
    store.heard(message.sent_ms);
    if (message.type === "patch") store.receive(readPatch(message.patch));
    if (message.type === "error") store.setProblem(message.text);
  });
}

export default () => {
  const store = new Store();
  return {
    initialize({ model }) {
      connect(model, store);
    },
    render({ model, el }) {
      const root = document.createElement("div");
      el.append(root);
      const shell = new Shell(root, store, new Trail({ page: model.get("page") ?? "dashboard", events: model.get("events") }));
      return () => shell.destroy();
    },
  };
};
