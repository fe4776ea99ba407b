// The entry of the offline report: the same app over the data island of its own page.
import { AddressTrail, Shell } from "./shell.js";
import { Store } from "./state.js";

const reportStore = new Store(true);
reportStore.receive(JSON.parse(document.getElementById("cdiag-data").textContent));
new Shell(document.getElementById("cdiag-report"), reportStore, new AddressTrail());
