// The plan's card alone: what `%compilewatch plan` shows.
import { make } from "../core/dom.js";
import { Hints } from "../core/hints.js";
import { followTheme } from "../core/theme.js";
import { PlanCard } from "./plan-card.js";
/** @import { Picked } from "./plan-card.js" */

export class PlanPage {
  /**
   * @param {HTMLElement} root
   * @param {Store} store
   * @param {(place: Place) => void} onExplore leads to the explorer
   */
  constructor(root, store, onExplore) {
    this.root = root;
    /** @param {Picked} picked */
    const pick = ({ evidence }) => onExplore({ events: evidence }); // there is no table here
    this.plan = new PlanCard(store, { pick, explore: onExplore });
    root.classList.add("cdiag", "cdiag-plan-page");
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", "plan for torch.compile");
    root.tabIndex = -1;
    root.dataset.size = "compact";
    root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's command mode would take the keys
    root.replaceChildren(make("div", "cdiag-held", this.plan.node));
    this.hints = new Hints(root);
    this.unfollow = followTheme(root, () => {});
    this.listener = () => this.paint();
    this.paint();
  }

  paint() {
    this.plan.paint();
  }

  destroy() {
    this.hints.destroy();
    this.unfollow();
  }
}
