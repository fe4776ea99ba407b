// The types of the browser's own code that all files know, as they know those of what the kernel sends (page-types.d.ts).

/** The classes that nearly every file names. */
type CallStacks = import("./call-stacks.js").CallStacks;
type Compiles = import("./compiles.js").Compiles;
type ComponentChild = import("../vendor/preact.js").ComponentChild;
type Details = import("../details/detail-pane.js").Details;
type Filter = import("../tables/filter.js").Filter;
type KernelRequests = import("./kernel.js").KernelRequests;
type Store = import("./store.js").Store;
type Table<Name extends string = string> = import("./store.js").Table<Name>;
type Trail = import("./place.js").Trail;

type Size = import("../dashboard/header.js").Size;

/** Draws what its properties say. */
type Component<Props> = (props: Props) => ComponentChild;
/** What a page shows. */
type View = Component<{ store: Store; trail: Trail; place: Place }>;

/** A number, or a missing one. */
type Numeric = number | null | undefined;
/** Draws something; it is called, not used as a component. */
type Draw<Thing> = (thing: Thing) => ComponentChild;
/** Whether something is what the function is called. */
type Is<Thing> = (thing: Thing) => boolean;
/** Writes something as a text. */
type Write<Thing> = (thing: Thing) => string;

/** `type` is that of the file's content. */
type SaveText = (name: string, type: string, text: string) => void;

type Deadline = { timeRemaining: () => number };

/** What runs when a row is chosen. */
type OpenRow = (table: Table<any>, row: Cells) => void;

/** `kind` names the color. The bar is as long as `value` is of `total`. */
interface BarProps {
  label: string;
  value: number | null;
  total: number | null;
  kind: string;
  text: string;
  depth?: number;
  hint?: string | null;
  tag?: ComponentChild;
  more?: string;
  rank?: number;
}

interface PlainTableProps {
  /** What it shows, to be read aloud. */
  label: string;
  name: string;
  heads: ComponentChild[];
  /** Columns that are aligned to the right. */
  numeric?: Set<number>;
  foot?: ComponentChild;
  children: ComponentChild;
}

interface SearchFieldProps {
  label: string;
  placeholder?: string;
  value?: string;
  onInput: (text: string) => void;
  onKeyDown?: (event: KeyboardEvent) => void;
}

interface FoldProps {
  title: ComponentChild;
  /** Counts until the reader has chosen. */
  isOpen?: boolean;
  name?: string;
  children: ComponentChild;
}

/** A function that is compiled. */
interface CompiledFunction {
  name: string;
  /** The name in the program. */
  own: string;
  /** Where Dynamo continued it: "after the graph break at line 21". */
  after: string | null;
  file: string | null;
  line: number | null;
  /** Its key. */
  lane: string;
  /** Number of the notebook's cell that it begins in. */
  cell: number | null;
}

/** A frame of a call stack. */
interface StackFrame {
  key: string;
  caller: string | null;
  file: string | null;
  line: number | null;
  name: string | null;
  code: string | null;
}

interface NamedStack {
  label: string;
  frames: StackFrame[];
}

/** A command of a menu: `key` names it, `note` is shown after it. */
interface Command {
  key: string;
  label: string;
  note?: string;
  run: () => void;
}

/** A finding or step that is selected: its name, and event ids. */
interface Picked {
  label: string;
  evidence: number[];
}

/** What details are about: a compile by its key, or one row without a compile. */
interface Target {
  key: string | null;
  table: Table<any>;
  row: Cells | null;
}

interface DetailActions {
  close: () => void;
  /** Gives the focus to the row that the details are of. */
  focusRow: () => void;
  /** Shows another row. */
  open?: (table: Table<any>, row: Cells) => void;
  openCompile?: (key: string) => void;
  explore?: (place: Place) => void;
  /** Shows graphs and code side by side. */
  showProvenance?: (title: string, graphs: TracedGraph[]) => void;
}

interface ArtifactName {
  id: number;
  name: string | null;
}

/** A graph whose lines can be linked to those of the code. */
interface TracedGraph {
  mapping: ArtifactName;
  traces: ArtifactName | null;
  pre: ArtifactName | null;
  post: ArtifactName | null;
  code: ArtifactName;
}

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
