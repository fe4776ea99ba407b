// What an offline page carries: an element to draw in, and its data.

const TOO_OLD = "This file needs Chrome or Edge 117, Firefox 119 or Safari 17.4, or a later version of them.";

/** @param {(root: HTMLElement, data: any) => void} show gets the element for the page, and its data: deflated JSON in base64 */
export async function openPage(show) {
  const [root, data] = ["cdiag-report", "cdiag-data"].map((id) => /** @type {HTMLElement} */ (document.getElementById(id)));
  if (!Map.groupBy) root.textContent = TOO_OLD;
  else show(root, JSON.parse(await inflateText(data.textContent ?? "")));
}

/** @type {(packed: PackedPatch) => Patch} of a report, as compilediag/views/report.py packs it: tables by columns */
export function unpackPatch({ tables, strings, ...patch }) {
  const rows = Object.entries(tables).map(([name, packed]) => {
    const columns = packed.map(({ numbers, times, texts: cells, cells: plain = [] }) => {
      if (cells) return cells.map((cell) => (typeof cell === "number" ? strings[cell] : cell));
      let sum = 0;
      if (numbers) return numbers.map((more) => (sum += more));
      return times ? times.map((more) => (sum += more) / 1000) : plain;
    });
    return [name, (columns[0] ?? []).map((_, i) => columns.map((column) => column[i]))];
  });
  const texts = patch.texts ?? {};
  for (const text of Object.values(texts)) if (text.in !== undefined) text.z = texts[text.in].z;
  return { ...patch, rows: Object.fromEntries(rows) };
}

/** @type {(stored: StoredText) => Promise<string>} the text of an artifact: alone or as a part of a block */
export async function inflate(stored) {
  const text = await inflateText(stored.z ?? "");
  return stored.slice ? text.slice(...stored.slice) : text;
}

/** @type {(base64: string) => Promise<string>} the text of zlib-deflated UTF-8 */
function inflateText(base64) {
  const letters = atob(base64);
  const packed = new Uint8Array(letters.length);
  for (let i = 0; i < packed.length; i += 1) packed[i] = letters.charCodeAt(i);
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}
