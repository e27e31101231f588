// What a plan achieves: the value of the objective of its problem, and in which direction metrics are better.

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
 * Say how far a value is from another one, and in which direction.
 * @param {number} value
 * @param {number} other
 * @param {boolean} more Whether more is better.
 */
export function difference(value, other, more) {
  if (value === other || Math.abs(value - other) <= SAME * Math.abs(other)) return "the same";
  const word = value > other === more ? "better" : "worse";
  return other ? `${percent(Math.abs((value - other) / other))} ${word}` : word;
}
