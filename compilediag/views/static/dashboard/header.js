// The top line (state, search, pause), and the tiles with the totals.
import { make, makeButton, makeSearch, setShown, setText } from "../core/dom.js";
import { formatCount, formatSeconds, formatShare, MISSING } from "../core/format.js";
import { explain } from "../core/glossary.js";
import { makeTerm, setHint } from "../core/hints.js";
/** @import { Store } from "../core/store.js" */

/** @type {Record<string, (value: number) => string>} total -> its format; all others are counts */
const FORMATS = {
  compile_s: formatSeconds,
  lost_s: formatSeconds,
  cache_saved_s: formatSeconds,
  own_s: formatSeconds,
  tuning_s: formatSeconds,
  eager_s: formatSeconds,
  used_once_s: formatSeconds,
  own_share: formatShare,
};

/** @type {Record<string, string>} total -> the table that it sums up; if that was not collected, the total is unknown */
const MADE_FROM = {
  compiles: "compiles",
  compile_s: "compiles",
  limit_hits: "compiles",
  recompiles: "recompiles",
  lost_s: "recompiles",
  cache_hits: "compile_caches",
  cache_misses: "compile_caches",
  cache_saved_s: "compile_caches",
  refused_calls: "refused_calls",
  graph_breaks: "graph_breaks",
  tuning_s: "autotune",
  tuning_runs: "autotune",
  tuning_failed: "autotune",
  graph_records: "cudagraphs",
  graph_rerecords: "cudagraphs",
  graph_skips: "cudagraphs",
  graph_replays: "cudagraphs",
  eager_calls: "calls",
  eager_s: "calls",
  used_once: "calls",
  used_once_s: "calls",
};

/** @typedef {[key: string, one: string, many?: string]} Total a total, and the words after it */

/** @type {{main: Total, details: Total[]}[]} tiles: the total that is shown large, and those below it */
const TILES = [
  { main: ["compiles", "compile", "compiles"], details: [["compile_s", "compiling"]] },
  { main: ["recompiles", "recompile", "recompiles"], details: [["lost_s", "lost"], ["limit_hits", "at the recompile limit"]] },
  { main: ["cache_hits", "cache hit", "cache hits"], details: [["cache_saved_s", "saved"], ["cache_misses", "missed"]] },
  { main: ["tuning_s", "tuning"], details: [["tuning_runs", "run", "runs"], ["tuning_failed", "choice failed", "choices failed"]] },
  {
    main: ["graph_records", "CUDA graph", "CUDA graphs"],
    details: [["graph_rerecords", "re-recorded"], ["graph_skips", "skipped"], ["graph_replays", "replay", "replays"]],
  },
  { main: ["graph_breaks", "graph break", "graph breaks"], details: [] },
  { main: ["refused_calls", "refused call", "refused calls"], details: [] },
  {
    main: ["eager_calls", "eager call", "eager calls"],
    details: [["eager_s", ""], ["used_once", "entry called once", "entries called once"], ["used_once_s", ""]],
  },
  { main: ["own_share", "overhead"], details: [["own_s", ""], ["events", "event", "events"], ["dropped", "dropped"]] },
];

/** @type {Record<string, string[]>} tiles that most sessions do not need: they are shown once one of these totals is not 0 */
const RARE = {
  tuning_s: ["tuning_runs", "tuning_s"],
  graph_records: ["graph_records", "graph_rerecords", "graph_skips"],
  refused_calls: ["refused_calls"],
  eager_calls: ["eager_calls", "used_once"],
};

/** @type {Record<string, string>} */
const STATES = {
  watching: "watching",
  paused: "paused",
  stopped: "stopped",
  lost: "file lost",
  loaded: "saved session",
  unfinished: "saved while watching",
  silent: "no news",
  cut: "kernel stopped",
};
const CUT = "The kernel stopped; the recording ended here.";
const MISSED = "Some updates were missed. The kernel sends them when its cell has ended.";

export class Header {
  /**
   * @param {Store} store
   * @param {(text: string) => void} onQuery
   */
  constructor(store, onQuery) {
    this.store = store;
    /** @type {{node: HTMLElement, words: HTMLElement, total: Total}[]} */
    this.totals = [];
    /** @type {Map<string, HTMLElement>} main total -> its tile */
    this.rare = new Map();
    this.state = make("span", "cdiag-state");
    this.title = make("span", "cdiag-title");
    this.badge = make("span", "cdiag-badge", "redacted");
    this.waiting = make("span", "cdiag-waiting");
    this.search = makeSearch("search everything", "search all tables", () => onQuery(this.search.value));
    this.pause = makeButton("cdiag-button cdiag-pause", "pause", () => store.setPaused(!store.paused));
    this.line = make("div", "cdiag-bar", this.state, this.title, this.badge, this.waiting, this.search, this.pause);
    this.notice = make("div", "cdiag-notice");
    this.notice.setAttribute("role", "alert");
    this.node = make("div", "cdiag-top", this.line, this.notice);
    this.tiles = make("div", "cdiag-tiles", ...this.makeTiles());
  }

  makeTiles() {
    return TILES.map(({ main, details }) => {
      const below = details.flatMap((total, i) => [i ? " · " : "", ...this.makeTotal(total, "")]);
      const tile = make("div", "cdiag-tile", ...this.makeTotal(main, "cdiag-label"), make("div", "cdiag-sub", ...below));
      if (main[0] in RARE) this.rare.set(main[0], tile);
      return tile;
    });
  }

  /**
   * @param {Total} total
   * @param {string} className of the words after the number
   */
  makeTotal(total, className) {
    const node = make("span", "cdiag-number", MISSING);
    node.dataset.total = total[0];
    const words = makeTerm("", explain(total[0]));
    if (className) words.classList.add(className);
    this.totals.push({ node, words, total });
    return total[1] ? [node, " ", words] : [node];
  }

  paint() {
    const { meta, totals, paused, waiting } = this.store;
    this.paintState();
    setText(this.title, meta.title ?? "");
    setShown(this.badge, meta.redacted === true);
    setText(this.waiting, paused ? `paused, ${formatCount(waiting.length)} updates waiting` : "");
    setShown(this.pause, this.store.isLive() || paused);
    setText(this.pause, paused ? "resume" : "pause");
    this.pause.setAttribute("aria-pressed", String(paused));
    this.paintNotice();
    this.rare.forEach((tile, key) => setShown(tile, RARE[key].some((total) => totals[total] > 0)));
    for (const { node, words, total } of this.totals) this.paintTotal(node, words, total);
  }

  /** Also runs a few times a second: silence is no event. */
  paintState() {
    const state = this.store.paused ? "paused" : this.findState();
    setText(this.state, STATES[state] ?? state);
    this.state.dataset.state = state;
  }

  findState() {
    const { meta, hasKernelStopped } = this.store;
    if (meta.state !== "watching") return meta.state ?? "loaded";
    if (hasKernelStopped) return "cut";
    if (!this.store.isLive()) return "unfinished";
    return this.store.silence() ? "silent" : "watching";
  }

  /**
   * @param {HTMLElement} node
   * @param {HTMLElement} words
   * @param {Total} total
   */
  paintTotal(node, words, [key, one, many]) {
    const value = this.store.totals[key];
    const isBlind = this.store.observed[MADE_FROM[key]] === false;
    const known = value !== null && value !== undefined && !(isBlind && value === 0);
    const shown = known ? (FORMATS[key] ?? formatCount)(value) : MISSING;
    setText(node, known && isBlind ? `≥ ${shown}` : shown);
    setText(words, value === 1 ? one : many ?? one);
    node.dataset.value = known ? String(value) : "";
    setHint(node, isBlind ? "not collected, or not all the time" : null);
    node.classList.toggle("is-blind", isBlind);
  }

  paintNotice() {
    const { problem, hasKernelStopped, catchingUp } = this.store;
    const text = problem ?? (hasKernelStopped ? CUT : catchingUp ? MISSED : null);
    setText(this.notice, text ?? "");
    setShown(this.notice, text !== null);
  }
}
