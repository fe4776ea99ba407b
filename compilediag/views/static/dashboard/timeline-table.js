// The text alternative of the timeline: its compiles as a table. Screen readers always have it; a switch shows it to all.
import { make, makeButton, setText } from "../core/dom.js";
import { formatAmount, formatSeconds } from "../core/format.js";
import { describePhases, nameCompile } from "./timeline-words.js";
/** @import { Store } from "../core/store.js" */
/** @import { CompileBar, TimelineLanes } from "./timeline-lanes.js" */
/** @import { Range } from "./timeline-view.js" */

const MOST_ROWS = 100; // the costliest are listed
const REST_MS = 2000; // between two updates, because few people read the table while it changes
const HEADS = ["function", "start", "duration", "what it was", "time in phases, with what they call"];

export class TimelineTable {
  /**
   * @param {Store} store
   * @param {TimelineLanes} lanes
   * @param {(bar: CompileBar) => void} onPick
   */
  constructor(store, lanes, onPick) {
    this.store = store;
    this.lanes = lanes;
    this.onPick = onPick;
    this.caption = make("caption", "");
    const heads = HEADS.map((text) => Object.assign(make("th", "", text), { scope: "col" }));
    this.body = make("tbody", "");
    const table = make("table", "", this.caption, make("thead", "", make("tr", "", ...heads)), this.body);
    this.node = make("div", "cdiag-timeline-table is-unseen", table);
    this.painted = "";
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.timer = null;
    /** @type {{range: Range, isShown: boolean} | null} what the next update shows */
    this.wanted = null;
  }

  destroy() {
    if (this.timer !== null) clearTimeout(this.timer);
  }

  /**
   * Plans an update; at once if people see the table.
   * @param {Range} range Unix ms
   * @param {boolean} isShown
   */
  plan(range, isShown) {
    const wasShown = this.wanted?.isShown;
    this.wanted = { range, isShown };
    if (isShown !== wasShown) {
      this.setShown(isShown);
      this.update();
    } else this.timer ??= setTimeout(() => this.update(), REST_MS);
  }

  /** @param {boolean} isShown */
  setShown(isShown) {
    this.node.classList.toggle("is-unseen", !isShown);
    if (isShown) this.node.tabIndex = 0; // it scrolls
    else this.node.removeAttribute("tabindex");
    if (isShown) this.node.setAttribute("role", "region");
    else this.node.removeAttribute("role");
    this.node.setAttribute("aria-label", "timeline as a table");
  }

  update() {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (!this.wanted) return;
    const { range, isShown } = this.wanted;
    const shape = JSON.stringify([this.lanes.version, range, isShown]);
    if (shape === this.painted) return;
    this.painted = shape;
    const all = this.lanes.list.flatMap((lane) => lane.bars.filter(({ start, end }) => end >= range.from && start <= range.to));
    all.sort((a, b) => b.end - b.start - (a.end - a.start));
    setText(this.caption, describeRows(all.length));
    const listed = all.slice(0, MOST_ROWS).sort((a, b) => a.start - b.start);
    this.body.replaceChildren(...listed.map((bar) => this.makeRow(bar, isShown)));
  }

  /**
   * @param {CompileBar} bar
   * @param {boolean} isShown a button that nobody sees must not get the focus
   */
  makeRow(bar, isShown) {
    const get = this.store.table("compiles").reader(bar.row);
    const title = `${bar.lane.name} ${get("compile_id") ?? ""}`.trim();
    const name = make("th", "", isShown ? makeButton("cdiag-link", title, () => this.onPick(bar)) : title);
    name.scope = "row";
    const start = formatSeconds((bar.start - this.lanes.extent.from) / 1e3);
    const cells = [start, formatSeconds(get("duration_s")), nameCompile(get), describePhases(get)];
    return make("tr", "", name, ...cells.map((text) => make("td", "", text)));
  }
}

/** @param {number} count */
function describeRows(count) {
  const what = `${formatAmount(count, "compile")} in view, in order of time`;
  return count > MOST_ROWS ? `${what}: the ${MOST_ROWS} that took longest` : what;
}
