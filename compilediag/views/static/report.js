// The entry of the offline report: the same pages, with the data that the report carries.
import { findRoot, readPageData } from "./core/page-data.js";
import { AddressTrail } from "./core/place.js";
import { Store } from "./core/store.js";
import { Pages } from "./pages.js";

const store = new Store(true);
store.receive(readPageData());
new Pages(findRoot(), store, new AddressTrail());
