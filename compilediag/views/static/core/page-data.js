// What an offline page carries: an element to draw in, and its data.
/** @import { PackedPatch, Patch, StoredText } from "./page-types" */

/** @param {string} id */
function findElement(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element #${id}`);
  return element;
}

/** The element that the page is drawn in. */
export function findRoot() {
  return findElement("cdiag-report");
}

/** The data of the page, from the JSON that is in it. */
export function readPageData() {
  return JSON.parse(findElement("cdiag-data").textContent ?? "null");
}

/**
 * The patch of a report, as compilediag/views/report.py packs it: a cell can be the number of a text.
 * @param {PackedPatch} packed
 * @returns {Patch}
 */
export function unpackPatch({ strings = [], packed = {}, ...patch }) {
  for (const [table, columns] of Object.entries(packed)) {
    for (const row of patch.rows?.[table] ?? []) {
      for (const at of columns) if (typeof row[at] === "number") row[at] = strings[row[at]];
    }
  }
  const texts = patch.texts ?? {};
  for (const text of Object.values(texts)) if (text.in !== undefined) text.z = texts[text.in].z;
  return patch;
}

/**
 * The text of an artifact: base64 of zlib-deflated UTF-8, alone or as a part of a block.
 * @param {StoredText} stored
 */
export async function inflate(stored) {
  const packed = Uint8Array.from(atob(stored.z ?? ""), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const text = await new Response(stream).text();
  return stored.slice ? text.slice(...stored.slice) : text;
}
