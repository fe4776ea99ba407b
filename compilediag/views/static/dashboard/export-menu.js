// The commands of the export menu: files that the kernel writes, and files that the browser makes of what is in the page.
import { copyText } from "../core/blocks.js";
import { saveFile } from "../core/dom.js";
import { writeLink } from "../core/place.js";

/** @type {[format: string, label: string][]} what the kernel writes */
const FORMATS = [
  ["html", "HTML report"],
  ["cdiag", "Session file (.cdiag)"],
  ["markdown", "Markdown for an issue, redacted"],
  ["csv", "CSV files, one per table"],
  ["parquet", "Parquet files, one per table"],
  ["perfetto", "Perfetto trace"],
];

export class Exports {
  /** @param {Store} store @param {ExportedPage} page */
  constructor(store, { readTable, readRange, print }) {
    this.store = store;
    this.message = ""; // what became of the last export
    /** @type {Command[]} */
    const inBrowser = [
      { key: "table", label: "This table as CSV", run: () => this.saveTable(readTable()) },
      { key: "json", label: "Everything as JSON", run: () => this.saveJson() },
    ];
    const byKernel = FORMATS.map(([key, label]) => ({ key, label, run: () => void this.write(key, label) }));
    const copyLink = async () => {
      const isCopied = await copyText(writeLink({ range: readRange() }), /** @type {HTMLElement} */ (document.activeElement));
      this.say(isCopied ? "The link to what the timeline shows is copied" : "The browser did not allow the copy");
    };
    const link = { key: "link", label: "Copy a link to this stretch", run: () => void copyLink() };
    // A notebook prints all of its cells, so only a report offers it.
    const paper = { key: "print", label: "Print or save as PDF", run: print };
    this.commands = store.isFrozen ? [link, ...inBrowser, paper] : [...byKernel, ...inBrowser];
  }

  /** @param {string} format @param {string} label */
  async write(format, label) {
    const { kernel } = this.store;
    if (!kernel) return;
    this.say(`${label}: the kernel writes it when it is idle`);
    const { path, error } = await kernel.ask({ type: "export", format });
    this.say(path ? `${label} written to ${path}` : `${label} was not written: ${error}`);
  }

  /** @param {string} text */
  say(text) {
    this.message = text;
    this.store.notify(true);
  }

  /** @param {ShownTab} shown */
  saveTable({ tab, positions }) {
    const { columns, rows } = this.store.table(tab.table);
    /** @param {unknown} value */
    const writeCell = (value) => {
      const text = typeof value === "object" ? JSON.stringify(value) : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = positions.map((at) => columns.map((_, i) => rows[at][i] ?? ""));
    const text = [columns.map(({ name }) => name), ...lines].map((cells) => cells.map(writeCell).join(",")).join("\r\n");
    this.save(`${tab.name}.csv`, "text/csv", text);
  }

  saveJson() {
    const { meta, totals, plan, findings } = this.store;
    const tables = [...this.store.tables.values()].filter(({ rows }) => rows.length).map(({ name, columns, rows }) => {
      return [name, rows.map((row) => Object.fromEntries(columns.map((column, i) => [column.name, row[i] ?? null])))];
    });
    const text = JSON.stringify({ meta, totals, plan, findings, tables: Object.fromEntries(tables) }, null, 1);
    this.save("session.json", "application/json", text);
  }

  /** @type {SaveText} */
  save(name, type, text) {
    const file = name.replace(/[^\w.-]+/g, "_");
    saveFile(file, type, text);
    this.say(`${file} was saved in the folder of your downloads`);
  }
}
