// The entry of the offline report: the same pages under a head, with the data that the report carries.
import { make } from "./core/dom.js";
import { formatClock, formatCode, formatCount, formatDate, formatSeconds } from "./core/format.js";
import { openPage, unpackPatch } from "./core/page-data.js";
import { AddressTrail } from "./core/place.js";
import { Store } from "./core/store.js";
import { draw, html } from "./core/view.js";
import { Pages } from "./pages.js";

void openPage((root, data) => {
  const store = new Store(true);
  store.receive(unpackPatch(data));
  const [head, pages] = [make("div"), make("div")];
  draw(head, html`<${ReportHeader} meta=${store.meta} />`);
  root.replaceChildren(head, pages);
  new Pages({ root: pages, store, trail: new AddressTrail() });
});

const ABSENT = "not recorded";

/** @param {{meta: Partial<Meta>}} props when and where the session was recorded, of what, and with which versions */
function ReportHeader({ meta }) {
  const { title, started_ms: start, stopped_ms: stop, torch, python, compilediag, detail, pid, left_out: less } = meta;
  const versions = [torch && `torch ${torch}`, python && `Python ${python}`, compilediag && `compilediag ${compilediag}`];
  /** @type {[string, string | null | undefined][]} */
  const facts = [
    ["Date", start && formatDate(start) + (stop ? ` to ${formatClock(stop)} (${formatSeconds((stop - start) / 1000)})` : "") || null],
    ["Device", meta.device],
    ["Command", meta.redacted ? "left out: this report is redacted" : meta.command],
    ["Versions", versions.filter(Boolean).join(", ") || null],
    ["System", meta.platform],
    ["Detail", [detail, pid ? `pid ${pid}` : null].filter(Boolean).join(", ") || null],
  ];
  if (less) {
    const tables = Object.keys(less.rows);
    const compiles = `${formatCount(less.compiles)} of ${formatCount(less.of)} compiles, the shortest ones`;
    facts.push(["Left out", `${tables.map(formatCode).join(", ")} of ${compiles}, because the file would be too large. The session has `
      + `them: cd.load("run.cdiag").${tables[0]}, or cd.load("run.cdiag").dashboard() in a notebook`]);
  }
  return html`
    <header class="cdiag-report-head">
      <h1>${title ? `torch.compile report: ${title}` : "torch.compile report"}</h1>
      <dl>
        ${facts.map(([name, value]) => html`
          <div><dt>${name}</dt><dd class=${value ? "" : "is-absent"}>${value ?? ABSENT}</dd></div>`)}
      </dl>
    </header>`;
}
