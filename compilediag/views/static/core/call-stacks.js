// Call stacks: put together from frames that are told once each, and drawn with torch's own frames folded.
import { make, makeButton, setShown } from "./dom.js";
import { counted, formatPlace } from "./format.js";

const TORCH_FILE = /(?:site|dist)-packages[\\/]torch[\\/]|[\\/]pytorch[\\/]torch[\\/]|^<frozen /;
const MOST_FRAMES = 1000; // frames of one stack

/** True for a frame of torch or of the interpreter's own start. */
export function isTorchFrame(frame) {
  return frame.file !== null && TORCH_FILE.test(frame.file);
}

/** The frames by the key of the stack that ends in them. */
export class Stacks {
  constructor(store) {
    this.store = store;
    this.table = null;
  }

  refresh() {
    const table = this.store.table("stacks");
    if (this.table === table && this.version === table.version) return;
    this.table = table;
    this.version = table.version;
    this.frames = new Map();
    this.known = new Map(); // key -> the frames of that stack
    for (const row of table.rows) {
      const get = (name) => table.get(row, name);
      const [file, line, name, code] = ["file", "line", "function", "code"].map(get);
      this.frames.set(get("stack"), { key: get("stack"), caller: get("caller"), file, line, name, code });
    }
  }

  /** The frames of a stack, the outermost first; none if it is not known. */
  of(key) {
    this.refresh();
    if (this.known.has(key)) return this.known.get(key);
    const found = [];
    for (let frame = this.frames.get(key); frame && found.length < MOST_FRAMES; frame = this.frames.get(frame.caller)) {
      found.push(frame);
    }
    this.known.set(key, found.reverse());
    return found;
  }
}

/** "model.py:30 forward": one frame, with the line's text if it is known. */
export function frameLine(frame) {
  const place = make("span", "cdiag-frame-place", formatPlace(frame.file, frame.line) ?? "?");
  place.title = `${frame.file ?? "?"}:${frame.line ?? "?"}`;
  const name = make("span", "cdiag-frame-name", frame.name ?? "?");
  const code = frame.code === null ? null : make("code", "cdiag-frame-code", frame.code);
  return make("div", "cdiag-frame-line", place, name, code);
}

/** Runs of frames: torch's together, each of the user's by itself. */
export function runsOf(frames) {
  const runs = [];
  for (const frame of frames) {
    const torch = isTorchFrame(frame);
    const last = runs[runs.length - 1];
    if (torch && last?.torch) last.frames.push(frame);
    else runs.push({ torch, frames: [frame] });
  }
  return runs;
}

/** A run as elements; torch's frames are shown on request. */
export function runLines(run) {
  if (!run.torch) return run.frames.map(frameLine);
  const hidden = make("div", "cdiag-frames-hidden", ...run.frames.map(frameLine));
  setShown(hidden, false);
  const fold = makeButton("cdiag-fold", `… ${counted(run.frames.length, "frame", "frames")} of torch or Python`, () => {
    setShown(hidden, hidden.hidden);
    fold.setAttribute("aria-expanded", String(!hidden.hidden));
  });
  fold.setAttribute("aria-expanded", "false");
  return [fold, hidden];
}

/** A whole stack, the outermost frame first. */
export function stackLines(frames) {
  return make("div", "cdiag-stack", ...runsOf(frames).flatMap(runLines));
}

/** A stack behind a word, shown on request; null if there is none. */
export function stackDetails(label, frames) {
  if (!frames.length) return null;
  const summary = make("summary", "", `${label}: ${counted(frames.length, "frame", "frames")}`);
  return make("details", "cdiag-words", summary, stackLines(frames));
}
