// The head of the page, one row in every state: what compiles now, or how the run went; the search and what can be done.
import { formatAmount, formatCount, formatFunction, formatPlace, formatSeconds, formatShare } from "../core/format.js";
import { Ago, Icon } from "../core/blocks.js";
import { Menu } from "../core/menu.js";
import { html, useTicks } from "../core/view.js";
import { PHASE_KINDS, phaseKind, phaseLabel } from "../timeline/phases.js";

/** @typedef {"line" | "compact" | "full"} Size how much of the page is shown */
/** @typedef {{store: Store, compiles: Compiles, size: Size, onFlight: (flight: RunningCompile) => void}} NowProps */

const TICK_MS = 250;
const QUIET_TICK_MS = 1000;
/** @type {Record<string, string>} the states that have words of their own */
const ENDS = { lost: "The session's file was lost", cut: "The kernel stopped", unfinished: "Saved while watching" };

/** @type {Write<Store>} The state of a session as the page shows it. */
function findState(store) {
  const { meta, hasKernelStopped, paused, search, canSearch } = store;
  if (paused) return "paused";
  if (meta.state !== "watching" && search?.running && canSearch) return "trying";
  if (meta.state !== "watching") return meta.state ?? "loaded";
  if (hasKernelStopped) return "cut";
  if (!store.isLive()) return "unfinished";
  return store.silence() ? "silent" : "watching";
}

/** @param {NowProps & {children: any, commands: Command[], onSize: () => void}} props */
export function Header({ store, compiles, size, onFlight, onSize, commands, children }) {
  const { paused, isFrozen, meta } = store;
  const isFull = size === "full";
  const label = isFull ? "Compact" : "Show everything";
  return html`<div class="cdiag-top">
    <${Now} store=${store} compiles=${compiles} size=${size} onFlight=${onFlight} />
    ${meta.redacted && html`<span class="cdiag-badge">redacted</span>`} ${isFull && children}
    ${(store.isLive() || paused) && html`
      <button type="button" class="cdiag-button cdiag-pause" aria-pressed=${String(paused)} onClick=${() => store.setPaused(!paused)}>
        ${paused ? "Continue" : "Pause"}
      </button>`}
    ${isFull && html`<${Menu} label="Export" className="cdiag-button" commands=${commands} />`}
    ${!isFrozen && html`
      <button type="button" class="cdiag-button is-quiet is-icon cdiag-size" title=${`${label} (E)`} aria-label=${label} onClick=${onSize}>
        <${Icon} name=${isFull ? "smaller" : "larger"} />
      </button>`}
  </div>`;
}

/** @type {Component<NowProps>} What happens now; its clock runs in the browser, and stands while the display is paused. */
function Now({ store, compiles, size, onFlight }) {
  const state = findState(store);
  const isFlying = state === "watching" && store.now.length > 0;
  useTicks(store.paused ? 0 : isFlying ? TICK_MS : QUIET_TICK_MS);
  return html`<div class="cdiag-now" data-state=${state}>
    ${isFlying ? html`<${Flight} store=${store} compiles=${compiles} onFlight=${onFlight} />` : html`
      <${Dot} state=${state} isQuiet=${size === "line"} />
      <span class="cdiag-now-what" role="status"><${State} state=${state} store=${store} size=${size} /></span>`}
  </div>`;
}

/** @param {{state: string, isQuiet: boolean}} props */
function Dot({ state, isQuiet }) {
  if (isQuiet && (state === "stopped" || state === "loaded")) return html`<span class="cdiag-healthy"><${Icon} name="good" /></span>`;
  return html`<span class="cdiag-dot is-${state === "trying" ? "live" : state}"></span>`;
}

/** @param {{state: string, store: Store, size: Size}} props */
function State({ state, store, size }) {
  const { waiting, totals } = store;
  const compiles = `${formatAmount(totals.compiles ?? 0, "compile")}, ${formatSeconds(totals.compile_s ?? 0)}`;
  if (state === "paused") return html`<b>Paused</b> <${Dim}>· ${formatAmount(waiting.length, "update")} waiting<//>`;
  if (state === "trying") return html`<b>Trying the plan</b> <${Dim}><${More}>in a fresh process<//> · run ${formatCount((store.search?.done ?? 0) + 1)}<//>`;
  if (state === "silent") return html`No news from the kernel for ${formatSeconds(Math.floor(store.silence() / 1000))}`;
  if (state === "watching") return html`<b>Watching</b> <${Dim}>· ${totals.compiles ? compiles : "nothing compiled so far"}<${LastEnd} store=${store} /><//>`;
  const run = html`<${Run} store=${store} />`;
  if (state in ENDS) return html`<b>${ENDS[state]}</b> <${Dim}>· ${compiles}<${More}>${run}<//><//>`;
  if (size === "full") return html`<b class="cdiag-title">${store.meta.title ?? "session"}</b> <${Dim}>${run}<//>`;
  if (totals.recompiles) return html`<b>${formatAmount(totals.recompiles, "recompile")}</b> <${Dim}>in ${compiles}<${More}>${run}<//><//>`;
  const calls = totals.compiled_calls ? ` · ${formatAmount(totals.compiled_calls, "call")}` : "";
  const own = totals.own_share ? ` · overhead ${formatShare(totals.own_share)}` : "";
  return html`<b>${totals.compiles ? "Nothing recompiled" : "Nothing was compiled"}</b> <${Dim}>· ${compiles}<${More}>${calls}${own}${size !== "line" && run}<//><//>`;
}

/** @param {{children: any}} props */
function Dim({ children }) {
  return html`<span class="cdiag-dim">${children}</span>`;
}

/** @type {Component<{children: any}>} What a narrow head leaves out. */
function More({ children }) {
  return html`<span class="cdiag-now-more">${children}</span>`;
}

/** @type {Component<{store: Store}>} " · run of 4 min 26 s, ended 2 min ago". */
function Run({ store }) {
  const { started_ms: begin, stopped_ms: end } = store.meta;
  if (!begin) return null;
  if (!end) return html` · begun <${Ago} ms=${begin} now=${store.kernelNow()} />`;
  return html` · run of ${formatSeconds((end - begin) / 1000)}<${More}>, ended <${Ago} ms=${end} now=${store.kernelNow()} /><//>`;
}

/** @param {{store: Store}} props */
function LastEnd({ store }) {
  const table = store.table("compiles");
  const row = table.rows.at(-1);
  if (!row) return null;
  const end = table.get(row, "time") + 1000 * (table.get(row, "duration_s") ?? 0);
  return html`<${More}> · the last one ended <${Ago} ms=${end} now=${store.kernelNow()} /><//>`;
}

/** @type {Component<Omit<NowProps, "size">>} What has compiled longest, and a list of what else compiles. */
function Flight({ store, compiles, onFlight }) {
  const [flight, ...others] = [...store.now].sort((a, b) => a.started_ms - b.started_ms);
  const change = compiles.describe(flight.compile_key);
  const elapsed = secondsOf(flight, store);
  const before = flight.before_s ?? 0;
  const commands = others.map((other) => {
    const [place, phase] = [formatPlace(other.file, other.line), writePhase(other)];
    const label = [formatFunction(other.function) ?? "?", place && `(${place})`].filter(Boolean).join(" ");
    return { key: `${other.compile_key} ${other.trigger}`, label, note: `${phase}, ${writeSeconds(secondsOf(other, store))}`, run: () => onFlight(other) };
  });
  return html`<span class="cdiag-dot is-${change ? "recompile" : "live"}"></span>
    <button type="button" class="cdiag-flight" title=${formatPlace(flight.file, flight.line)} onClick=${() => onFlight(flight)}>
      <span class="cdiag-now-what" role="status"><${What} flight=${flight} change=${change} /></span>
      <span class="cdiag-dim"> · <span class="cdiag-now-phase" data-hint=${describePhase(flight)}>${writePhase(flight)}</span></span>
    </button>
    <${Menu} label=${`+${others.length} more`} className="cdiag-button is-quiet" commands=${commands} />
    <span class="cdiag-clock">
      <b class="cdiag-now-elapsed">${writeSeconds(elapsed)}</b>
      ${before > 0 && html`<span class="cdiag-now-before" title="What the last compile of this function took."> of about ${formatSeconds(before)}</span>`}
    </span>
    <span class=${`cdiag-progress${before ? "" : " is-open"}${change ? " is-recompile" : ""}`} aria-hidden="true">
      <i style=${before ? `width: ${(100 * Math.min(1, elapsed / before)).toFixed(1)}%` : ""}></i>
    </span>`;
}

/** @param {{flight: RunningCompile, change: string | null}} props */
function What({ flight, change }) {
  const name = html`<code>${formatFunction(flight.function) ?? "?"}</code>`;
  const isBackward = /backward/.test(flight.trigger ?? "");
  if (change) {
    return html`<span class="cdiag-cause"><${Icon} name="again" /> <b>${change}</b></span> <${Dim}><${More}>recompiling ${name}<//><//>`;
  }
  return html`<${More}>Compiling <//>${isBackward && "the backward of "}<b>${name}</b>${!flight.before_s && !isBackward && html` <${Dim}><${More}>for the first time<//><//>`}`;
}

/** @param {RunningCompile} flight @param {Store} store */
function secondsOf(flight, store) {
  return Math.max(0, (store.kernelNow() - flight.started_ms) / 1000);
}

/** @type {Write<number>} Seconds of a clock that runs: it shows no time that has not passed. */
function writeSeconds(seconds) {
  return formatSeconds(Math.floor(seconds * 10) / 10);
}

/** @type {Write<RunningCompile>} */
function writePhase(flight) {
  return flight.phase ? phaseLabel(flight.phase) : "starting";
}

/** @type {(flight: RunningCompile) => string | null} what a phase does, and those that it runs in: "Dynamo › Inductor" */
function describePhase({ phases }) {
  const kind = (phases ?? []).map(phaseKind).findLast((each) => each !== null);
  return [kind && PHASE_KINDS[kind][1], (phases ?? []).map(phaseLabel).join(" › ")].filter(Boolean).join("\n") || null;
}
