// The tabs of plug-ins' panels, and of the page that compares two sessions.
/** @import { Tab, TabColumn } from "./tab-types" */

/** @type {WeakMap<Panel, Tab>} panel -> its tab, the same while the panel is */
const known = new WeakMap();

/**
 * @param {Panel} panel
 * @returns {Tab}
 */
function makePanelTab(panel) {
  /** @type {TabColumn[]} */
  const columns = panel.columns.map((label, i) => ({ label, name: `c${i + 1}`, from: panel.from?.[i] }));
  if (!columns.length) columns.push({ label: "", name: "c0" });
  const sort = panel.sort ?? [columns[0].label, 1];
  return { table: panel.name, label: panel.label, empty: panel.note ?? "nothing so far", note: panel.note, sort, columns };
}

/**
 * One tab per panel.
 * @param {Store} store
 */
export function panelTabs(store) {
  return store.panels.map((panel) => {
    const tab = known.get(panel) ?? makePanelTab(panel);
    known.set(panel, tab);
    return tab;
  });
}
