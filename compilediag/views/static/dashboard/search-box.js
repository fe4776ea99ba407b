// The field of the search, and below the head where its hits are: buttons that go there.
import { Icon, SearchField } from "../core/blocks.js";
import { onKeys } from "../core/dom.js";
import { formatAmount, formatCount } from "../core/format.js";
import { html } from "../core/view.js";

/** A search that has found something: Enter goes from hit to hit, through all places. */
export class Hits {
  /** @param {() => void} onMove */
  constructor(onMove) {
    this.onMove = onMove;
    /** @type {HitPlace[]} */
    this.places = [];
    this.at = -1; // the hit that is shown; none before the first Enter
  }

  get total() {
    return this.places.reduce((sum, { count }) => sum + count, 0);
  }

  /** @param {number} step 1 for the next hit, -1 for the one before */
  move(step) {
    const { total } = this;
    if (total) this.show((Math.max(this.at, step < 0 ? 0 : -1) + step + total) % total);
  }

  /** @param {number} at */
  show(at) {
    this.at = at;
    let rest = at;
    for (const { count, go } of this.places) {
      if (rest >= 0 && rest < count) go(rest);
      rest -= count;
    }
    this.onMove();
  }

  /** @param {HitPlace} place */
  goTo(place) {
    this.show(this.places.slice(0, this.places.indexOf(place)).reduce((sum, { count }) => sum + count, 0));
  }
}

/** @param {{query: string, hits: Hits, onQuery: (text: string) => void}} props */
export function SearchBox({ query, hits, onQuery }) {
  const onKey = onKeys({
    Enter: ({ shiftKey }) => hits.move(shiftKey ? -1 : 1),
    Escape: () => (query ? onQuery("") : false),
  });
  const at = hits.at < 0 ? formatCount(hits.total) : `${formatCount(hits.at + 1)} / ${formatCount(hits.total)}`;
  return html`<div class=${query ? "cdiag-find has-query" : "cdiag-find"}>
    <${Icon} name="search" />
    <${SearchField} label="search all tables" placeholder="Search" value=${query} onInput=${onQuery} onKeyDown=${onKey} />
    ${query ? html`<span class="cdiag-find-at">${at}</span>` : html`<kbd aria-hidden="true">/</kbd>`}
  </div>`;
}

/** @param {{hits: Hits, tableCount: number}} props */
export function HitBar({ hits, tableCount }) {
  if (!hits.total) {
    return html`<div class="cdiag-hits"><b role="status">No hit in ${formatAmount(tableCount, "table")}</b></div>`;
  }
  return html`<div class="cdiag-hits">
    <b role="status">${formatAmount(hits.total, "hit")}</b>
    ${hits.places.map((place) => html`
      <button type="button" class="cdiag-link" key=${place.label} onClick=${() => hits.goTo(place)}>
        ${place.label} ${formatCount(place.count)}
      </button>`)}
    <span class="cdiag-hit-keys"><kbd>Enter</kbd> next <kbd>Esc</kbd> clear</span>
  </div>`;
}
