// The entry of the offline report: the same pages, with the data that the report carries.
import { make } from "./core/dom.js";
import { findRoot, readPageData, unpackPatch } from "./core/page-data.js";
import { AddressTrail } from "./core/place.js";
import { makeReportHeader } from "./core/report-header.js";
import { Store } from "./core/store.js";
import { Pages } from "./pages.js";

const store = new Store(true);
store.receive(unpackPatch(readPageData()));
const pages = make("div", "");
findRoot().replaceChildren(makeReportHeader(store.meta), pages);
new Pages(pages, store, new AddressTrail());
