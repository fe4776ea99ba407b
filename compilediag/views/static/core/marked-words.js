// Marks the words of a search in what a page shows. The page itself is not changed; a browser without such marks has none.

const NAME = "cdiag-hit"; // in the style sheet; all pages of a document share it

export class MarkedWords {
  /** @param {Element} root @param {string} places in which words are marked */
  constructor(root, places) {
    this.root = root;
    this.places = places;
    /** @type {string[]} in lower case */
    this.words = [];
    /** @type {Range[]} */
    this.ranges = [];
    /** @type {number | null} the frame that will mark */
    this.marking = null;
    this.watcher = new MutationObserver(() => this.planMarks());
  }

  destroy() {
    this.show([]);
  }

  /** @param {string[]} words in lower case; none marks nothing */
  show(words) {
    if (words.join(" ") === this.words.join(" ")) return;
    this.words = words;
    this.watcher.disconnect();
    if (words.length) this.watcher.observe(this.root, { childList: true, characterData: true, subtree: true });
    this.mark();
  }

  /** Marks once per frame what has been drawn. */
  planMarks() {
    this.marking ??= requestAnimationFrame(() => {
      this.marking = null;
      this.mark();
    });
  }

  mark() {
    if (!globalThis.Highlight) return;
    const shared = CSS.highlights.get(NAME) ?? new Highlight();
    CSS.highlights.set(NAME, shared);
    this.ranges.forEach((range) => shared.delete(range));
    this.ranges = this.words.length ? [...this.root.querySelectorAll(this.places)].flatMap((place) => this.findIn(place)) : [];
    this.ranges.forEach((range) => shared.add(range));
  }

  /** @param {Element} place */
  findIn(place) {
    const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    /** @type {Range[]} */
    const found = [];
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const text = (node.textContent ?? "").toLowerCase();
      if (text.length !== node.textContent?.length) continue; // a letter has become two: places differ
      for (const word of this.words) {
        for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + word.length);
          found.push(range);
        }
      }
    }
    return found;
  }
}
