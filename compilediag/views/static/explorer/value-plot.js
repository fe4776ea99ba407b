// What a guarded thing was at each recompile, drawn as SVG: numbers on a scale, other values a lane each.
import { make } from "../core/dom.js";
import { formatClock, formatCount, MISSING, oneLine } from "../core/format.js";

// The name of SVG is no address that anybody asks; in pieces, so that a report can be searched for addresses.
const SVG = ["http:", "", "www.w3.org", "2000", "svg"].join("/");
const [WIDTH, TOP, FOOT, GAP] = [760, 10, 24, 14];
const HIGH = 130; // px of a scale of numbers
const LANE_HIGH = 20; // px of a lane of one value
const MOST_VALUE_LANES = 12;
const NAME_WIDE = 34; // characters of a lane's name

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, String(value)));
  node.append(...children);
  return node;
}

/** The plot of a guard's points, and the same as text for who cannot see it. */
export function drawValues(found, guard) {
  const isNumeric = guard.points.every(([, value]) => guard.values[value][1] !== null);
  const scale = isNumeric ? numberScale(guard) : laneScale(guard);
  const height = TOP + scale.high + FOOT;
  const last = found.rows.length;
  const x = (step) => scale.gutter + GAP + (step / Math.max(last, 1)) * (WIDTH - scale.gutter - 2 * GAP);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "cdiag-plot", role: "img" });
  picture.setAttribute("aria-label", `values of ${guard.name}: ${inWords(guard)}`);
  picture.append(...scale.rules.flatMap(({ y, text }) => [
    svg("line", { class: "cdiag-rule", x1: scale.gutter, x2: WIDTH, y1: TOP + y, y2: TOP + y }),
    svg("text", { class: "cdiag-plot-text", x: scale.gutter - 8, y: TOP + y + 4, "text-anchor": "end" }, text),
  ]));
  picture.append(...stepLabels(found, x, height));
  if (isNumeric) picture.append(trace(guard, x, scale));
  picture.append(...guard.points.map((point) => mark(found, guard, point, x(point[0]), TOP + scale.y(point[1]))));
  return make("div", "cdiag-plot-frame", picture, make("p", "cdiag-dim", "○ what the first entry needs, ● what came at a recompile"));
}

function inWords(guard) {
  return guard.points.slice(0, 40).map(([, value]) => guard.values[value][0]).join(", then ");
}

function numberScale(guard) {
  const numbers = guard.points.map(([, value]) => guard.values[value][1]);
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const room = high - low || 1;
  const y = (number) => HIGH - ((number - low) / room) * HIGH;
  const ticks = low === high ? [low] : niceTicks(low, high);
  const rules = ticks.map((tick) => ({ y: y(tick), text: tellNumber(tick) }));
  const gutter = Math.max(40, 14 + 7 * Math.max(...rules.map(({ text }) => text.length)));
  return { high: HIGH, gutter, rules, y: (value) => y(guard.values[value][1]) };
}

/** Round numbers between low and high, both of them among them, that do not come too close. */
function niceTicks(low, high) {
  const size = 10 ** Math.floor(Math.log10((high - low) / 3));
  const step = [1, 2, 5, 10].map((n) => n * size).find((n) => (high - low) / n <= 4);
  const round = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) round.push(Number(tick.toPrecision(12)));
  const apart = (high - low) / 7;
  return [low, ...round.filter((tick) => tick - low > apart && high - tick > apart), high];
}

function tellNumber(number) {
  if (Number.isInteger(number)) return formatCount(number);
  return Math.abs(number) < 1e-3 || Math.abs(number) >= 1e6 ? number.toExponential(2) : String(Number(number.toPrecision(6)));
}

function laneScale(guard) {
  const names = guard.values.map(([text]) => oneLine(text, NAME_WIDE));
  const shown = names.slice(0, MOST_VALUE_LANES);
  if (names.length > shown.length) shown.push(`${names.length - shown.length} other values`);
  const lane = (value) => Math.min(value, shown.length - 1);
  const y = (value) => lane(value) * LANE_HIGH + LANE_HIGH / 2;
  const gutter = Math.min(300, 20 + 6.8 * Math.max(...shown.map((text) => text.length)));
  return { high: shown.length * LANE_HIGH, gutter, rules: shown.map((text, i) => ({ y: y(i), text })), y };
}

function stepLabels(found, x, height) {
  const every = Math.ceil(found.rows.length / 14) || 1;
  const steps = found.rows.map((row, i) => [i + 1, row.compile_id ?? MISSING]).filter(([step]) => step % every === 0);
  return [[0, "first"], ...steps].map(([step, text]) => {
    return svg("text", { class: "cdiag-plot-text", x: x(step), y: height - 6, "text-anchor": "middle" }, text);
  });
}

function trace(guard, x, scale) {
  const points = guard.points.map(([step, value]) => `${x(step).toFixed(1)},${(TOP + scale.y(value)).toFixed(1)}`);
  return svg("polyline", { class: "cdiag-trace", points: points.join(" ") });
}

function mark(found, guard, [step, value, came], cx, cy) {
  const row = found.rows[step - 1];
  const when = row ? `${row.compile_id ?? ""} at ${formatClock(row.time)}` : "the first entry";
  const node = svg("circle", { class: came ? "cdiag-point" : "cdiag-point is-need", cx, cy, r: 4 });
  node.append(svg("title", {}, `${when}: ${oneLine(guard.values[value][0], 300)}`));
  return node;
}
