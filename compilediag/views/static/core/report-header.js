// The head of a report: when and where the session was recorded, of what, and with which versions.
import { make } from "./dom.js";
import { formatClock, formatDate, formatSeconds } from "./format.js";
/** @import { Meta } from "./page-types" */

const ABSENT = "not recorded";

/**
 * @param {Partial<Meta>} meta
 * @returns {[string, string | null][]}
 */
function listFacts(meta) {
  return [
    ["Date", describeTime(meta)],
    ["Device", meta.device ?? null],
    ["Command", meta.redacted ? "left out: this report is redacted" : meta.command ?? null],
    ["Versions", describeVersions(meta)],
    ["System", meta.platform ?? null],
    ["Detail", [meta.detail, meta.pid ? `pid ${meta.pid}` : null].filter(Boolean).join(", ") || null],
  ];
}

/** @param {Partial<Meta>} meta */
function describeTime({ started_ms: start, stopped_ms: stop }) {
  if (!start) return null;
  return stop ? `${formatDate(start)} to ${formatClock(stop)} (${formatSeconds((stop - start) / 1000)})` : formatDate(start);
}

/** @param {Partial<Meta>} meta */
function describeVersions({ torch, python, compilediag }) {
  const known = [torch && `torch ${torch}`, python && `Python ${python}`, compilediag && `compilediag ${compilediag}`];
  return known.filter(Boolean).join(", ") || null;
}

/** @param {Partial<Meta>} meta */
export function makeReportHeader(meta) {
  const cells = listFacts(meta).map(([name, value]) => {
    const text = make("dd", value === null ? "is-absent" : "", value ?? ABSENT);
    return make("div", "", make("dt", "", name), text);
  });
  const title = meta.title ? `torch.compile report: ${meta.title}` : "torch.compile report";
  return make("header", "cdiag-report-head", make("h1", "", title), make("dl", "", ...cells));
}
