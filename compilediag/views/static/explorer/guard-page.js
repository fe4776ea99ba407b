// The page of one guard: its values over time, the user's line that it comes from, what failed with it, what to change.
import { CodeLine, joinKnown, longText, PlainTable, Section, whenKnown, Words } from "../core/blocks.js";
import { formatAmount, formatCount, formatPlace, formatSeconds } from "../core/format.js";
import { html } from "../core/view.js";
import { Findings, GuardLink, Kinds, PageHead, Tag } from "./explorer-blocks.js";
import { ValuePlot } from "./value-plot.js";
/** @import { FunctionContext } from "./document-types" */

const NO_LINE = "No line of your code needs this guard: it belongs to an argument, or to torch itself.";

/** @param {{context: FunctionContext, at: number}} props */
export function GuardPage({ context, at }) {
  const { found, documents, store, start } = context;
  const guard = found.guards[at];
  const findings = documents.findingsOf(found, at);
  const facts = joinKnown(
    `failed in ${formatCount(guard.recompiles)} of ${formatAmount(found.recompiles, "recompile")}`,
    whenKnown(guard.lost_s, (seconds) => `${formatSeconds(seconds)} lost where it was the reason`),
  );
  return html`
    <${PageHead} context=${context} title=${html`<${Tag} guard=${at} /><code>${guard.name}</code>`}><${Kinds} kinds=${guard.kinds} /> · ${facts}<//>
    ${guard.verdict !== null && html`<p class="cdiag-verdict">${guard.verdict}</p>`}
    ${guard.points.length > 0 && html`<${Section} heading="Values over time"><${ValuePlot} found=${found} guard=${guard} start=${start} /><//>`}
    ${guard.with.length > 0 && html`
      <${Section} heading="Failed together with"><${Companions} context=${context} guard=${guard} /><//>`}
    ${findings.length > 0 && html`<${Section} heading="What to change"><${Findings} context=${context} findings=${findings} /><//>`}
    <${Section} heading="Your code"><${UserCode} guard=${guard} isRedacted=${store.meta.redacted === true} /><//>
    <${Section} heading="What torch checks">
      ${guard.texts.map((text) => html`<pre class="cdiag-code">${longText(text)}</pre>`)}
      ${guard.texts.length === 0 && html`<p class="cdiag-dim">not recorded</p>`}
      ${guard.hint && html`<p class="cdiag-dim">torch's hint: ${longText(guard.hint)}</p>`}
    <//>`;
}

/**
 * The guards that failed with this one.
 * @param {{context: FunctionContext, guard: GuardDocument}} props
 */
function Companions({ context, guard }) {
  const heads = ["guard", "kind", "recompiles"];
  return html`
    <${PlainTable} name="cdiag-guards" label="guards that fail together" heads=${heads} numeric=${new Set([2])}>
      ${guard.with.map(([at, times]) => html`
        <tr>
          <td><${GuardLink} context=${context} at=${at} /></td>
          <td><${Kinds} kinds=${context.found.guards[at].kinds} /></td>
          <td class="is-number">${formatCount(times)} of ${formatCount(guard.recompiles)}</td>
        </tr>`)}
    <//>`;
}

/**
 * The user's line with the lines around it where they are certain; else the line; else where it comes from.
 * @param {{guard: GuardDocument, isRedacted: boolean}} props
 */
function UserCode({ guard, isRedacted }) {
  const place = formatPlace(guard.user_file, guard.user_line);
  if (isRedacted) return html`<p class="cdiag-dim">${place ? `${place} (a redacted report has no code)` : "redacted"}</p>`;
  return html`
    ${place && html`<p class="cdiag-dim" title=${`${guard.user_file}:${guard.user_line}`}>${place}</p>`}
    ${guard.around ? html`<${CodeAround} around=${guard.around} line=${guard.user_line} />` : guard.user_code && html`<pre class="cdiag-code">${longText(guard.user_code)}</pre>`}
    ${!place && !guard.around && !guard.user_code && html`<p class="cdiag-dim">${NO_LINE}</p>`}
    ${guard.framework && html`<${Words} heading=${`comes from torch's own ${guard.framework}`}><${CodeLine} code=${guard.framework_code} place=${null} /><//>`}
    ${guard.stack && html`<${Words} heading="call stack"><${CodeLine} code=${guard.stack} place=${null} /><//>`}`;
}

/** @param {{around: [number: number, text: string][], line: number | null}} props */
function CodeAround({ around, line }) {
  const width = String(around.at(-1)?.[0] ?? "").length;
  return html`
    <pre class="cdiag-code cdiag-around">${around.map(([number, text]) => html`
      <span class=${number === line ? "cdiag-code-line is-it" : "cdiag-code-line"}><span class="cdiag-code-number">${
        `${number === line ? "▸" : " "}${String(number).padStart(width)}  `}</span>${`${text}\n`}</span>`)}</pre>`;
}
