// The page of one guard: its values over time, the user's line that it comes from, what failed with it, what to change.
import { CodeLine, joinKnown, longText, PlainTable, Section, whenKnown, Words } from "../core/blocks.js";
import {
  formatAmount, formatCount, formatNumber, formatPlace, formatSeconds, MISSING, oneLine,
} from "../core/format.js";
import { html } from "../core/view.js";
import { Findings, GuardLink, Kinds, PageHead, Tag } from "./explorer-blocks.js";

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
      <${Section} heading="Failed together with">
        <${PlainTable} name="cdiag-guards" label="guards that fail together" heads=${["guard", "kind", "recompiles"]} numeric=${new Set([2])}>
          ${guard.with.map(([other, times]) => html`
            <tr>
              <td><${GuardLink} context=${context} at=${other} /></td>
              <td><${Kinds} kinds=${found.guards[other].kinds} /></td>
              <td class="is-number">${formatCount(times)} of ${formatCount(guard.recompiles)}</td>
            </tr>`)}
        <//>
      <//>`}
    ${findings.length > 0 && html`<${Section} heading="What to change"><${Findings} context=${context} findings=${findings} /><//>`}
    <${Section} heading="Your code">${drawUserCode(guard, store.meta.redacted === true)}<//>
    <${Section} heading="What torch checks">
      ${guard.texts.map((text) => html`<pre class="cdiag-code">${longText(text)}</pre>`)}
      ${guard.texts.length === 0 && html`<p class="cdiag-dim">not recorded</p>`}
      ${guard.hint && html`<p class="cdiag-dim">torch's hint: ${longText(guard.hint)}</p>`}
    <//>`;
}

/**
 * The user's line with the lines around it where they are certain; else the line; else where it comes from.
 * @type {(guard: GuardDocument, isRedacted: boolean) => ComponentChild}
 */
function drawUserCode(guard, isRedacted) {
  const { around, user_file: file, user_line: line, user_code: code, framework } = guard;
  const place = formatPlace(file, line);
  if (isRedacted) return html`<p class="cdiag-dim">${place ? `${place} (a redacted report has no code)` : "redacted"}</p>`;
  const width = String(around?.at(-1)?.[0] ?? "").length;
  return html`
    ${place && html`<p class="cdiag-dim" title=${`${file}:${line}`}>${place}</p>`}
    ${around ? html`<pre class="cdiag-code cdiag-around">${around.map(([number, text]) => html`
      <span class=${number === line ? "cdiag-code-line is-it" : "cdiag-code-line"}><span class="cdiag-code-number">${
        `${number === line ? "▸" : " "}${String(number).padStart(width)}  `}</span>${`${text}\n`}</span>`)}</pre>`
      : code && html`<pre class="cdiag-code">${longText(code)}</pre>`}
    ${!place && !around && !code && html`<p class="cdiag-dim">${NO_LINE}</p>`}
    ${framework && html`<${Words} heading=${`comes from torch's own ${framework}`}><${CodeLine} code=${guard.framework_code} place=${null} /><//>`}
    ${guard.stack && html`<${Words} heading="call stack"><${CodeLine} code=${guard.stack} place=${null} /><//>`}`;
}

const [WIDTH, TOP, FOOT, GAP] = [760, 10, 24, 14];
const HIGH = 130; // px of a scale of numbers
const LANE_HIGH = 20; // px of a lane of one value
const MOST_VALUE_LANES = 12;
const NAME_WIDE = 34; // characters of a lane's name
const LEGEND = "○ what the first entry expects, ● the value at a recompile";

/** @type {Component<{found: FunctionDocument, guard: GuardDocument, start: number}>} Also as text, for screen readers; Unix ms. */
function ValuePlot({ found, guard, start }) {
  const numbers = guard.values.map(([, number]) => number).filter((number) => number !== null);
  const isNumeric = numbers.length === guard.values.length;
  const scale = isNumeric ? makeNumberScale(numbers) : makeLaneScale(guard);
  const height = TOP + scale.high + FOOT;
  const last = Math.max(found.rows.length, 1);
  const every = Math.ceil(last / 14); // recompiles that one label stands for
  const steps = [{ step: 0, text: "first" }, ...found.rows.map((row, i) => ({ step: i + 1, text: row.compile_id ?? MISSING }))];
  /** @param {number} step @param {number} value */
  const describePoint = (step, value) => {
    const row = found.rows[step - 1];
    const when = row ? `${row.compile_id ?? ""} at ${formatSeconds((row.time - start) / 1e3)}` : "the first entry";
    return `${when}: ${oneLine(guard.values[value][0], 300)}`;
  };
  /** @param {number} step */
  const x = (step) => scale.gutter + GAP + (step / last) * (WIDTH - scale.gutter - 2 * GAP);
  const spoken = guard.points.slice(0, 40).map(([, value]) => guard.values[value][0]).join(", then ");
  const trace = guard.points.map(([step, value]) => `${x(step)},${TOP + scale.y(value)}`).join(" ");
  return html`
    <div class="cdiag-plot-frame">
      <svg viewBox=${`0 0 ${WIDTH} ${height}`} class="cdiag-plot" role="img" aria-label=${`values of ${guard.name}: ${spoken}`}>
        ${scale.rules.map(({ y, text }) => html`
          <line class="cdiag-rule" x1=${scale.gutter} x2=${WIDTH} y1=${TOP + y} y2=${TOP + y} />
          <text class="cdiag-plot-text" x=${scale.gutter - 8} y=${TOP + y + 4} text-anchor="end">${text}</text>`)}
        ${steps.filter(({ step }) => step % every === 0).map(({ step, text }) => html`
          <text class="cdiag-plot-text" x=${x(step)} y=${height - 6} text-anchor="middle">${text}</text>`)}
        ${isNumeric && html`<polyline class="cdiag-trace" points=${trace} />`}
        ${guard.points.map(([step, value, came]) => html`
          <circle class=${came ? "cdiag-point" : "cdiag-point is-need"} cx=${x(step)} cy=${TOP + scale.y(value)} r="4">
            <title>${describePoint(step, value)}</title>
          </circle>`)}
      </svg>
      <p class="cdiag-dim">${LEGEND}</p>
    </div>`;
}

/** @type {(numbers: number[]) => ValueScale} */
function makeNumberScale(numbers) {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  /** @param {number} number */
  const y = (number) => HIGH - ((number - low) / (high - low || 1)) * HIGH;
  // Round numbers between low and high, with both of them, that are not too close to each other.
  const size = 10 ** Math.floor(Math.log10((high - low) / 3));
  const step = [1, 2, 5].map((n) => n * size).find((n) => (high - low) / n <= 4) ?? 10 * size;
  const apart = (high - low) / 7;
  const ticks = low === high ? [low] : [low, high];
  for (let tick = Math.ceil(low / step) * step; low < high && tick <= high; tick += step) {
    if (tick - low > apart && high - tick > apart) ticks.splice(-1, 0, Number(tick.toPrecision(12)));
  }
  const rules = ticks.map((tick) => ({ y: y(tick), text: formatNumber(tick) }));
  const gutter = Math.max(40, 14 + 7 * Math.max(...rules.map(({ text }) => text.length)));
  return { high: HIGH, gutter, rules, y: (value) => y(numbers[value]) };
}

/** @type {(guard: GuardDocument) => ValueScale} with a lane for each of the first values */
function makeLaneScale(guard) {
  const names = guard.values.map(([text]) => oneLine(text, NAME_WIDE));
  const shown = names.slice(0, MOST_VALUE_LANES);
  if (names.length > shown.length) shown.push(formatAmount(names.length - shown.length, "other value"));
  /** @param {number} value */
  const y = (value) => Math.min(value, shown.length - 1) * LANE_HIGH + LANE_HIGH / 2;
  const gutter = Math.min(300, 20 + 6.8 * Math.max(...shown.map((text) => text.length)));
  return { high: shown.length * LANE_HIGH, gutter, rules: shown.map((text, i) => ({ y: y(i), text })), y };
}
