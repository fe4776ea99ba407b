// The entry of the offline report: the same app over the data island of its own page.
import { AddressTrail } from "./core/place.js";
import { Shell } from "./pages.js";
import { Store } from "./core/store.js";

const reportStore = new Store(true);
reportStore.receive(JSON.parse(document.getElementById("cdiag-data").textContent));
new Shell(document.getElementById("cdiag-report"), reportStore, new AddressTrail());
