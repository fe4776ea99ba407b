// What the entries get from their hosts.

/** anywidget's model. */
interface WidgetModel {
  get: (name: string) => any;
  on: (name: string, handler: (message: any) => void) => void;
  send: (message: object) => void;
  widget_manager?: unknown;
}

/** What the page that compares two sessions shows. */
interface DiffData {
  /** Of the two sessions. */
  names: string[];
  totals: string[];
  gaps: string[];
  panels: Panel[];
  timelines: PackedPatch[];
  /** Panel -> for each row, its compiles before and after. */
  evidence: Record<string, string[][][]>;
}

/** A row of a panel of that page. */
interface DiffChange {
  tab: Tab;
  row: Cells;
}

/** Where pages are drawn, and of what. */
interface PageHost {
  root: HTMLElement;
  store: Store;
  trail: Trail;
}
