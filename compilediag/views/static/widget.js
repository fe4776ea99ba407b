// The entry for anywidget hosts (Jupyter, VS Code, marimo): one store a widget, any number of views on it.
import { Trail } from "./core/place.js";
import { Shell } from "./pages.js";
import { Store } from "./core/store.js";

/** Patches travel as JSON text: that survives NaN and lone surrogates, which the host's own JSON does not. */
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
