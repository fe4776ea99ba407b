// The types of the plan's card, which all files know.

interface PlanActions {
  pick: (picked: Picked) => void;
  explore: (place: Place) => void;
  /** Marks the compiles of these events for a moment. */
  mark?: (evidence: number[] | null) => void;
  /** Shows the stretch of the timeline that has these compiles. */
  showStretch?: (evidence: number[]) => void;
}

interface PlanCardProps {
  store: Store;
  actions: PlanActions;
  picked?: string | null;
  isPrinting?: boolean;
  /** Below the headline; they may depend on the findings. */
  children?: ComponentChild;
}

/** What the parts of the card share. */
interface Card {
  store: Store;
  actions: PlanActions;
  plan: Plan;
  isLive: boolean;
  /** The costs that have lines of their own. */
  costs: CompileCost[];
  /** There is neither a step nor such a cost. */
  isEmpty: boolean;
  /** Label of what is selected. */
  picked: string | null;
  /** On paper, all is open. */
  isPrinting: boolean;
  node: { current: HTMLElement | null };
  /** Looks again what the notebook has, because a reader may have edited a cell. */
  look: () => void;
}

/** A step or a cost, one line that opens. */
interface PlanRowProps {
  card: Card;
  rule: string;
  number: number | null;
  title: ComponentChild;
  place: ComponentChild;
  saves: string;
  seconds: number;
  isLater?: boolean;
  onPoint?: (isInside: boolean) => void;
  /** What it shows when it is open. */
  children: ComponentChild;
}

/** A part of the compile time. */
interface TimePart {
  kind: string;
  label: string;
  seconds: number;
  step?: number;
}
