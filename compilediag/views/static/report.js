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
  const [head, pages] = [make("div", ""), make("div", "")];
  draw(head, html`<${ReportHeader} meta=${store.meta} />`);
  root.replaceChildren(head, pages);
  new Pages(pages, store, new AddressTrail());
});

const ABSENT = "not recorded";

/**
 * @param {Partial<Meta>} meta
 * @returns {[string, string | null][]}
 */
function listFacts(meta) {
  return [
    ["Date", describeTime(meta)],
    ["Device", meta.device ?? null],
    ["Command", meta.redacted ? "left out: this report is redacted" : meta.command ?? null],
    ["Versions", describeVersions(meta)],
    ["System", meta.platform ?? null],
    ["Detail", [meta.detail, meta.pid ? `pid ${meta.pid}` : null].filter(Boolean).join(", ") || null],
  ];
}

/** @param {Partial<Meta>} meta */
function describeTime({ started_ms: start, stopped_ms: stop }) {
  if (!start) return null;
  return stop ? `${formatDate(start)} to ${formatClock(stop)} (${formatSeconds((stop - start) / 1000)})` : formatDate(start);
}

/** @param {Partial<Meta>} meta */
function describeVersions({ torch, python, compilediag }) {
  const known = [torch && `torch ${torch}`, python && `Python ${python}`, compilediag && `compilediag ${compilediag}`];
  return known.filter(Boolean).join(", ") || null;
}

/**
 * What a large report leaves out, and where it is; nothing for any other.
 * @param {Partial<Meta>} meta
 * @returns {[string, string][]}
 */
function listLeftOut({ left_out: less }) {
  if (!less) return [];
  const tables = Object.keys(less.rows);
  const compiles = `${formatCount(less.compiles)} of ${formatCount(less.of)} compiles, the shortest ones`;
  const text = `${tables.map(formatCode).join(", ")} of ${compiles}, because the file would be too large. The session has `
    + `them: cd.load("run.cdiag").${tables[0]}, or cd.load("run.cdiag").dashboard() in a notebook`;
  return [["Left out", text]];
}

/** @param {{meta: Partial<Meta>}} props */
function ReportHeader({ meta }) {
  return html`
    <header class="cdiag-report-head">
      <h1>${meta.title ? `torch.compile report: ${meta.title}` : "torch.compile report"}</h1>
      <dl>
        ${[...listFacts(meta), ...listLeftOut(meta)].map(([name, value]) => html`
          <div><dt>${name}</dt><dd class=${value === null ? "is-absent" : ""}>${value ?? ABSENT}</dd></div>`)}
      </dl>
    </header>`;
}
