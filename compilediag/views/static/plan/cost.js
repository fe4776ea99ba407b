// Compile time that no recompile took: what took it, and what to do.
import { Prose } from "../core/blocks.js";
import { Code, Fold } from "../core/code.js";
import { formatAmount } from "../core/format.js";
import { html } from "../core/view.js";

/** @param {{cost: CompileCost}} props */
export function Cost({ cost: { what, code, advice, details } }) {
  return html`
    <p class="cdiag-cost-what"><${Prose} text=${`${what}.`} /></p>
    ${code && html`<${Code} code=${code} hint="copy the change that saves this" />`}
    ${advice && html`<p><${Prose} text=${advice} /></p>`}
    ${details.length > 0 && html`<${Fold} title=${formatAmount(details.length, "detail")}><${Sentences} texts=${details} /><//>`}`;
}

/** @param {{texts: string[]}} props */
export function Sentences({ texts }) {
  return html`<ul class="cdiag-sentences">${texts.map((text, i) => html`<li key=${`${i} ${text}`}><${Prose} text=${text} /></li>`)}</ul>`;
}
