// The entry of the offline report: the same app over the data island of its own page.
import { App } from "./app.js";
import { Store } from "./state.js";

const reportStore = new Store(true);
reportStore.receive(JSON.parse(document.getElementById("cdiag-data").textContent));
new App(document.getElementById("cdiag-report"), reportStore);
