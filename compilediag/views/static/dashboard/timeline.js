// The timeline: its elements, and when they are painted. Whatever changes what it shows asks for one frame.
import { make, setShown, setText } from "../core/dom.js";
import { readPalette } from "../core/theme.js";
import { AXIS } from "./timeline-axis.js";
import { TimelineControls } from "./timeline-controls.js";
import { drawTimeline } from "./timeline-drawing.js";
import { TimelineInput } from "./timeline-input.js";
import { findNext } from "./timeline-keys.js";
import { Minimap } from "./timeline-minimap.js";
import { TimelineModel } from "./timeline-model.js";
import { drawForPrint } from "./timeline-print.js";
import { TimelineTable } from "./timeline-table.js";
import { TimelineTip } from "./timeline-tip.js";
import { moveRange, zoomRange } from "./timeline-view.js";
/** @import { Store } from "../core/store.js" */
/** @import { Frame } from "./timeline-drawing.js" */
/** @import { Point, Surface } from "./timeline-input.js" */
/** @import { CompileBar, TimelineLanes } from "./timeline-lanes.js" */
/** @import { Hit } from "./timeline-model.js" */
/** @import { Range } from "./timeline-view.js" */

/** @typedef {(key: string | null, eventId: number | null) => void} OnPick */

const TALLEST = 560; // px of lanes in view; the others scroll
const [KEY_ZOOM, KEY_MOVE] = [1.5, 0.15];
const LABEL = `timeline of compiles; arrows lead from compile to compile, Enter opens one, plus and minus zoom, Shift and
arrows move, 0 shows everything, Home and End lead to the first and the last compile, Escape goes back`;

export class Timeline {
  /**
   * @param {Store} store
   * @param {TimelineLanes} lanes
   * @param {OnPick} onPick runs when a compile is chosen
   */
  constructor(store, lanes, onPick) {
    this.store = store;
    this.lanes = lanes;
    this.onPick = onPick;
    this.model = new TimelineModel(store, lanes);
    /** @type {number | null} the frame that will paint */
    this.painting = null;
    /** @type {Point | null} where the pointer rests */
    this.pointer = null;
    this.hasFocus = false;
    this.canvas = make("canvas", "cdiag-canvas");
    this.spacer = make("div", "cdiag-spacer", this.canvas);
    this.scroller = make("div", "cdiag-lanes", this.spacer);
    this.band = make("div", "cdiag-band"); // a stretch while it is selected
    this.tip = new TimelineTip(store, this.model);
    this.status = make("div", "cdiag-unseen");
    this.controls = new TimelineControls((name) => this.flip(name), () => this.show(this.model.bounds, true));
    this.minimap = new Minimap((range, isStep) => this.show(range, isStep));
    this.table = new TimelineTable(store, lanes, (bar) => onPick(bar.key, bar.row[0]));
    this.pieces = make("div", "cdiag-print-lanes");
    this.node = this.arrange();
    this.input = new TimelineInput(this.scroller, this.makeSurface());
    this.scroller.addEventListener("keydown", (event) => this.onKey(event));
    this.scroller.addEventListener("scroll", () => this.paint());
    this.scroller.addEventListener("focus", () => this.setFocus(true));
    this.scroller.addEventListener("blur", () => this.setFocus(false));
    this.watcher = new ResizeObserver(() => this.paint());
    this.watcher.observe(this.scroller);
    this.beforePrint = () => this.drawPieces();
    this.afterPrint = () => this.pieces.replaceChildren();
    addEventListener("beforeprint", this.beforePrint);
    addEventListener("afterprint", this.afterPrint);
  }

  destroy() {
    this.watcher.disconnect();
    this.table.destroy();
    if (this.painting !== null) cancelAnimationFrame(this.painting);
    removeEventListener("beforeprint", this.beforePrint);
    removeEventListener("afterprint", this.afterPrint);
  }

  arrange() {
    const { scroller, controls } = this;
    scroller.tabIndex = 0;
    scroller.setAttribute("role", "application");
    scroller.setAttribute("aria-label", LABEL);
    this.status.setAttribute("role", "status");
    setShown(this.band, false);
    const frame = make("div", "cdiag-frame", scroller, controls.more, this.minimap.node, this.band, this.tip.node);
    const node = make("section", "cdiag-timeline", controls.strip, frame, this.pieces, controls.hint, this.status, this.table.node);
    node.setAttribute("aria-label", "Timeline");
    return node;
  }

  /** @returns {Surface} */
  makeSurface() {
    const { model } = this;
    return {
      get range() {
        return model.range;
      },
      get bounds() {
        return model.bounds;
      },
      get plot() {
        return model.plot;
      },
      show: (range, isStep) => this.show(range, isStep),
      showBand: (from, to) => this.showBand(from, to),
      hideBand: () => setShown(this.band, false),
      hover: (point) => this.hover(point),
      pick: (point) => this.pick(this.hitAt(point)),
      fit: (point) => this.fit(this.hitAt(point)),
    };
  }

  /** @param {Set<string | null> | null} lit */
  setLit(lit) {
    this.model.lit = lit;
  }

  /** @param {number | null} id */
  setSelected(id) {
    const { model } = this;
    const isNew = id !== null && id !== model.selected;
    model.selected = id;
    const lane = isNew ? this.lanes.findBar(id)?.lane : null;
    if (lane && !model.shown.includes(lane) && model.ordered.includes(lane)) model.state.isOpen = true;
    this.paint();
  }

  /** True while everything is shown and nobody drags, so that a bar in flight may grow. */
  get isFollowing() {
    return this.model.state.zoom === null && !this.input.isBusy;
  }

  /** Asks for a frame; all that changes before it is painted once. */
  paint() {
    this.painting ??= requestAnimationFrame(() => {
      this.painting = null;
      this.paintNow();
    });
  }

  paintNow() {
    const { model } = this;
    const hasLanes = this.lanes.list.length > 0;
    setShown(this.node, hasLanes);
    const width = this.scroller.clientWidth;
    if (!hasLanes || !width) return;
    model.refresh(width);
    this.controls.paint(model);
    const height = AXIS + model.shown.length * model.layout.lane;
    const visible = Math.min(height, AXIS + TALLEST);
    this.scroller.style.height = `${visible}px`;
    this.spacer.style.height = `${height}px`;
    const palette = readPalette(this.node);
    const context = this.sizeCanvas(width, visible);
    if (context) drawTimeline({ ...this.makeFrame(palette), context, width, height: visible }, model.shown);
    const { bounds, range, scale } = model;
    this.minimap.paint({ lanes: this.lanes, scale, bounds, range, gutter: model.layout.gutter, width, palette });
    this.tip.paint(this.input.isBusy ? null : this.pointer, this.hasFocus ? model.current : null, this.scroller.scrollTop);
    this.table.plan(model.view.range, model.state.hasTable);
    model.state.save();
  }

  /**
   * @param {number} width
   * @param {number} height
   */
  sizeCanvas(width, height) {
    const ratio = globalThis.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      [this.canvas.width, this.canvas.height] = [wide, high];
      [this.canvas.style.width, this.canvas.style.height] = [`${width}px`, `${height}px`];
    }
    const context = this.canvas.getContext("2d");
    context?.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  }

  /**
   * @param {Record<string, string>} palette
   * @returns {Omit<Frame, "context" | "width" | "height">}
   */
  makeFrame(palette) {
    const { model } = this;
    const { layout, selected } = model;
    const current = this.hasFocus && model.current ? model.current.row[0] : null;
    return { ...model.view, palette, layout, gutter: layout.gutter, scroll: this.scroller.scrollTop, selected, current };
  }

  /** Draws all lanes for paper, which is light. */
  drawPieces() {
    const { model } = this;
    const width = this.scroller.clientWidth;
    if (!this.lanes.list.length || !width) return;
    model.refresh(width);
    /** @type {HTMLElement | null} */
    const root = this.node.closest(".cdiag");
    const theme = root?.dataset.theme;
    if (root) root.dataset.theme = "light";
    const palette = { ...readPalette(this.node), surface: "#ffffff" };
    if (root) root.dataset.theme = theme;
    this.pieces.replaceChildren(...drawForPrint({ ...model.wholeView, palette, selected: null, current: null }, model.ordered));
  }

  /**
   * @param {Range} range units
   * @param {boolean} isStep
   */
  show(range, isStep) {
    this.model.show(range, isStep);
    this.paint();
  }

  /** @param {"isFolded" | "isOpen" | "hasTable"} name */
  flip(name) {
    this.model.state[name] = !this.model.state[name];
    this.paint();
  }

  /**
   * @param {number} from px
   * @param {number} to px
   */
  showBand(from, to) {
    const left = Math.max(from, this.model.plot.left);
    setShown(this.band, true);
    this.band.style.left = `${left}px`;
    this.band.style.width = `${Math.max(0, to - left)}px`;
    this.band.style.height = this.scroller.style.height;
  }

  /** @param {Point | null} point */
  hover(point) {
    this.pointer = point;
    this.paint();
  }

  /**
   * @param {Point} point
   * @returns {Hit | null}
   */
  hitAt(point) {
    return this.model.hitAt(point, this.scroller.scrollTop);
  }

  /** @param {Hit | null} hit */
  pick(hit) {
    if (hit?.bar) this.onPick(hit.bar.key, hit.bar.row[0]);
    else if (hit?.flight) this.onPick(hit.flight.key, null);
  }

  /**
   * Fits a bar, the compiles of a lane whose name was clicked, or everything.
   * @param {Hit | null} hit
   */
  fit(hit) {
    const { model } = this;
    const bars = hit?.isName ? hit.lane.bars : [];
    const end = hit?.flight ? model.now : 0;
    if (hit?.bar) model.fit(hit.bar);
    else if (hit?.flight) model.fit({ start: hit.flight.start, end });
    else if (bars.length) model.fit({ start: bars[0].start, end: Math.max(...bars.map((bar) => bar.end)) });
    else model.show(model.bounds, true);
    this.paint();
  }

  /** @param {boolean} hasFocus */
  setFocus(hasFocus) {
    this.hasFocus = hasFocus;
    this.paint();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isDone = event.shiftKey && event.key.startsWith("Arrow") ? this.moveBy(event.key) : this.actOn(event.key);
    if (!isDone) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * Moves the view by keys; true for a key that does.
   * @param {string} key
   */
  moveBy(key) {
    const { range, bounds } = this.model;
    const by = KEY_MOVE * (range.to - range.from);
    if (key === "ArrowUp" || key === "ArrowDown") this.scroller.scrollBy(0, key === "ArrowUp" ? -36 : 36);
    else this.show(moveRange(range, key === "ArrowLeft" ? -by : by, bounds), true);
    return true;
  }

  /**
   * @param {string} key
   * @returns {boolean} whether it did something
   */
  actOn(key) {
    const { model } = this;
    const { range, bounds, current } = model;
    const middle = current ? (model.unitsOf(current).from + model.unitsOf(current).to) / 2 : (range.from + range.to) / 2;
    if (key === "+" || key === "=") this.show(zoomRange(range, middle, KEY_ZOOM, bounds), true);
    else if (key === "-" || key === "_") this.show(zoomRange(range, middle, 1 / KEY_ZOOM, bounds), true);
    else if (key === "0") this.show(bounds, true);
    else if (key.startsWith("Arrow") || key === "Home" || key === "End") {
      this.setCurrent(findNext(model.shown, current, key, model.view.range) ?? current);
    } else if (key === "Enter") {
      if (!current) return false;
      this.onPick(current.key, current.row[0]);
    } else if (key === "Escape") return this.goBack();
    else return false;
    return true;
  }

  /** Undoes the last thing that was done by key or pointer; false if there is nothing. */
  goBack() {
    const isDone = this.model.current !== null || this.model.state.goBack();
    if (this.model.current) this.setCurrent(null);
    this.paint();
    return isDone;
  }

  /** @param {CompileBar | null} bar */
  setCurrent(bar) {
    const { model } = this;
    model.current = bar;
    if (bar) {
      model.reveal(bar);
      const top = model.shown.indexOf(bar.lane) * model.layout.lane;
      const { scrollTop, clientHeight } = this.scroller;
      const low = top + model.layout.lane + AXIS - clientHeight;
      this.scroller.scrollTop = Math.max(low, Math.min(top, scrollTop));
    }
    setText(this.status, bar ? this.tip.linesOf(bar, null).join(", ") : "");
    this.paint();
  }
}
