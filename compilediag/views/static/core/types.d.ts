// The types of the browser's own code that all files know, as they know those of what the kernel sends (page-types.d.ts).

/** The classes and types that nearly every file names. */
type Compiles = import("./compiles.js").Compiles;
type ComponentChild = import("../vendor/preact.js").ComponentChild;
type Recompiles = Compiles;
type CallStacks = import("./call-stacks.js").CallStacks;
type Card = import("../plan/plan-card.js").Card;
type Command = import("./menu.js").Command;
type CompileBar = import("../timeline/lanes.js").CompileBar;
type CompiledFunction = import("./compiles.js").CompiledFunction;
type Details = import("../details/detail-pane.js").Details;
type Filter = import("../tables/filter.js").Filter;
type Frame = import("../timeline/drawing.js").Frame;
type Hit = import("../timeline/model.js").Hit;
type HitPlace = import("../dashboard/search-box.js").HitPlace;
type KernelRequests = import("./kernel.js").KernelRequests;
type Lane = import("../timeline/lanes.js").Lane;
type Layout = import("../timeline/drawing.js").Layout;
type Mark = import("../timeline/lanes.js").Mark;
type NamedStack = import("./call-stacks.js").NamedStack;
type OwnTime = import("../timeline/words.js").OwnTime;
type Picked = import("../plan/plan-card.js").Picked;
type PlanActions = import("../plan/plan-card.js").PlanActions;
type Point = import("../timeline/input.js").Point;
type TimeRange = import("../timeline/ranges.js").TimeRange;
type Size = import("../dashboard/header.js").Size;
type StackFrame = import("./call-stacks.js").StackFrame;
type Stretch = import("../timeline/ranges.js").Stretch;
type Switch = import("../timeline/components.js").Switch;
type TabCount = import("../dashboard/tab-bar.js").TabCount;
type TableHandle = import("../tables/data-table.js").TableHandle;
type Target = import("../details/detail-pane.js").Target;
type TimeScale = import("../timeline/ranges.js").TimeScale;
type Timeline = import("../timeline/timeline.js").Timeline;
type TimelineLanes = import("../timeline/lanes.js").TimelineLanes;
type TimelineModel = import("../timeline/model.js").TimelineModel;
type TracedGraph = import("../details/provenance.js").TracedGraph;
type View = import("./page.js").View;
type Store = import("./store.js").Store;
type Table<Name extends string = string> = import("./store.js").Table<Name>;
type Trail = import("./place.js").Trail;

/** The columns of a table of a given name; those of a plug-in's panel are not known. */
type RowOf<Name extends string> = Name extends keyof RowTypes ? RowTypes[Name] : Record<string, any>;

/** Reads a column of one row. */
type Get<Row = Record<string, any>> = <Name extends keyof Row>(name: Name) => Row[Name];

/** Table -> what draws one of its rows in the details. `longest`: most s of a row in the list. */
type ItemViews = {
  [Name in keyof RowTypes]?: (props: {
    get: Get<RowTypes[Name]>;
    row: Cells;
    longest: number;
    details: Details;
    link?: ComponentChild;
  }) => ComponentChild;
};

/** What the details show of a row that sums up many events: readers of the row, and of each event in order of time. */
interface DerivedPanel<Name extends string, Part extends string> {
  title(get: Get<RowOf<Name>>): string;
  Body(props: { get: Get<RowOf<Name>>; readers: Get<RowOf<Part>>[]; details: Details }): ComponentChild;
}

/** Label of a column, and 1 for ascending or -1 for descending. */
type Sort = [label: string, direction: number];

/** Where the reader is. On the dashboard: at a finding, by its id, or a stretch of the timeline, in s since the start. */
interface Place {
  page?: "dashboard" | "plan" | "explorer" | "ranks" | "vllm";
  finding?: string;
  range?: [from: number, to: number];
  function?: number;
  guard?: string;
  tree?: number;
  other?: number;
  event?: number;
  events?: number[];
}
