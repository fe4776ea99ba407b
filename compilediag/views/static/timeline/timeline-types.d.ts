// What the modules of the timeline work with; all files know these types.

/** Unix ms, or units of the axis. */
interface TimeRange {
  from: number;
  to: number;
}

/** A part of the axis: Unix ms, and units. */
interface Stretch {
  start: number;
  end: number;
  at: number;
  width: number;
  isFolded: boolean;
}

/** px in the timeline. */
interface Point {
  x: number;
  y: number;
}

interface CompileBar {
  /** Unix ms. */
  start: number;
  /** Unix ms; Infinity while it runs. */
  end: number;
  /** null while it runs. */
  row: Cells | null;
  flight: RunningCompile | null;
  key: string | null;
  /** Also for the backward of a recompile. */
  isRecompile: boolean;
  isBackward: boolean;
  isFailed: boolean;
  /** That it is in. */
  lane: Lane;
}

/** `kind`: its position in KINDS. */
interface PhaseBar {
  start: number;
  end: number;
  depth: number;
  kind: number;
  key: string | null;
}

/** A sign: something that happened in a compile; `saved` s. */
interface Mark {
  at: number;
  shape: string;
  label: string;
  key: string | null;
  saved: number | null;
}

interface Lane extends CompiledFunction {
  /** `rank 1` in a session of several ranks; null while a compile that runs has not said which. */
  inRank: string | null;
  /** In order of time. */
  bars: CompileBar[];
  /** The outer ones first. */
  phases: PhaseBar[];
  marks: Mark[];
  isFlying: boolean;
  /** Since when it runs without being compiled, because it reached a limit; Unix ms. */
  uncompiled: number | null;
  /** When the function was first compiled, Unix ms. */
  first: number;
  /** That its compiles took. */
  seconds: number;
}

/** Sizes in px, the same for all lanes. */
interface Layout {
  /** At the left, for the names of lanes; 0 if they are above the bars. */
  gutter: number;
  /** Height. */
  axis: number;
  /** Height. */
  lane: number;
  /** Height of the name above the bars. */
  above: number;
  /** Middle of the line that says what a compile is. */
  flag: number | null;
  /** Top of a bar in its lane. */
  bar: number;
  /** Height of a bar. */
  size: number;
}

/** What one painting shows. */
interface Frame {
  context: CanvasRenderingContext2D;
  /** px, as are `height` and `scroll`. */
  width: number;
  height: number;
  scroll: number;
  layout: Layout;
  scale: import("./ranges.js").TimeScale;
  /** Units at the left edge. */
  from: number;
  /** Units at the right edge. */
  to: number;
  /** Unix ms of both edges. */
  range: TimeRange;
  /** Unix ms. */
  now: number;
  palette: Record<string, string>;
  /** Keys of the compiles that are drawn in full color; null for all. */
  lit: Set<string | null> | null;
  /** Unix ms of 0 on the axis. */
  origin: number;
  /** Unix ms of the end of the warm-up. */
  warmup: number | null;
  /** Event id of a compile. */
  selected: number | null;
  /** The compile under the pointer, or that the arrow keys have reached. */
  current: CompileBar | null;
  compiles: Compiles;
  /** Of the session: the name of its script. */
  title: string | null;
  /** The places of cells lead to them. */
  hasLinks: boolean;
}

/** Of a frame, what is of the time. */
type TimelineView = Pick<Frame, "from" | "to" | "range" | "scale" | "origin" | "now" | "lit" | "warmup">;

/** Compiles that are too narrow to be drawn one by one, or a single one. */
interface BarGroup {
  bars: CompileBar[];
  /** px. */
  x: number;
  /** px. */
  end: number;
  isThin: boolean;
  isLit: boolean;
  /** They are recompiles. */
  isAgain: boolean;
}

/** Corners, in units of a mark's size. */
type Outline = [dx: number, dy: number][];

/** Draws something of a frame, at so many px from its top. */
type Paint<Thing> = (frame: Frame, thing: Thing, y: number) => void;

type DrawFrame = (frame: Frame) => void;

type FillRect = (context: CanvasRenderingContext2D, color: string, x: number, y: number, wide: number, high: number) => void;

/** `lines`: x and y of both ends. `width` and `dash` are px. */
type StrokeLines = (context: CanvasRenderingContext2D, color: string, lines: number[][], width?: number, dash?: number[]) => void;

/** Changes a range; units. `isStep`: Escape returns to the view before it. */
type ShowRange = (range: TimeRange, isStep: boolean) => void;

/** The nearest range to a wanted one, or to a bar, that lies in the bounds. */
type FitRange = (range: TimeRange, bounds: TimeRange) => TimeRange;

/** What is at a point. */
interface Hit {
  lane: Lane;
  bar: CompileBar | null;
  marks: Mark[];
  isName: boolean;
  isPlace?: boolean;
}

/** The time of one kind of phase. */
interface OwnTime {
  kind: string;
  seconds: number;
}

/** What a person can switch. */
type Switch = "isFolded" | "isOpen" | "hasTable" | "hasKeys";

type Timeline = import("./timeline.js").Timeline;
type TimelineLanes = import("./lanes.js").TimelineLanes;
type TimelineModel = import("./model.js").TimelineModel;
