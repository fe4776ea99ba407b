// The types of the details, which all files know.

/** Table -> the rows of a compile. */
type Members = Map<string, Cells[]>;

/** What the details show, and of which events. */
interface Detail {
  title: string;
  place: string;
  body: ComponentChild;
  events: number[];
}

interface DetailPaneProps {
  details: Details;
  target: Target;
  isHidden?: boolean;
}

interface ArtifactsProps {
  rows: Cells[];
  /** Of the compile. */
  title: string;
  details: Details;
}

interface ArtifactProps {
  /** Its name in the kernel. */
  id: number;
  name: string;
  /** Bytes. */
  size: number | null;
  /** Missing if the text is not in the page. */
  stored: StoredText | undefined;
}

/** One of the panes that show a graph before autograd, the graph after it, and the generated code. */
type Pane = "pre" | "post" | "code";

/** The lines of each pane. */
type PaneTexts = Record<Pane, string[]>;

/** Line -> the lines of all panes that belong to it. */
type PaneLinks = Map<number, Record<Pane, Set<number>>>;

/** Notes that lines of one pane belong to lines of another. */
type JoinLines = (pane: Pane, lines: number[], other: Pane, others: number[]) => void;

/** Of torch. */
interface NodeMapping {
  cppCodeToPost?: Record<string, string[]>;
  postToPre?: Record<string, string[]>;
}

/** The texts of a graph, and what belongs together in them. */
interface LinkedGraph {
  texts: PaneTexts;
  absent: Record<Pane, boolean>;
  links: Record<Pane, PaneLinks>;
  /** Line of the code -> its kernel. */
  codeKernels: Map<number, string>;
  /** Kernel -> its stacks. */
  stacks: Record<string, string[]>;
  isTraced: boolean;
}

/** The line that a reader points at. */
interface ChosenLine {
  pane: Pane;
  line: number;
  scrolls: boolean;
}
