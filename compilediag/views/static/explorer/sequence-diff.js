// What differs between two lists of numbers: the longest common subsequence, after the common ends.

/** @typedef {[sign: " " | "-" | "+", number: number]} Difference " " in both, "-" only in the first, "+" only in the second */

const MOST_STEPS = 16_000_000; // of the table that finds it; above that, the middles are shown one after the other

/**
 * @param {number[]} one
 * @param {number[]} other
 * @returns {Difference[]}
 */
export function diffNumbers(one, other) {
  let begin = 0;
  while (begin < one.length && begin < other.length && one[begin] === other[begin]) begin += 1;
  let end = 0;
  const most = Math.min(one.length, other.length) - begin;
  while (end < most && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  const middle = diffMiddle(one.slice(begin, one.length - end), other.slice(begin, other.length - end));
  return [...markAll(" ", one.slice(0, begin)), ...middle, ...markAll(" ", one.slice(one.length - end))];
}

/**
 * @param {" " | "-" | "+"} sign
 * @param {number[]} numbers
 * @returns {Difference[]}
 */
function markAll(sign, numbers) {
  return numbers.map((number) => [sign, number]);
}

/**
 * @param {number[]} one
 * @param {number[]} other
 * @returns {Difference[]}
 */
function diffMiddle(one, other) {
  if (one.length * other.length > MOST_STEPS) return [...markAll("-", one), ...markAll("+", other)];
  const wide = other.length + 1;
  const longest = new Uint16Array((one.length + 1) * wide); // [i, j]: of what is left from i and j on
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      const [down, right] = [longest[(i + 1) * wide + j], longest[i * wide + j + 1]];
      longest[i * wide + j] = one[i] === other[j] ? longest[(i + 1) * wide + j + 1] + 1 : Math.max(down, right);
    }
  }
  /** @type {Difference[]} */
  const found = [];
  let [i, j] = [0, 0];
  while (i < one.length && j < other.length) {
    if (one[i] === other[j]) {
      found.push([" ", one[i++]]);
      j += 1;
    } else if (longest[(i + 1) * wide + j] >= longest[i * wide + j + 1]) found.push(["-", one[i++]]);
    else found.push(["+", other[j++]]);
  }
  return [...found, ...markAll("-", one.slice(i)), ...markAll("+", other.slice(j))];
}
