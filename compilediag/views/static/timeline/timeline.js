// The timeline: its elements, and when they are painted. Whatever changes what it shows asks for one frame.
import { make } from "../core/dom.js";
import { formatAmount, formatSeconds } from "../core/format.js";
import { Inputs } from "../core/inputs.js";
import { hasCells, NotebookCell } from "../core/notebook-cell.js";
import { readPalette } from "../core/theme.js";
import { draw, html } from "../core/view.js";
import { toX } from "./axis.js";
import { Head, TimelineTable, Tip } from "./components.js";
import { drawForPrint, drawTimeline, sizeCanvas } from "./drawing.js";
import { TimelineInput } from "./input.js";
import { findNext, TimelineModel } from "./model.js";
import { Overview } from "./overview.js";
import { fitRange, moveRange, revealRange, zoomRange } from "./ranges.js";

const TALLEST = 560; // px of lanes in view; the others scroll
const [KEY_ZOOM, KEY_MOVE] = [1.5, 0.15];
const TABLE_REST_MS = 2000; // between two updates of the table that only screen readers have
const SAME = 0.01; // units, ms that the two times of day of one stretch can differ by
const [BESIDE, BELOW] = [14, 16]; // px from the pointer to the tooltip
const LABEL = `timeline of compiles; arrows lead from compile to compile, Enter opens one, Shift and Enter lead to the line
of its function, plus and minus zoom, Shift and arrows move, 0 shows everything, Home and End lead to the first and the
last compile, Escape goes back`;

export class Timeline {
  /** @param {TimelineLanes} lanes @param {(key: string | null, eventId: number | null) => void} onPick a compile is chosen */
  constructor(lanes, onPick) {
    this.lanes = lanes;
    this.onPick = onPick;
    this.model = new TimelineModel(lanes);
    /** @type {number | null} the frame that will paint */
    this.painting = null;
    /** @type {Point | null} where the pointer rests */
    this.pointer = null;
    this.hasFocus = false;
    /** @type {((range: TimeRange) => void) | null} runs with the units in view when they have changed */
    this.onRange = null;
    this.inputs = { head: new Inputs(), tip: new Inputs(), table: new Inputs(), range: new Inputs() }; // of what they show
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.tableTimer = undefined;
    this.canvas = make("canvas", { class: "cdiag-canvas" });
    this.spacer = make("div", { class: "cdiag-spacer" }, this.canvas);
    this.scroller = make("div", { class: "cdiag-lanes", tabindex: "0", role: "application", "aria-label": LABEL }, this.spacer);
    this.band = make("div", { class: "cdiag-band", hidden: "" }); // a stretch while it is selected
    this.tip = make("div", { class: "cdiag-tip", hidden: "", "aria-hidden": "true" }); // what the keys reach is announced as a status
    this.status = make("div", { class: "cdiag-unseen", role: "status" });
    this.head = make("div");
    this.more = make("div");
    this.overview = new Overview(this);
    this.table = make("div");
    this.pieces = make("div", { class: "cdiag-print-lanes" });
    const frame = make("div", { class: "cdiag-frame" }, this.scroller, this.overview.node, this.band, this.tip);
    this.node = make("section", { class: "cdiag-timeline", "aria-label": "Timeline" }, this.head, frame, this.more, this.pieces, this.status, this.table);
    this.input = new TimelineInput(this.scroller, this);
    this.scroller.addEventListener("keydown", (event) => this.onKey(event));
    this.scroller.addEventListener("scroll", () => this.paint());
    for (const type of ["focus", "blur"]) this.scroller.addEventListener(type, () => this.set({ hasFocus: type === "focus" }));
    this.watcher = new ResizeObserver(() => this.paint());
    this.watcher.observe(this.scroller);
  }

  destroy() {
    this.watcher.disconnect();
    clearTimeout(this.tableTimer);
    if (this.painting !== null) cancelAnimationFrame(this.painting);
  }

  /** @param {number | null} id */
  setSelected(id) {
    const { model } = this;
    const isNew = id !== null && id !== model.selected;
    model.selected = id;
    const lane = isNew ? this.lanes.findBar(({ row }) => row?.[0] === id)?.lane : null;
    if (lane && !model.shown.includes(lane) && model.ordered.includes(lane)) model.isOpen = true;
    this.paint();
  }

  /** True while everything is shown and nobody drags, so that a bar in flight may grow. */
  get isFollowing() {
    return this.model.zoom === null && !this.input.gesture;
  }

  /** Asks for a frame; all that changes before it is painted once. */
  paint() {
    this.painting ??= requestAnimationFrame(() => {
      this.painting = null;
      this.paintNow();
    });
  }

  paintNow() {
    const { model, scroller } = this;
    const hasLanes = this.lanes.list.length > 0;
    this.node.hidden = !hasLanes;
    const width = scroller.clientWidth;
    if (!hasLanes || !width) return;
    model.refresh(width, this.node.closest('.cdiag[data-size="compact"]') !== null);
    this.paintHead();
    const { layout, shown } = model;
    const height = layout.axis + shown.length * layout.lane;
    const visible = Math.min(height, layout.axis + TALLEST);
    scroller.style.height = `${visible}px`;
    this.spacer.style.height = `${height}px`;
    const palette = readPalette(this.node);
    const context = sizeCanvas(this.canvas, width, visible);
    const view = this.makeFrame(palette);
    if (context) drawTimeline({ ...view, context, width, height: visible }, shown);
    this.overview.paint({ ...view, ...model.wholeView, selected: null, current: null });
    this.paintTip();
    this.paintTable();
    model.save();
    const { range } = model;
    if (this.inputs.range.haveChanged(range.from, range.to)) this.onRange?.(range);
  }

  paintHead() {
    const { model } = this;
    const { hiddenCount, ordered } = model;
    const switches = [model.zoom === null, model.isFolded, model.isOpen, model.hasTable, model.hasKeys];
    if (!this.inputs.head.haveChanged(...switches, this.lanes.version, model.idleSeconds, hiddenCount)) return;
    /** @param {Switch} name */
    const flip = (name) => {
      model[name] = !model[name];
      this.paint();
    };
    draw(this.head, html`<${Head} model=${model} flip=${flip}
      showAll=${() => this.show(model.bounds, true)} />`);
    const seconds = ordered.slice(-hiddenCount).reduce((sum, lane) => sum + lane.seconds, 0);
    const more = formatAmount(hiddenCount, model.store.ranks ? "more lane" : "more function");
    const text = model.isOpen ? "Only the costliest" : `${more}, ${formatSeconds(seconds)}`;
    draw(this.more, hiddenCount > 0 && html`
      <button type="button" class="cdiag-link cdiag-more-lanes" aria-expanded=${model.isOpen} onClick=${() => flip("isOpen")}>${text}</button>`);
  }

  /** Draws the table when what it shows has changed; later if nobody sees it. */
  paintTable() {
    const { model } = this;
    const { from, to } = model.range;
    const [wasShown = false] = this.inputs.table.last;
    if (!this.inputs.table.haveChanged(model.hasTable, from, to, this.lanes.version)) return;
    const paint = () => {
      this.tableTimer = undefined;
      draw(this.table, html`<${TimelineTable} model=${model} onPick=${(/** @type {CompileBar} */ bar) => this.open(bar)} />`);
    };
    if (wasShown === model.hasTable) return void (this.tableTimer ??= setTimeout(paint, TABLE_REST_MS));
    clearTimeout(this.tableTimer);
    paint();
  }

  /** Shows what is under the pointer, or else the compile that the keys have reached. */
  paintTip() {
    const { model, tip, pointer } = this;
    const bar = this.hasFocus ? model.current : null;
    const hit = this.input.gesture ? null : pointer ? model.hitAt(pointer, this.scroller.scrollTop) : bar && { lane: bar.lane, bar, marks: [], isName: false };
    const isShown = hit !== null && (hit.isName || hit.bar !== null || hit.marks.length > 0);
    tip.hidden = !isShown;
    this.scroller.style.cursor = hit?.isPlace && hit.lane.cell !== null && hasCells(this.node) ? "pointer" : "";
    if (!isShown) return;
    const now = hit.bar?.flight ? model.now : 0;
    if (this.inputs.tip.haveChanged(hit.lane, hit.bar, hit.isName, hit.marks.length, now, model.store.plan)) {
      draw(tip, html`<${Tip} model=${model} hit=${hit} />`);
    }
    const { layout } = model;
    const below = () => layout.axis + (Math.max(0, model.shown.indexOf(hit.lane)) + 1) * layout.lane - this.scroller.scrollTop - BELOW;
    const { x } = pointer ?? { x: Math.max(toX({ ...model.view, layout, width: model.width }, hit.bar?.start ?? 0), layout.gutter) };
    const y = hit.bar || !pointer ? below() : pointer.y;
    tip.style.left = `${Math.max(4, Math.min(x + BESIDE, model.width - tip.offsetWidth - 8))}px`;
    tip.style.top = `${y + BELOW}px`;
    const said = [...tip.children].map((line) => line.textContent).filter(Boolean).join(", ");
    if (!pointer && this.status.textContent !== said) this.status.textContent = said; // an equal text would be read again
  }

  /** @param {Record<string, string>} palette */
  makeFrame(palette) {
    const { model } = this;
    const { layout, selected } = model;
    const hit = this.pointer && !this.input.gesture ? model.hitAt(this.pointer, this.scroller.scrollTop) : null;
    const current = hit?.bar ?? (this.hasFocus ? model.current : null);
    return { ...model.view, compiles: this.lanes.compiles, hasLinks: hasCells(this.node), title: model.store.meta.title ?? null, palette, layout, scroll: this.scroller.scrollTop, selected, current };
  }

  /** @param {boolean} isPrinting all lanes are drawn for paper, which is white */
  setPrinting(isPrinting) {
    const { model } = this;
    if (!isPrinting) return this.pieces.replaceChildren();
    const width = this.scroller.clientWidth;
    if (!this.lanes.list.length || !width) return;
    model.refresh(width, false);
    const palette = { ...readPalette(this.node), surface: "#ffffff" };
    const frame = { ...this.makeFrame(palette), ...model.wholeView, selected: null, current: null };
    this.pieces.replaceChildren(...drawForPrint(frame, model.ordered));
  }

  /** @type {ShowRange} */
  show(range, isStep) {
    if (this.model.isStrip) return;
    this.model.show(range, isStep);
    this.paint();
  }

  /** @param {TimeRange} range units that another timeline on the same scale shows */
  follow(range) {
    const { from, to } = this.model.range;
    if (Math.abs(range.from - from) > SAME || Math.abs(range.to - to) > SAME) this.show(range, false);
  }

  /** @param {{hasFocus?: boolean, pointer?: Point | null}} values */
  set(values) {
    Object.assign(this, values);
    this.paint();
  }

  /** @param {TimeRange | null} band px of a stretch that is selected now */
  showBand(band) {
    this.band.hidden = band === null;
    if (!band) return;
    const left = Math.max(band.from, this.model.plot.left);
    const { height } = this.scroller.style;
    Object.assign(this.band.style, { left: `${left}px`, width: `${Math.max(0, band.to - left)}px`, height });
  }

  /** @param {Point} point */
  pick(point) {
    const hit = this.model.hitAt(point, this.scroller.scrollTop);
    if (hit?.bar) this.open(hit.bar);
    else if (hit?.isPlace) this.goToLine(hit.lane);
  }

  /** @param {Lane} lane whose line is selected; false if it is not one of the notebook around the page */
  goToLine(lane) {
    return lane.cell !== null && new NotebookCell(this.node, lane.cell).selectLine(lane.line ?? 1);
  }

  /** @param {CompileBar} bar */
  open(bar) {
    this.onPick(bar.key, bar.row?.[0] ?? null);
  }

  /** @param {Point} point what is there is fitted into view: a bar, the compiles of a lane by its name, or everything */
  fit(point) {
    const { model } = this;
    const hit = this.model.hitAt(point, this.scroller.scrollTop);
    const bars = hit?.isName ? hit.lane.bars : hit?.bar ? [hit.bar] : [];
    const whole = bars.length ? { start: bars[0].start, end: Math.min(model.now, Math.max(...bars.map((bar) => bar.end))) } : null;
    model.show(whole ? fitRange(model.unitsOf(whole), model.bounds) : model.bounds, true);
    this.paint();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!this.actOn(event.key, event.shiftKey)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @type {(key: string, isShifted: boolean) => boolean} whether the key does something */
  actOn(key, isShifted) {
    const { model } = this;
    const { range, bounds, current, layout } = model;
    const bar = current ? model.unitsOf(current) : range;
    const by = (key === "ArrowLeft" ? -KEY_MOVE : KEY_MOVE) * (range.to - range.from);
    /** @param {number} factor */
    const zoom = (factor) => this.show(zoomRange(range, (bar.from + bar.to) / 2, factor, bounds), true);
    if (key === "+" || key === "=") zoom(KEY_ZOOM);
    else if (key === "-" || key === "_") zoom(1 / KEY_ZOOM);
    else if (key === "0") this.show(bounds, true);
    else if (isShifted && (key === "ArrowUp" || key === "ArrowDown")) this.scroller.scrollBy(0, key === "ArrowUp" ? -layout.lane : layout.lane);
    else if (isShifted && key.startsWith("Arrow")) this.show(moveRange(range, by, bounds), true);
    else if (key.startsWith("Arrow") || key === "Home" || key === "End") {
      this.setCurrent(findNext(model.isStrip ? model.ordered : model.shown, current, key, model.view.range) ?? current);
    } else if (key === "Enter" && current) {
      if (isShifted) return this.goToLine(current.lane);
      this.open(current);
    } else if (key === "Escape" && current) this.setCurrent(null);
    else if (key === "Escape") {
      this.paint();
      return model.goBack();
    } else return false;
    return true;
  }

  /** @param {CompileBar | null} bar */
  setCurrent(bar) {
    const { model } = this;
    model.current = bar;
    if (bar) {
      const wanted = revealRange(model.range, model.unitsOf(bar), model.bounds);
      if (wanted) model.show(wanted, false);
      const { layout } = model;
      const top = Math.max(0, model.shown.indexOf(bar.lane)) * layout.lane;
      const { scrollTop, clientHeight } = this.scroller;
      this.scroller.scrollTop = Math.max(top + layout.lane + layout.axis - clientHeight, Math.min(top, scrollTop));
    } else this.status.textContent = "";
    this.paint();
  }
}
