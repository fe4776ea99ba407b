// The timeline on paper: all lanes and all of the time, in pieces that a page can hold.
import { make } from "../core/dom.js";
import { drawTimeline, makeLayout, sizeCanvas } from "./drawing.js";
/** @import { Frame } from "./drawing.js" */
/** @import { Lane } from "./lanes.js" */

const WIDTH = 820; // px
const PIECE = 16; // lanes
const MANY = 100; // lanes: beyond, the pieces have a lower resolution, because memory is limited

/**
 * Draws all lanes; the view of `frame` gives the time, its sizes are not used.
 * @param {Omit<Frame, "context" | "width" | "height" | "layout" | "gutter" | "scroll">} frame
 * @param {Lane[]} lanes
 */
export function drawForPrint(frame, lanes) {
  const ratio = lanes.length > MANY ? 1 : 2;
  const layout = makeLayout(WIDTH, lanes.some((lane) => lane.bars.some((bar) => bar.isRecompile)), false);
  const pieces = [];
  for (let first = 0; first < lanes.length; first += PIECE) {
    const some = lanes.slice(first, first + PIECE);
    const height = layout.axis + some.length * layout.lane;
    const canvas = make("canvas", "");
    const context = sizeCanvas(canvas, WIDTH, height, ratio);
    canvas.removeAttribute("style"); // as wide as the page of paper
    if (!context) continue;
    drawTimeline({ ...frame, context, width: WIDTH, height, layout, gutter: layout.gutter, scroll: 0 }, some);
    context.globalCompositeOperation = "destination-over"; // under what is drawn
    context.fillStyle = frame.palette.surface;
    context.fillRect(0, 0, WIDTH, height);
    pieces.push(canvas);
  }
  return pieces;
}
