// The figures of an answer as tables: of all its plans, and those that the pictures of one plan show.

import { h, table } from "./dom.js";
import { metric, percent, ranges, seconds, sized } from "./format.js";
import { METRICS, fieldOf } from "./objective.js";
import { ruleName } from "./sides.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {any} Answer */

const MEMORY = {
  weights_bytes: "Weights",
  gradients_bytes: "Gradients",
  optimizer_bytes: "Optimizer",
  buffers_bytes: "Buffers",
  activations_bytes: "Activations",
  communication_bytes: "Communication",
  workspace_bytes: "Workspace",
  reserve_bytes: "Reserve",
  total_bytes: "Total",
  capacity_bytes: "Device has",
};

/**
 * The figures of each picture of a plan, by the picture's name.
 * @type {Record<string, (answer: Answer, number: number) => Child>}
 */
export const FIGURES = { layers, times, memory, placement, timeline: times, comparison };

/**
 * List the plans, each with a link to it.
 * @param {import("./follow.js").Job} job
 * @param {number} shown The number of the one that is shown.
 */
export function candidateTable(job, shown) {
  /** @type {Answer} */
  const answer = job.answer;
  const columns = [...new Set(["iteration_time_s", "peak_memory_bytes", fieldOf(answer.objective) ?? "iteration_time_s"])];
  const rows = answer.candidates.map((/** @type {any} */ plan, /** @type {number} */ index) => [
    h("a", { href: `#/plans/${job.id}/${index + 1}`, "aria-current": index + 1 === shown ? "true" : null }, `Plan ${index + 1}`),
    ...columns.map((field) => (plan.metrics[field] === null ? "" : metric(field, plan.metrics[field]))),
    plan.schedule.kind,
    plan.stages.map((/** @type {any} */ stage) => stage.layers.length).join(" "),
  ]);
  const headings = columns.map((field) => METRICS[/** @type {keyof typeof METRICS} */ (field)]);
  return table("Best first", ["Plan", ...headings, "Schedule", "Layers per stage"], rows);
}

/**
 * List the points of a front, each with a link to its plan.
 * @param {string} job
 * @param {any} front
 */
export function pointTable(job, front) {
  const [one, other] = front.metrics;
  const names = /** @type {Record<string, string>} */ (METRICS);
  const rows = front.points.map((/** @type {any} */ { values, bounds, plan }, /** @type {number} */ index) => [
    h("a", { href: `#/frontiers/${job}/${index + 1}` }, `Point ${index + 1}`),
    metric(one, values[0]),
    bounds[0] === null ? "" : metric(one, bounds[0]),
    metric(other, values[1]),
    bounds[1] === null ? "" : metric(other, bounds[1]),
    plan.schedule.kind,
    plan.stages.map((/** @type {any} */ stage) => stage.layers.length).join(" "),
  ]);
  const headings = ["Point", names[one] ?? one, "no better than", names[other] ?? other, "no better than", "Schedule", "Layers per stage"];
  return table("Points of the front", headings, rows);
}

/**
 * @param {Answer} answer
 * @param {number} number
 */
function layers(answer, number) {
  const rows = stagesOf(answer, number).map((stage) => [
    `Stage ${stage.index}`,
    String(stage.layers.length),
    stage.layers.length > 1 ? `${stage.layers[0]} … ${stage.layers[stage.layers.length - 1]}` : stage.layers[0],
    stage.recompute.join(", "),
  ]);
  return withoutEmpty("Layers", ["Stage", "Count", "Layers", "Recomputed"], rows);
}

/**
 * @param {Answer} answer
 * @param {number} number
 */
function times(answer, number) {
  const rows = stagesOf(answer, number).map((stage) => [
    `Stage ${stage.index}`,
    seconds(stage.forward_s),
    seconds(stage.backward_s),
    stage.weight_gradient_s ? seconds(stage.weight_gradient_s) : "",
    ranges(stage.devices),
  ]);
  return withoutEmpty("For one microbatch", ["Stage", "Forward", "Backward", "of it weight gradient", "Devices"], rows);
}

/**
 * @param {Answer} answer
 * @param {number} number
 */
function memory(answer, number) {
  const rows = stagesOf(answer, number).map((stage) => [
    `Stage ${stage.index} on ${ranges(stage.devices)}`,
    ...Object.keys(MEMORY).map((field) => sized(stage.memory[field])),
  ]);
  return table("Of each stage on each of its devices", ["Stage", ...Object.values(MEMORY)], rows);
}

/**
 * @param {Answer} answer
 * @param {number} number
 */
function placement(answer, number) {
  const rows = answer.candidates[number - 1].boundaries.map((/** @type {any} */ each) => [
    `Stage ${each.from_stage} to ${each.to_stage}`,
    sized(each.forward_bytes),
    seconds(each.transfer_s),
    sized(each.backward_bytes),
    seconds(each.backward_transfer_s),
    each.path.join(", ") || "the same devices",
  ]);
  return table("Boundaries, for one microbatch", ["Boundary", "Forward", "takes", "Backward", "takes", "Path"], rows);
}

/** @param {Answer} answer */
function comparison(answer) {
  const plans = answer.candidates.map((/** @type {any} */ plan, /** @type {number} */ index) => [`Plan ${index + 1}`, plan]);
  const rules = Object.entries(answer.baselines).map(([name, rule]) => [ruleName(name), rule]);
  const rows = [...plans, ...rules].map(([name, { metrics }]) => [
    name,
    seconds(metrics.iteration_time_s),
    sized(metrics.peak_memory_bytes),
    metrics.bubble_fraction === null ? "" : percent(metrics.bubble_fraction),
  ]);
  return table("Plans and simple rules", ["Plan", "Iteration time", "Peak memory", "Bubble"], rows);
}

/**
 * Make a table without the columns that say nothing here.
 * @param {string} caption
 * @param {string[]} headings
 * @param {string[][]} rows
 */
function withoutEmpty(caption, headings, rows) {
  const told = headings.map((_, column) => rows.some((cells) => cells[column]));
  return table(caption, headings.filter((_, column) => told[column]), rows.map((cells) => cells.filter((_, column) => told[column])));
}

/**
 * @param {Answer} answer
 * @param {number} number
 * @returns {any[]}
 */
function stagesOf(answer, number) {
  return answer.candidates[number - 1].stages;
}
