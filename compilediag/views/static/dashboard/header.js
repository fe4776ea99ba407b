// The top line (state, search, pause) and the totals under it.
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { formatCount, formatSeconds, formatShare, MISSING } from "../core/format.js";

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

/** Which table a total is made from: if that was not observed, the total is unknown, not 0. */
const MADE_FROM = {
  compiles: "compiles",
  compile_s: "compiles",
  limit_hits: "compiles",
  recompiles: "recompiles",
  lost_s: "recompiles",
  cache_hits: "compile_caches",
  cache_misses: "compile_caches",
  cache_saved_s: "compile_caches",
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

/** A tile: the total that is set large, its name, and smaller ones with what stands behind them. */
const TILES = [
  ["compiles", "compile", [["compile_s", " compiling"]]],
  ["recompiles", "recompile", [["lost_s", " lost"], ["limit_hits", " hit the limit"]]],
  ["cache_hits", "cache hit", [["cache_saved_s", " saved"], ["cache_misses", " missed"]]],
  ["tuning_s", "tuning", [["tuning_runs", " runs"], ["tuning_failed", " choices failed"]]],
  [
    "graph_records",
    "CUDA graph",
    [["graph_rerecords", " captured again"], ["graph_skips", " skipped"], ["graph_replays", " replays"]],
  ],
  ["graph_breaks", "graph break", []],
  ["eager_calls", "eager call", [["eager_s", ""], ["used_once", " entries called once"], ["used_once_s", ""]]],
  ["own_share", "own cost", [["own_s", ""], ["events", " events"], ["dropped", " dropped"]]],
];

/** Tiles that most sessions have nothing for: they show up once one of these totals is not 0. */
const RARE = {
  tuning_s: ["tuning_runs", "tuning_s"],
  graph_records: ["graph_records", "graph_rerecords", "graph_skips"],
  eager_calls: ["eager_calls", "used_once"],
};

const COUNTS = new Set(["compiles", "recompiles", "cache_hits", "graph_records", "graph_breaks", "eager_calls"]);
const STATES = {
  watching: "watching",
  stopped: "stopped",
  loaded: "saved session",
  unfinished: "written while watching",
};

export class Header {
  constructor(store, onQuery) {
    this.store = store;
    this.numbers = new Map();
    this.labels = [];
    this.rare = new Map();
    this.state = make("span", "cdiag-state");
    this.title = make("span", "cdiag-title");
    this.badge = make("span", "cdiag-badge", "redacted");
    this.waiting = make("span", "cdiag-waiting");
    this.search = make("input", "cdiag-search");
    this.search.type = "search";
    this.search.placeholder = "search everything";
    this.search.setAttribute("aria-label", "search all tables");
    this.search.spellcheck = false;
    this.search.addEventListener("input", () => onQuery(this.search.value));
    this.pause = makeButton("cdiag-pause", "pause", () => store.setPaused(!store.paused));
    const line = make("div", "cdiag-bar", this.state, this.title, this.badge, this.waiting, this.search, this.pause);
    this.notice = make("div", "cdiag-notice");
    this.notice.setAttribute("role", "alert");
    this.node = make("header", "", line, this.notice, this.tiles());
  }

  tiles() {
    return make("div", "cdiag-tiles", ...TILES.map(([key, name, more]) => {
      const details = more.flatMap(([total, after], i) => [i ? " · " : "", this.number(total), after]);
      const label = make("span", "cdiag-label");
      this.labels.push([label, key, name]);
      const tile = make("div", "cdiag-tile", this.number(key), " ", label, make("div", "cdiag-sub", ...details));
      if (key in RARE) this.rare.set(key, tile);
      return tile;
    }));
  }

  number(key) {
    const node = make("span", "cdiag-number", MISSING);
    node.dataset.total = key;
    this.numbers.set(key, node);
    return node;
  }

  paint() {
    const { meta, observed, totals, paused, waiting } = this.store;
    const state = meta.state === "watching" && !this.store.isLive() ? "unfinished" : meta.state ?? "loaded";
    setText(this.state, paused ? "paused" : STATES[state] ?? state);
    this.state.dataset.state = paused ? "paused" : state;
    setText(this.title, meta.title ?? "");
    setShown(this.badge, meta.redacted === true);
    setText(this.waiting, paused ? `paused, ${formatCount(waiting.length)} updates waiting` : "");
    setShown(this.pause, state === "watching" || paused);
    setText(this.pause, paused ? "resume" : "pause");
    this.pause.setAttribute("aria-pressed", String(paused));
    this.paintNotice();
    this.rare.forEach((tile, key) => setShown(tile, RARE[key].some((total) => totals[total] > 0)));
    this.labels.forEach(([node, key, name]) => setText(node, COUNTS.has(key) && totals[key] !== 1 ? `${name}s` : name));
    this.numbers.forEach((node, key) => this.paintNumber(node, key, totals[key], observed[MADE_FROM[key]] === false));
  }

  paintNumber(node, key, value, isBlind) {
    const known = value !== null && value !== undefined && !(isBlind && value === 0);
    const shown = known ? (FORMATS[key] ?? formatCount)(value) : MISSING;
    setText(node, known && isBlind ? `≥ ${shown}` : shown);
    node.dataset.value = known ? String(value) : "";
    node.title = isBlind ? "not observed, or no longer" : key;
    node.classList.toggle("is-blind", isBlind);
  }

  paintNotice() {
    const missed = "some updates were missed; the kernel fills them in when its cell has ended";
    const text = this.store.problem ?? (this.store.catchingUp ? missed : null);
    setText(this.notice, text ?? "");
    setShown(this.notice, text !== null);
  }
}
