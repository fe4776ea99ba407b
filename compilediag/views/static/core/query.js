// The words of a search.

/**
 * The words of a query, in lower case. A text matches if it has all of them.
 * @param {string} text
 */
export function splitQuery(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}
