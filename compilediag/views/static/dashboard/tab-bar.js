// The tabs above the table, with counts. Those without rows are in a menu behind them.
import { explain } from "../core/blocks.js";
import { onKeys, targetOf } from "../core/dom.js";
import { formatCount } from "../core/format.js";
import { Menu } from "../core/menu.js";
import { html } from "../core/view.js";

/** @type {(tab: Tab, count: TabCount | undefined) => boolean} True for a tab with rows that most readers look at. */
export function hasRows(tab, count) {
  return !tab.isAside && count !== undefined && count.all > 0;
}

/** @type {Write<TabCount>} */
function writeCount({ shown, all, isBlind }) {
  if (isBlind && !all) return "not collected";
  return shown === all ? formatCount(all) : `${formatCount(shown)} of ${formatCount(all)}`;
}

/** @type {Component<TabBarProps>} While something is searched, only tabs with hits are shown. */
export function TabBar({ panelId, tabs, current, counts, isFiltered, onPick }) {
  /** @param {Tab} tab */
  const isShown = (tab) => {
    const count = counts.get(tab.name);
    return tab === current || (hasRows(tab, count) && (!isFiltered || Boolean(count?.shown)));
  };
  /** @param {Tab} tab whose element has the focus once it is shown */
  const pick = (tab) => {
    onPick(tab);
    document.getElementById(`${panelId}-${tab.name}`)?.focus();
  };
  const [shown, others] = [tabs.filter(isShown), tabs.filter((tab) => !isShown(tab))];
  /** @param {KeyboardEvent} event @param {number} step */
  const move = (event, step) => {
    const here = shown.findIndex((tab) => tab.name === targetOf(event).closest("button")?.dataset.tab);
    pick(shown[(here + step + shown.length) % shown.length]);
  };
  const onKey = onKeys({
    ArrowRight: (event) => move(event, 1),
    ArrowLeft: (event) => move(event, -1),
    Home: () => pick(shown[0]),
    End: () => pick(shown[shown.length - 1]),
  });
  /** @type {Command[]} */
  const commands = others.map((tab) => {
    const count = counts.get(tab.name);
    return { key: tab.name, label: tab.label, note: count && writeCount(count), run: () => pick(tab) };
  });
  return html`<div class="cdiag-tab-strip">
    <div class="cdiag-tabs" role="tablist" aria-label="tables" onKeyDown=${onKey}>
      ${shown.map((tab) => {
        const name = tab.name;
        const count = counts.get(name);
        return html`<button type="button" role="tab" class="cdiag-tab" key=${name} id=${`${panelId}-${name}`} data-tab=${name}
          data-hint=${explain(name)} aria-controls=${panelId} aria-selected=${String(tab === current)}
          tabindex=${tab === current ? 0 : -1} onClick=${() => onPick(tab)}>
          <span>${tab.label}</span><span class=${isFiltered ? "cdiag-count is-hit" : "cdiag-count"}>${count && writeCount(count)}</span>
        </button>`;
      })}
    </div>
    <${Menu} label="More" className="cdiag-tab-more" commands=${commands} />
  </div>`;
}
