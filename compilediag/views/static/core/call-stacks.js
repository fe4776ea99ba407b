// Call stacks: put together from frames that are stored once each, and drawn with torch's own frames folded.
import { make, makeButton, setShown } from "./dom.js";
import { setHint } from "./hints.js";
import { formatAmount, formatFunction, formatPlace } from "./format.js";
/** @import { Store, Table } from "./store.js" */

/** @typedef {{key: string, caller: string | null, file: string | null, line: number | null, name: string | null, code: string | null}} Frame */
/** @typedef {{folded: string | null, frames: Frame[]}} Run consecutive frames that are shown together; `folded`: what a fold says of them; null if they are shown */

const TORCH_FILE = /(?:site|dist)-packages[\\/]torch[\\/]|[\\/]pytorch[\\/]torch[\\/]|^<frozen /;
// What starts a program or runs a cell: notebook kernels, event loops, launchers and test runners.
const HOST_FILE = new RegExp([
  /(?:site|dist)-packages[\\/](?:ipykernel|IPython|tornado|traitlets|zmq|jupyter_\w+|nbclient|marimo|uvicorn|starlette|anyio)\b/,
  /(?:site|dist)-packages[\\/](?:ipykernel_launcher|debugpy|_pytest|pytest|pluggy|accelerate[\\/]commands)\b/,
  /[\\/]lib[\\/]python[\d.]+t?[\\/](?:asyncio|concurrent|multiprocessing|runpy|threading|contextlib|bdb|pdb)\b/,
  /[\\/]compilediag[\\/](?:cli|frontends|trials|__main__)\b|^<frozen /,
].map((pattern) => pattern.source).join("|"));
const MOST_FRAMES = 1000; // frames of one stack

/**
 * True for a frame of torch or of the interpreter's own start.
 * @param {Frame} frame
 */
function isTorchFrame(frame) {
  return frame.file !== null && TORCH_FILE.test(frame.file);
}

/**
 * How many of the outermost frames belong to what runs the program, such as a notebook's kernel.
 * @param {Frame[]} frames
 */
export function countHostFrames(frames) {
  const first = frames.findIndex(({ file }) => file !== null && !HOST_FILE.test(file));
  return Math.max(first, 0);
}

/** The frames of all stacks. A stack is named by the key of its innermost frame. */
export class CallStacks {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Table<"stacks"> | null} */
    this.table = null;
    this.version = -1;
    /** @type {Map<string, Frame>} */
    this.frames = new Map();
    /** @type {Map<string, Frame[]>} key -> the frames of that stack */
    this.known = new Map();
  }

  refresh() {
    const table = this.store.table("stacks");
    if (this.table === table && this.version === table.version) return;
    this.table = table;
    this.version = table.version;
    this.frames.clear();
    this.known.clear();
    for (const row of table.rows) {
      const get = table.reader(row);
      const key = get("stack");
      if (key === null) continue;
      const [file, line, name, code] = [get("file"), get("line"), formatFunction(get("function")), get("code")];
      this.frames.set(key, { key, caller: get("caller"), file, line, name, code });
    }
  }

  /**
   * The frames of a stack, the outermost first; none if it is not known.
   * @param {string} key
   */
  framesOf(key) {
    this.refresh();
    const known = this.known.get(key);
    if (known) return known;
    /** @type {Frame[]} */
    const found = [];
    let frame = this.frames.get(key);
    while (frame && found.length < MOST_FRAMES) {
      found.push(frame);
      frame = frame.caller === null ? undefined : this.frames.get(frame.caller);
    }
    this.known.set(key, found.reverse());
    return found;
  }
}

/**
 * "model.py:30 forward": one frame, with the line's text if it is known.
 * @param {Frame} frame
 */
export function makeFrame(frame) {
  const place = make("span", "cdiag-frame-place", formatPlace(frame.file, frame.line) ?? "?");
  setHint(place, `${frame.file ?? "?"}:${frame.line ?? "?"}`);
  const name = make("span", "cdiag-frame-name", frame.name ?? "?");
  const code = frame.code === null ? null : make("code", "cdiag-frame-code", frame.code);
  return make("div", "cdiag-frame-line", place, name, code);
}

/**
 * Splits frames into runs: what runs the program, consecutive frames of torch, and each frame of the user alone.
 * @param {Frame[]} frames
 * @param {number} [hosts] how many of the outermost frames belong to what runs the program
 */
export function splitRuns(frames, hosts = 0) {
  /** @type {Run[]} */
  const runs = [];
  for (const [at, frame] of frames.entries()) {
    const folded = at < hosts ? "above your code" : isTorchFrame(frame) ? "of torch or Python" : null;
    const last = runs.at(-1);
    if (folded && last?.folded === folded) last.frames.push(frame);
    else runs.push({ folded, frames: [frame] });
  }
  return runs;
}

/**
 * A run as elements; frames that are not the user's are shown on request.
 * @param {Run} run
 */
export function makeRun(run) {
  if (!run.folded) return run.frames.map(makeFrame);
  const hidden = make("div", "cdiag-frames-hidden", ...run.frames.map(makeFrame));
  setShown(hidden, false);
  const fold = makeButton("cdiag-fold", `… ${formatAmount(run.frames.length, "frame")} ${run.folded}`, () => {
    setShown(hidden, hidden.hidden === true);
    fold.setAttribute("aria-expanded", String(!hidden.hidden));
  });
  fold.setAttribute("aria-expanded", "false");
  return [fold, hidden];
}

/**
 * A whole stack, the outermost frame first.
 * @param {Frame[]} frames
 */
export function makeStack(frames) {
  return make("div", "cdiag-stack", ...splitRuns(frames, countHostFrames(frames)).flatMap(makeRun));
}

/**
 * A stack that is shown on request; null if it has no frames.
 * @param {string} label
 * @param {Frame[]} frames
 */
export function makeStackDetails(label, frames) {
  if (!frames.length) return null;
  const summary = make("summary", "", `${label}: ${formatAmount(frames.length, "frame")}`);
  return make("details", "cdiag-words", summary, makeStack(frames));
}
