// The compiles in flight: a line each, its seconds counted here in the browser.
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { formatFunction, formatPlace, formatSeconds } from "../core/format.js";
import { setHint } from "../core/hints.js";
import { PHASE_KINDS, phaseKind, phaseLabel } from "../timeline/phases.js";
/** @import { RunningCompile } from "../core/page-types" */
/** @import { Store } from "../core/store.js" */

const TICK_MS = 250;

/** One compile in flight, as elements. */
class FlightLine {
  /**
   * @param {RunningCompile} flight
   * @param {(flight: RunningCompile) => void} onPick
   */
  constructor(flight, onPick) {
    this.flight = flight;
    this.what = make("span", "cdiag-now-what");
    this.id = make("span", "cdiag-now-id");
    setHint(this.id, "torch's id of this compile: the number of the function / the number of its version");
    this.phase = make("span", "cdiag-now-phase");
    this.elapsed = make("span", "cdiag-now-elapsed");
    this.before = make("span", "cdiag-now-before");
    this.fill = make("span", "cdiag-fill");
    this.bar = make("span", "cdiag-progress", this.fill);
    this.bar.setAttribute("aria-hidden", "true"); // the two times beside it say the same
    this.node = makeButton("cdiag-flight", "", () => onPick(this.flight));
    this.node.append(make("span", "cdiag-pulse"), this.what, this.id, this.phase, this.elapsed, this.before, this.bar);
  }

  /** @param {number} now Unix ms by the kernel's clock */
  paint(now) {
    const { flight } = this;
    const elapsed = Math.max(0, (now - flight.started_ms) / 1000);
    const place = formatPlace(flight.file, flight.line);
    setText(this.what, `now: ${formatFunction(flight.function) ?? "?"}${place ? ` (${place})` : ""}`);
    setText(this.id, flight.compile_id ?? "");
    setText(this.phase, flight.phase ? phaseLabel(flight.phase) : "starting");
    setHint(this.phase, flight.phase && describePhases(flight.phases ?? []));
    setText(this.elapsed, formatSeconds(Math.floor(elapsed * 10) / 10));
    this.paintProgress(elapsed, flight.before_s ?? 0);
  }

  /**
   * @param {number} elapsed s
   * @param {number} before s of the function's last compile; 0 if there was none
   */
  paintProgress(elapsed, before) {
    setText(this.before, before ? `before: ${formatSeconds(before)}` : "first compile");
    setHint(this.before, before ? "What the last compile of this function took." : "This function was not compiled before.");
    this.bar.classList.toggle("is-open-ended", !before);
    this.bar.classList.toggle("is-late", before > 0 && elapsed > before);
    const share = before ? Math.min(1, elapsed / before) : 0;
    this.fill.style.width = `${(share * 100).toFixed(1)}%`;
  }
}

/**
 * What a phase does, and the phases that it runs in: "Inductor turns a graph into kernels ... Dynamo › Inductor".
 * @param {string[]} phases torch's names, the outermost first
 */
function describePhases(phases) {
  const kind = phases.map(phaseKind).findLast((each) => each !== null);
  return [kind && PHASE_KINDS[kind][1], phases.map(phaseLabel).join(" › ")].filter(Boolean).join("\n");
}

export class InFlightPanel {
  /**
   * @param {Store} store
   * @param {(flight: RunningCompile) => void} onPick
   */
  constructor(store, onPick) {
    this.store = store;
    this.onPick = onPick;
    /** @type {Map<string, FlightLine>} */
    this.lines = new Map();
    this.quiet = make("div", "cdiag-quiet");
    this.node = make("section", "cdiag-now", this.quiet);
    this.node.setAttribute("aria-label", "compiles in flight");
    this.timer = setInterval(() => this.tick(), TICK_MS);
  }

  destroy() {
    clearInterval(this.timer);
  }

  paint() {
    const flights = this.store.isLive() ? this.store.now : [];
    const wanted = new Map(flights.map((flight) => [`${flight.compile_key ?? flight.compile_id} ${flight.trigger}`, flight]));
    for (const [key, line] of this.lines) {
      if (wanted.has(key)) continue;
      line.node.remove();
      this.lines.delete(key);
    }
    wanted.forEach((flight, key) => this.setFlight(key, flight));
    setShown(this.node, this.store.isLive());
    this.tick(true);
  }

  /**
   * @param {string} key
   * @param {RunningCompile} flight
   */
  setFlight(key, flight) {
    const known = this.lines.get(key);
    if (known) {
      known.flight = flight;
      return;
    }
    const line = new FlightLine(flight, this.onPick);
    this.lines.set(key, line);
    this.node.append(line.node);
  }

  /** Also runs by itself four times a second; while paused nothing moves. */
  tick(isPaint = false) {
    if (this.store.paused && !isPaint) return;
    this.lines.forEach((line) => line.paint(this.store.kernelNow()));
    const silence = this.store.silence();
    const idle = this.lines.size ? "" : "now: nothing is compiling";
    setText(this.quiet, silence ? `no news from the kernel for ${formatSeconds(Math.floor(silence / 1000))}` : idle);
    setShown(this.quiet, this.quiet.textContent !== "");
  }
}
