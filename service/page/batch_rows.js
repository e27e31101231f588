// The results of a batch as rows of a table.

import { metric, readable, significant } from "./format.js";
import { fieldOf, valueOf } from "./objective.js";

/**
 * @typedef {object} Row
 * @property {number} index
 * @property {string} name
 * @property {string} job
 * @property {string} status That of the answer; failed or cancelled where there is none.
 * @property {string | null} field The metric that the objective decides by; null for a weighted sum.
 * @property {number | null} objective
 * @property {number | null} bound
 * @property {number | null} gap
 * @property {number | null} seconds
 * @property {string} reason Why there is no plan, in the words of the service.
 * @property {string} text What a filter looks at.
 */

/**
 * Make the row of a result, as service/replies.py has it.
 * @param {any} result
 * @returns {Row}
 */
export function rowOf(result) {
  const { answer, failure } = result;
  const name = result.name ?? `problem ${result.index + 1}`;
  const status = answer ? answer.status : result.status;
  const best = answer?.candidates[0];
  const reason = failure ? [`${failure.title}: ${failure.detail}`, ...failure.errors.map(placed)].join("; ") : why(answer);
  return {
    index: result.index,
    name,
    job: result.job,
    status,
    field: answer ? fieldOf(answer.objective) : null,
    objective: best ? valueOf(answer.objective, best.metrics) : null,
    bound: answer?.best_bound ?? null,
    gap: answer?.relative_gap ?? null,
    seconds: answer?.solver?.wall_s ?? null,
    reason,
    text: `${name} ${status.replace("_", " ")} ${readable(reason)}`,
  };
}

/** @param {any} answer */
function why(answer) {
  if (answer?.status === "no_solution") return "the time ran out before a plan was found";
  const found = answer?.infeasibility;
  return found ? [found.message, ...found.findings.map((/** @type {any} */ each) => each.message)].join("; ") : "";
}

/** @param {import("./api.js").Place} place */
function placed(place) {
  return place.pointer ? `${place.pointer}: ${place.detail}` : place.detail;
}

/**
 * Write a value of a row's objective.
 * @param {Row} row
 * @param {number | null} value
 */
export function amountOf(row, value) {
  if (value === null) return "";
  return row.field === null ? significant(value) : metric(row.field, value);
}

export const HEADINGS = ["index", "name", "status", "objective", "metric", "bound", "gap", "seconds", "reason", "job"];

/**
 * Give the cells of a row for a file, in the units of the answer.
 * @param {Row} row
 * @returns {import("./csv.js").Value[]}
 */
export function cellsOf(row) {
  const metricName = row.objective === null ? null : row.field ?? "weighted sum";
  return [row.index, row.name, row.status, row.objective, metricName, row.bound, row.gap, row.seconds, row.reason, row.job];
}
