// The entry for anywidget hosts (Jupyter, VS Code, marimo): one store for a widget, any number of views on it.
//
// Traits of DashboardWidget (compilediag/views/widget.py) that are read here, all written by the kernel only:
//   snapshot  JSON text of one patch with everything so far; read once, when the widget is initialized
//   page      "dashboard", "plan" or "explorer": the page that a view opens with
//   events    event ids; the explorer opens at the guard behind the first that it knows
//   search    the search for a change that a page has started; {} without one
//   record    class of the element that has this widget's record in a notebook: see record-pages.js
//
// Messages from the kernel, each with `sent_ms` (Unix ms by the kernel's clock):
//   {type: "patch", patch}  JSON text of what is new
//   {type: "alive"}         nothing is new
//   {type: "error", text}   the kernel's side of the widget failed
// Messages to the kernel:
//   {type: "resync", seq}   a patch was missed; the kernel answers with a patch that has everything, unless `seq` is
//                           its last patch
//   {type: "fix", action, request}  "start" or "cancel" a search, or "ask" whether there can be one; the kernel answers
//                           only if the magics are loaded: {type: "answer", request, notice | error}
//   {type: "export", format, request}  write the session to a file; the kernel answers with
//                           {type: "answer", request, path | error}
import { make } from "./core/dom.js";
import { followKernel, KernelRequests } from "./core/kernel.js";
import { Trail } from "./core/place.js";
import { Store } from "./core/store.js";
import { Pages } from "./pages.js";
import { RecordPages } from "./record-pages.js";

const FIRST_NEWS_MS = 3000; // a page that hears nothing for so long after its start asks for everything

/** @param {WidgetModel} model @param {Store} store */
function connect(model, store) {
  /** @param {string | Patch | null | undefined} patch sent as text, because that keeps NaN and lone surrogates; JSON of the host does not */
  const receive = (patch) => patch && store.receive(typeof patch === "string" ? JSON.parse(patch) : patch);
  store.kernel = new KernelRequests((message) => model.send(message));
  store.onGap = () => model.send({ type: "resync" });
  receive(model.get("snapshot"));
  const readSearch = () => {
    const search = model.get("search");
    store.search = search && "running" in search ? search : null;
    store.notify(true);
  };
  model.on("change:search", readSearch);
  readSearch();
  // A notebook can store the widget and show it without its kernel, so there is no button before an answer.
  void store.kernel.ask({ type: "fix", action: "ask" }).then(() => {
    store.canSearch = true;
    store.notify(true);
  });
  let hasNews = false;
  model.on("msg:custom", (message) => {
    hasNews = true;
    store.noteMessage(message.sent_ms);
    if (message.type === "patch") receive(message.patch);
    if (message.type === "error") {
      store.problem = message.text;
      store.notify();
    }
    if (message.type === "answer") store.kernel?.receive(message);
  });
  // What a host has stored can be from before the end of the watch.
  const ask = () => hasNews || model.send({ type: "resync", seq: store.seq });
  const timer = store.isLive() ? setTimeout(ask, FIRST_NEWS_MS) : undefined;
  followKernel(model.widget_manager, () => store.noteKernelStop());
  return () => clearTimeout(timer);
}

export default () => {
  const store = new Store();
  /** @type {RecordPages | null} */
  let records = null;
  return {
    /** @param {{model: WidgetModel}} host */
    initialize({ model }) {
      const disconnect = connect(model, store);
      const name = model.get("record");
      if (name) records = new RecordPages(name, store, () => makeTrail(model));
      return () => {
        disconnect();
        records?.destroy();
      };
    },
    /** @param {{model: WidgetModel, el: HTMLElement}} host */
    render({ model, el }) {
      const root = make("div");
      el.append(root);
      const pages = new Pages({ root, store, trail: makeTrail(model) });
      return () => (records ? records.park({ root, pages }) : pages.destroy());
    },
  };
};

/** @param {WidgetModel} model */
function makeTrail(model) {
  return new Trail({ page: model.get("page") ?? "dashboard", events: model.get("events") });
}
