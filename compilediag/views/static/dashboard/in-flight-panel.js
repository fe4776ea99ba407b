// The compiles in flight: a line each, its seconds counted here in the browser.
import { make, setShown, setText } from "../core/dom.js";
import { formatPlace, formatSeconds } from "../core/format.js";
import { phaseLabel } from "./phases.js";

const TICK_MS = 250;
const SILENCE_MS = 8000; // the kernel speaks every two seconds while it can

export class NowPanel {
  constructor(store, onPick) {
    this.store = store;
    this.onPick = onPick;
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
    const wanted = new Map(flights.map((flight) => [`${flight.compile_id} ${flight.trigger}`, flight]));
    for (const [key, line] of this.lines) {
      if (wanted.has(key)) continue;
      line.node.remove();
      this.lines.delete(key);
    }
    wanted.forEach((flight, key) => {
      if (!this.lines.has(key)) this.lines.set(key, this.makeLine());
      this.lines.get(key).flight = flight;
    });
    setShown(this.node, this.store.isLive());
    this.tick(true);
  }

  makeLine() {
    const names = ["what", "id", "phase", "elapsed", "before"];
    const [what, id, phase, elapsed, before] = names.map((name) => make("span", `cdiag-now-${name}`));
    const fill = make("span", "cdiag-fill");
    const bar = make("span", "cdiag-progress", fill);
    bar.setAttribute("role", "progressbar");
    const node = make("button", "cdiag-flight", make("span", "cdiag-pulse"), what, id, phase, elapsed, before, bar);
    node.type = "button";
    const line = { node, what, id, phase, elapsed, before, fill, bar, flight: null };
    node.addEventListener("click", () => this.onPick(line.flight));
    this.node.append(node);
    return line;
  }

  /** Also runs by itself four times a second; while paused nothing moves. */
  tick(isPaint = false) {
    if (this.store.paused && !isPaint) return;
    this.lines.forEach((line) => this.paintLine(line));
    const silence = Date.now() - this.store.lastHeard;
    const isSilent = this.store.isLive() && silence > SILENCE_MS;
    const rest = this.lines.size ? "" : "now: nothing is compiling";
    setText(this.quiet, isSilent ? `no news from the kernel for ${Math.floor(silence / 1000)} s` : rest);
    setShown(this.quiet, this.quiet.textContent !== "");
  }

  paintLine(line) {
    const { flight } = line;
    const elapsed = Math.max(0, (this.store.kernelNow() - flight.started_ms) / 1000);
    const place = formatPlace(flight.file, flight.line);
    setText(line.what, `now: ${flight.function ?? "?"}${place ? ` (${place})` : ""}`);
    setText(line.id, flight.compile_id ?? "");
    setText(line.phase, flight.phase ? phaseLabel(flight.phase) : "starting");
    line.phase.title = (flight.phases ?? []).join(" › ");
    setText(line.elapsed, `${elapsed.toFixed(1)} s`);
    const known = flight.before_s !== null && flight.before_s !== undefined && flight.before_s > 0;
    setText(line.before, known ? `before: ${formatSeconds(flight.before_s)}` : "first time");
    line.bar.classList.toggle("is-open-ended", !known);
    const share = known ? Math.min(1, elapsed / flight.before_s) : 0;
    line.fill.style.width = `${(share * 100).toFixed(1)}%`;
    line.bar.classList.toggle("is-late", known && elapsed > flight.before_s);
    if (known) line.bar.setAttribute("aria-valuenow", String(Math.round(share * 100)));
    else line.bar.removeAttribute("aria-valuenow");
  }
}
