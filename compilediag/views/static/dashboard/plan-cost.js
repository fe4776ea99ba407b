// One cost of compile time without a recompile: what it is, what to do, and where the time went.
import { make, setProse, setSentences, setShown } from "../core/dom.js";
import { formatAmount } from "../core/format.js";
import { CodeBlock, Fold } from "./code-block.js";
/** @import { CompileCost } from "../core/page-types" */

export class CostView {
  constructor() {
    this.what = make("p", "cdiag-cost-what");
    this.code = new CodeBlock("copy the change that saves this");
    this.advice = make("p", "cdiag-dim");
    this.details = make("ul", "cdiag-reasons");
    this.fold = new Fold(this.details);
    this.node = make("li", "cdiag-cost", this.what, this.code.node, this.advice, this.fold.node);
  }

  /** @param {CompileCost} cost */
  update({ what, code, advice, details }) {
    setProse(this.what, what);
    setShown(this.code.node, Boolean(code));
    this.code.show(code ?? "");
    setProse(this.advice, advice);
    setShown(this.fold.node, details.length > 0);
    this.fold.setTitle(formatAmount(details.length, "detail"));
    setSentences(this.details, "li", details);
  }
}
