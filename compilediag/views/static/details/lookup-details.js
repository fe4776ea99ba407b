// Details of cache lookups: one of them, and all of a function in a cache.
import { Dim, drawSome, Facts, joinKnown, longText, Section, whenKnown } from "../core/blocks.js";
import {
  formatAmount,
  formatBytes,
  formatCount,
  formatFunction,
  formatOutcome,
  formatSeconds,
} from "../core/format.js";
import { At } from "../core/text.js";
import { html } from "../core/view.js";
/** @import { DerivedPanel } from "./detail-pane.js" */

/**
 * One component of a key that differs, `name: old -> new`.
 * @param {{text: string}} props
 */
export function Difference({ text }) {
  return html`<code class="cdiag-diff">${longText(text.trim())}</code>`;
}

/**
 * One lookup: its outcome, why it missed, its keys and seconds.
 * @param {{get: Get<CacheLookupsRow>, link?: ComponentChild}} props
 */
export function Lookup({ get, link }) {
  const words = joinKnown(
    get("cache"),
    get("tier"),
    whenKnown(get("saved_s"), (seconds) => `saved ${formatSeconds(seconds)}`),
    whenKnown(get("taken_s"), (seconds) => `took ${formatSeconds(seconds)}`),
    whenKnown(get("bytes"), formatBytes),
  );
  const lines = get("explained") ?? [];
  const facts = [
    ["reason", lines.length ? null : get("reason")],
    ["failing guards", lines.length ? null : get("guard")],
    ["exception", get("exception_type")],
    ["kernels", whenKnown(get("kernels"), formatCount)],
    ["key", get("key")],
    ["forward entry", get("forward_key")],
    ["backward entry", get("backward_key")],
    ["saved in forward", whenKnown(get("forward_saved_s"), formatSeconds)],
    ["saved in backward", whenKnown(get("backward_saved_s"), formatSeconds)],
  ];
  return html`
    <div class="cdiag-item">
      <div><span class="cdiag-outcome" data-outcome=${get("outcome") ?? ""}>${formatOutcome(get("outcome"))}</span> ${words}${link}</div>
      ${drawSome(lines, (line) => (line.startsWith("  ") ? html`<${Difference} text=${line} />` : html`<${Dim}>${longText(line)}<//>`))}
      <${Facts} entries=${facts} />
    </div>`;
}

/** @type {DerivedPanel<CacheGroupsRow, CacheLookupsRow>} */
export const LOOKUP_PANEL = {
  title: (get) => `${formatFunction(get("function")) ?? "outside any compile"} · ${get("cache")}`,
  Body({ get, readers, start, linkCompile }) {
    const lead = joinKnown(
      get("hits") ? formatAmount(get("hits"), "hit") : null,
      whenKnown(get("saved_s"), (seconds) => `${formatSeconds(seconds)} saved`),
      get("misses") ? formatAmount(get("misses"), "miss", "misses") : null,
      get("bypassed") ? `${formatCount(get("bypassed"))} bypassed` : null,
      get("failed") ? `${formatCount(get("failed"))} failed` : null,
      get("stored") ? `${formatCount(get("stored"))} stored` : null,
    );
    const reasons = get("reasons");
    /** @param {Get<CacheLookupsRow>} each */
    const drawLookup = (each) => {
      const link = html` <span class="cdiag-dim">at <${At} ms=${each("time")} start=${start} /></span>${linkCompile(each)}`;
      return html`<${Lookup} key=${each("event_id")} get=${each} link=${link} />`;
    };
    return html`
      <p class="cdiag-lead">${lead}</p>
      ${reasons.length > 0 && html`
        <${Section} name="reasons" heading="Why lookups missed">${reasons.map((text) => html`<${Difference} text=${text} />`)}<//>`}
      <${Section} name="cache_lookups" heading="Lookups, the latest first">${drawSome([...readers].reverse(), drawLookup)}<//>`;
  },
};
