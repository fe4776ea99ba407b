// The entry of the offline report: the same pages, with the data that the report carries.
import { make } from "./core/dom.js";
import { openPage, unpackPatch } from "./core/page-data.js";
import { AddressTrail } from "./core/place.js";
import { ReportHeader } from "./core/report-header.js";
import { Store } from "./core/store.js";
import { draw, html } from "./core/view.js";
import { Pages } from "./pages.js";

void openPage((root, data) => {
  const store = new Store(true);
  store.receive(unpackPatch(data));
  const [head, pages] = [make("div", ""), make("div", "")];
  draw(head, html`<${ReportHeader} meta=${store.meta} />`);
  root.replaceChildren(head, pages);
  new Pages(pages, store, new AddressTrail());
});
