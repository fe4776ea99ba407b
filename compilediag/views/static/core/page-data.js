// What an offline page carries: an element to draw in, and its data.

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
