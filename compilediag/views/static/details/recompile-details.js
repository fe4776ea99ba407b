// Details of a recompile and of a refused call: what changed, and every guard that failed.
import { CodeLine, Dim, joinKnown, longText, MOST, whenKnown, Words } from "../core/blocks.js";
import { explain } from "../core/glossary.js";
import { formatAmount, formatCode, formatPlace, formatSeconds, formatTimes, lookUp, MISSING } from "../core/format.js";
import { Term } from "../core/text.js";
import { html } from "../core/view.js";

/** @type {Record<string, string>} what ran instead of compiled code */
const RAN = {
  eager: "ran eagerly",
  aot_eager: "ran with aot_eager",
  raised: "raised an exception",
  unchecked: "guards are not checked",
};

/**
 * The cause of a recompile, with a link to its guard.
 * @param {{get: Get<RecompilesRow>, explore?: (place: Place) => void}} props
 */
export function Cause({ get, explore }) {
  const facts = joinKnown(
    whenKnown(get("closest_compile_id"), (id) => `compared with entry ${id}`),
    whenKnown(get("entries_checked"), (count) => `${formatAmount(count, "entry", "entries")} checked`),
    whenKnown(get("entries_analyzed"), (count) => (count < (get("entries_checked") ?? 0) ? `${count} analyzed` : "")),
    whenKnown(get("guards_failed"), (count) => `${formatAmount(count, "guard")} failed`),
    whenKnown(get("lost_s"), (seconds) => `${formatSeconds(seconds)} lost`),
  );
  const event = get("event_id");
  return html`
    <div class="cdiag-cause"><${Change} get=${get} /></div>
    <${CodeLine} code=${get("user_code")} place=${formatPlace(get("user_file"), get("user_line"))} />
    <${Dim}>${facts}<//>
    ${explore && html`<button type="button" class="cdiag-link" onClick=${() => explore({ event })}>explore this guard ›</button>`}`;
}

/**
 * What refused a call, what ran instead, and the guard of the closest entry that failed, if there is an entry.
 * @param {{get: Get<RefusedCallsRow>}} props
 */
export function Refusal({ get }) {
  const facts = joinKnown(
    whenKnown(get("closest_compile_id"), (id) => `compared with entry ${id}`),
    whenKnown(get("entries_checked"), (count) => `${formatAmount(count, "entry", "entries")} checked`),
  );
  const setAt = whenKnown(formatPlace(get("set_file"), get("set_line")), (place) => `set at ${place}`);
  const ran = [lookUp(RAN, get("ran") ?? MISSING), whenKnown(get("count"), formatTimes)].filter(Boolean).join(" ");
  return html`
    <p class="cdiag-lead">${joinKnown(ran, get("refused_by"), setAt)}</p>
    ${get("guard_kind") !== null && html`<div class="cdiag-cause"><${Change} get=${get} /></div>`}
    <${CodeLine} code=${get("user_code")} place=${formatPlace(get("user_file"), get("user_line"))} />
    ${facts && html`<${Dim}>${facts}<//>`}`;
}

/** @param {{get: (name: "guard_source" | "guard_kind" | "expected" | "actual") => string | null}} props */
function Change({ get }) {
  const source = get("guard_source") ?? get("guard_kind") ?? "a guard";
  const values = `${longText(get("expected") ?? MISSING)} → ${longText(get("actual") ?? MISSING)}`;
  return html`<div><code class="cdiag-source">${longText(source)}</code> <span class="cdiag-change">${values}</span></div>`;
}

/**
 * Every failing guard, under the earlier entry that it belongs to.
 * @param {{readers: Get<GuardFailuresRow>[]}} props
 */
export function GuardFailures({ readers }) {
  const entries = Map.groupBy(readers, (get) => get("entry_compile_key") ?? get("entry_compile_id") ?? "?");
  return [...entries].map(([key, failures]) => html`
    <div class="cdiag-entry" key=${key}>
      <h4>entry ${failures[0]("entry_compile_id") ?? "?"}: ${formatAmount(failures.length, "guard fails", "guards fail")}</h4>
      ${failures.slice(0, MOST).map((get) => html`<${GuardFailure} get=${get} />`)}
    </div>`);
}

/** @param {{get: Get<GuardFailuresRow>}} props */
function GuardFailure({ get }) {
  const count = get("fail_count") ?? 0;
  const words = joinKnown(count > 1 ? `failed ${formatTimes(count)}` : null, formatPlace(get("user_file"), get("user_line")));
  const kind = get("guard_kind");
  return html`
    <div class="cdiag-failure" data-event-id=${get("event_id")}>
      <div class="cdiag-failure-top">
        <${Change} get=${get} />
        ${get("is_first") && html`<${Term} text="first" hint=${explain("first")} />`}
        ${kind !== null && html`<${Term} text=${formatCode(kind)} hint=${explain(kind)} />`}
        <span class="cdiag-dim">${words}</span>
      </div>
      ${whenKnown(get("guard"), (text) => html`<code class="cdiag-guard">${longText(text)}</code>`)}
    </div>`;
}

/** @param {{text: string}} props torch's reason */
export function TorchReason({ text }) {
  return html`<${Words} heading="torch's message"><p>${longText(text)}</p><//>`;
}
