// The pointer, the wheel and fingers on the timeline, as zooms, moves and clicks.
//
// Ctrl or Cmd with the wheel zooms, as does a pinch. Shift with the wheel, or a wheel to the side, moves. The wheel alone
// scrolls the page, so that nobody is caught in the timeline. A drag moves, with Shift it selects a stretch to zoom to.
import { moveRange, pinchRange, zoomRange } from "./ranges.js";

/** @typedef {{kind: "move" | "select" | "pinch", range: TimeRange, scroll: number, units: [number, number]}} Gesture */

const SLACK = 4; // px that a click may move
const PAUSE_MS = 500; // turns of the wheel that are closer are one step of the history
const LINE = 16; // px of one line of a wheel that counts lines
const [SLOW, FAST] = [0.004, 0.012]; // zoom per px of a mouse's wheel, and of a touch pad's pinch
const PINCH_PX = 40; // a touch pad sends smaller steps than a wheel

export class TimelineInput {
  /** @param {HTMLElement} node @param {Timeline} timeline what the input acts on */
  constructor(node, timeline) {
    this.node = node;
    this.timeline = timeline;
    this.model = timeline.model;
    /** @type {Map<number, {begin: Point, now: Point}>} pointers that are down */
    this.pointers = new Map();
    /** @type {Gesture | null} */
    this.gesture = null;
    this.lastWheel = -Infinity;
    node.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    node.addEventListener("pointerdown", (event) => this.onDown(event));
    node.addEventListener("pointermove", (event) => this.onMove(event));
    node.addEventListener("pointerup", (event) => this.onUp(event));
    node.addEventListener("pointercancel", (event) => this.forget(event));
    node.addEventListener("pointerleave", () => this.timeline.set({ pointer: null }));
    node.addEventListener("dblclick", (event) => this.timeline.fit(this.pointAt(event)));
  }

  /** @param {MouseEvent} event */
  pointAt(event) {
    const box = this.node.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** @param {Point} point */
  shareAt({ x }) {
    const { left, wide } = this.model.plot;
    return (x - left) / wide;
  }

  /** @type {(point: Point, range: TimeRange) => number} units at a point, in the range that a gesture began with */
  unitsAt(point, { from, to }) {
    return from + this.shareAt(point) * (to - from);
  }

  /** @param {WheelEvent} event */
  onWheel(event) {
    const { range, bounds } = this.model;
    const unit = event.deltaMode === 1 ? LINE : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    const isZoom = event.ctrlKey || event.metaKey;
    const sideways = Math.abs(dx) > Math.abs(dy) ? dx : event.shiftKey ? dy : 0;
    if (!isZoom && !sideways) return;
    /** @param {TimeRange} next */
    const turn = (next) => {
      this.timeline.show(next, event.timeStamp - this.lastWheel > PAUSE_MS);
      this.lastWheel = event.timeStamp;
    };
    if (isZoom) {
      const speed = Math.abs(dy) < PINCH_PX ? FAST : SLOW;
      const at = this.unitsAt(this.pointAt(event), range);
      turn(zoomRange(range, at, Math.exp(-dy * speed), bounds));
      return event.preventDefault(); // the browser would zoom the page
    }
    const moved = moveRange(range, (sideways / this.model.plot.wide) * (range.to - range.from), bounds);
    if (moved.from === range.from) return; // at the end of the timeline the page gets the wheel
    turn(moved);
    event.preventDefault();
  }

  /** @param {PointerEvent} event */
  onDown(event) {
    const point = this.pointAt(event);
    if (event.button !== 0 || point.x > this.node.clientWidth) return;
    this.pointers.set(event.pointerId, { begin: point, now: point });
    if (this.pointers.size === 2) this.begin("pinch");
  }

  /** @param {"move" | "select" | "pinch"} kind */
  begin(kind) {
    const { range } = this.model;
    const units = [...this.pointers.values()].map(({ now }) => this.unitsAt(now, range));
    if (this.gesture === null && kind !== "select") this.timeline.show(range, true);
    this.gesture = { kind, range, scroll: this.node.scrollTop, units: [units[0], units[1] ?? units[0]] };
    this.pointers.forEach((_, id) => this.node.setPointerCapture(id));
    this.timeline.set({ pointer: null });
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    const point = this.pointAt(event);
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) return this.pointers.size ? undefined : this.timeline.set({ pointer: point });
    pointer.now = point;
    const { begin } = pointer;
    const isFar = Math.hypot(point.x - begin.x, point.y - begin.y) > SLACK;
    if (!this.gesture && isFar && begin.x >= this.model.plot.left) this.begin(event.shiftKey ? "select" : "move");
    if (this.gesture) this.follow(this.gesture, pointer);
  }

  /** @param {Gesture} gesture @param {{begin: Point, now: Point}} pointer */
  follow({ kind, range, scroll, units }, { begin, now }) {
    const { bounds } = this.model;
    if (kind === "select") return this.timeline.showBand({ from: Math.min(begin.x, now.x), to: Math.max(begin.x, now.x) });
    if (kind === "pinch") {
      const [a, b] = [...this.pointers.values()].map((pointer) => this.shareAt(pointer.now));
      if (b !== undefined) this.timeline.show(pinchRange(units, [a, b], bounds), false);
      return;
    }
    this.timeline.show(moveRange(range, units[0] - this.unitsAt(now, range), bounds), false);
    this.node.scrollTop = scroll - (now.y - begin.y);
  }

  /** @param {PointerEvent} event */
  onUp(event) {
    const pointer = this.pointers.get(event.pointerId);
    const { gesture } = this;
    this.forget(event);
    if (!pointer) return;
    if (!gesture) return this.timeline.pick(pointer.now);
    if (gesture.kind !== "select") return;
    const ends = [pointer.begin, pointer.now].map((point) => this.unitsAt(point, gesture.range));
    this.timeline.show({ from: Math.min(...ends), to: Math.max(...ends) }, true);
  }

  /** @param {PointerEvent} event */
  forget(event) {
    this.pointers.delete(event.pointerId);
    // A finger that stays after a pinch does not continue as a drag: the bars would jump.
    if (this.pointers.size === 0) this.gesture = null;
    this.timeline.showBand(null);
  }
}
