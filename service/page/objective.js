// What a plan achieves: the value of the objective of its problem, and how far it is from what another one does.
//
// Answers hold metrics, so a named objective is looked up there. They hold neither the value of a weighted sum nor how far
// two plans are apart that a user picks, of two answers perhaps; the page has both from here alone.

import { FIELDS, percent } from "./format.js";

/** The metrics in words, as service/reports/proof.py has them. */
export const METRICS = {
  iteration_time_s: "Iteration time",
  tokens_per_second: "Tokens per second",
  peak_memory_bytes: "Peak memory",
  bottleneck_time_s: "Bottleneck time",
  microbatches_per_second: "Microbatches per second",
  num_devices: "Devices",
  inter_node_bytes: "Between nodes",
};

const SAME = 1e-9; // of what floating point cannot tell apart

/** @typedef {string | string[] | Record<string, number>} Objective */
/** @typedef {Record<string, number | null>} Metrics */

/**
 * Give the field of the metrics that an objective decides by first; null for a weighted sum.
 * @param {Objective} objective
 */
export function fieldOf(objective) {
  const first = Array.isArray(objective) ? objective[0] : objective;
  return typeof first === "string" ? FIELDS[/** @type {keyof typeof FIELDS} */ (first)] : null;
}

/**
 * Name an objective; of a list, its first metric.
 * @param {Objective} objective
 */
export function objectiveName(objective) {
  const field = fieldOf(objective);
  return field === null ? "Weighted sum" : METRICS[/** @type {keyof typeof METRICS} */ (field)];
}

/**
 * Give the value of the objective; null where it is none.
 * @param {Objective} objective
 * @param {Metrics} metrics
 * @returns {number | null}
 */
export function valueOf(objective, metrics) {
  const field = fieldOf(objective);
  if (field !== null) return metrics[field] ?? null;
  return Object.entries(objective).reduce((sum, [name, weight]) => sum + weight * (metrics[name] ?? 0), 0);
}

/**
 * Tell whether more of a metric is better.
 * @param {string | null} field
 */
export function moreIsBetter(field) {
  return field !== null && field.endsWith("_per_second");
}

/**
 * Give how far a value is from another one, as a part of that: 0 where they are the same, null where the other one is 0.
 * @param {number} value
 * @param {number} other
 */
function apart(value, other) {
  if (value === other || Math.abs(value - other) <= SAME * Math.abs(other)) return 0;
  return other ? Math.abs((value - other) / other) : null;
}

/**
 * Say how far a value is from another one, and in which direction.
 * @param {number} value
 * @param {number} other
 * @param {boolean} more Whether more is better.
 */
export function difference(value, other, more) {
  const far = apart(value, other);
  if (far === 0) return "the same";
  const word = value > other === more ? "better" : "worse";
  return far === null ? word : `${percent(far)} ${word}`;
}

/**
 * Give how far a value is from another one with its sign, for those who look for it first; empty where that says nothing.
 * @param {number} value
 * @param {number} other
 */
export function signed(value, other) {
  const far = apart(value, other);
  return far ? `${value > other ? "+" : "−"}${percent(far)}` : "";
}
