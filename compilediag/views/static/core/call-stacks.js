// Call stacks: put together from frames that are stored once each, and drawn with torch's own frames folded.
import { Words } from "./blocks.js";
import { formatAmount, formatFunction, formatPlace } from "./format.js";
import { Inputs } from "./inputs.js";
import { html } from "./view.js";
import { useState } from "../vendor/hooks.js";

const TORCH_FILE = /(?:site|dist)-packages[\\/]torch[\\/]|[\\/]pytorch[\\/]torch[\\/]|^<frozen /;
// What starts a program or runs a cell: notebook kernels, event loops, launchers and test runners.
const HOST_FILE = new RegExp([
  /(?:site|dist)-packages[\\/](?:ipykernel|IPython|tornado|traitlets|zmq|jupyter_\w+|nbclient|marimo|uvicorn|starlette|anyio)\b/,
  /(?:site|dist)-packages[\\/](?:ipykernel_launcher|debugpy|_pytest|pytest|pluggy|accelerate[\\/]commands)\b/,
  /[\\/]lib[\\/]python[\d.]+t?[\\/](?:asyncio|concurrent|multiprocessing|runpy|threading|contextlib|bdb|pdb)\b/,
  /[\\/]compilediag[\\/](?:cli|frontends|trials|__main__)\b|^<frozen /,
].map((pattern) => pattern.source).join("|"));
const MOST_FRAMES = 1000; // frames of one stack

/** @type {(frames: StackFrame[]) => number} the outermost ones belong to what runs the program, such as a notebook's kernel */
export function countHostFrames(frames) {
  const first = frames.findIndex(({ file }) => file !== null && !HOST_FILE.test(file));
  return Math.max(first, 0);
}

/** The frames of all stacks. A stack is named by the key of its innermost frame. */
export class CallStacks {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.inputs = new Inputs();
    /** @type {Map<string, StackFrame>} */
    this.frames = new Map();
    /** @type {Map<string, StackFrame[]>} key -> the frames of that stack */
    this.known = new Map();
  }

  /** @type {(key: string) => StackFrame[]} of a stack, the outermost first; none if it is not known */
  framesOf(key) {
    const table = this.store.table("stacks");
    if (this.inputs.haveChanged(table, table.version)) {
      this.known.clear();
      this.frames = new Map(table.rows.map((row) => {
        const get = table.reader(row);
        const [id, name] = [get("stack") ?? "", formatFunction(get("function"))];
        return [id, { key: id, caller: get("caller"), file: get("file"), line: get("line"), name, code: get("code") }];
      }));
    }
    const known = this.known.get(key);
    if (known) return known;
    /** @type {StackFrame[]} */
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

/** @type {Component<{frame: StackFrame}>} "model.py:30 forward": one frame, with the line's text if it is known. */
export function FrameLine({ frame: { file, line, name, code } }) {
  return html`
    <div class="cdiag-frame-line">
      <span class="cdiag-frame-place" data-hint=${`${file ?? "?"}:${line ?? "?"}`}>${formatPlace(file, line) ?? "?"}</span>
      <span class="cdiag-frame-name">${name ?? "?"}</span>
      ${code !== null && html`<code class="cdiag-frame-code">${code}</code>`}
    </div>`;
}

/**
 * Frames, the outermost first; those that are not the user's are shown on request.
 * @type {Component<{frames: StackFrame[], hosts?: number}>} `hosts` of the outermost belong to what runs the program
 */
export function Frames({ frames, hosts = 0 }) {
  const [open, setOpen] = useState(/** @type {number[]} */ ([])); // the runs of hidden frames that are shown
  /** @type {{fold: string | null, run: StackFrame[]}[]} consecutive frames; `fold`: what is said of them while they are hidden */
  const runs = [];
  for (const [at, frame] of frames.entries()) {
    const fold = at < hosts ? "above your code" : TORCH_FILE.test(frame.file ?? "") ? "of torch or Python" : null;
    const last = runs.at(-1);
    if (last?.fold === fold) last.run.push(frame);
    else runs.push({ fold, run: [frame] });
  }
  return runs.map(({ fold, run }, i) => {
    const lines = run.map((frame) => html`<${FrameLine} frame=${frame} />`);
    if (fold === null) return lines;
    const isOpen = open.includes(i);
    return html`
      <button type="button" class="cdiag-fold" key=${i} aria-expanded=${String(isOpen)}
        onClick=${() => setOpen((known) => (isOpen ? known.filter((each) => each !== i) : [...known, i]))}>
        … ${formatAmount(run.length, "frame")} ${fold}
      </button>
      ${isOpen && html`<div class="cdiag-frames-hidden">${lines}</div>`}`;
  });
}

/** @param {{frames: StackFrame[]}} props */
export function Stack({ frames }) {
  return html`<div class="cdiag-stack"><${Frames} frames=${frames} hosts=${countHostFrames(frames)} /></div>`;
}

/** @type {Component<{stacks: NamedStack[]}>} Stacks that are shown on request, without those that have no frames. */
export function Stacks({ stacks }) {
  return stacks.filter(({ frames }) => frames.length).map(({ label, frames }) => html`
    <${Words} key=${label} heading=${`${label}: ${formatAmount(frames.length, "frame")}`}><${Stack} frames=${frames} /><//>`);
}
