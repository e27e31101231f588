// The plans of an answer that can be compared: its candidates, and what simple rules would have given; or those of the
// points of a front.

import { amount, counted, metric } from "./format.js";
import { valueOf } from "./objective.js";

/** @typedef {any} Answer An answer or a front. */

const POINT = "point";

/** The simple rules, as service/reports/report.py has them. */
export const RULES = { uniform: "with equal numbers of layers", balanced_time: "with balanced stage times" };

/**
 * @typedef {object} Choice
 * @property {string} id The number of a candidate, the name of a rule, or `point` with the number of a point.
 * @property {string} title
 * @property {string} text
 */

/**
 * @typedef {object} Side
 * @property {string} title
 * @property {import("./objective.js").Metrics} metrics
 * @property {{ layers: string[], devices: string[] | null, recompute: string[] | null, stage: any }[]} stages
 */

/**
 * Give the plans of an answer, or of the points of a front.
 * @param {Answer} answer
 * @returns {any[]}
 */
export function plansOf(answer) {
  return answer.points ? answer.points.map((/** @type {any} */ { plan }) => plan) : answer.candidates;
}

/**
 * Give the plan of a point as a side of a comparison.
 * @param {number} number From 1.
 */
export function pointSide(number) {
  return `${POINT}${number}`;
}

/**
 * Tell whether a side is a point, so that its job is one for a front.
 * @param {string} id
 */
export function isPoint(id) {
  return id.startsWith(POINT);
}

/**
 * Give what a side is compared with where nothing else is chosen: the first plan of its job, or the second.
 * @param {string} id
 */
export function otherSide(id) {
  const [first, second] = isPoint(id) ? [pointSide(1), pointSide(2)] : ["1", "2"];
  return id === first ? second : first;
}

/**
 * List what can be compared, the candidates first.
 * @param {Answer} answer
 * @returns {Choice[]}
 */
export function choicesOf(answer) {
  if (answer.points) return pointsOf(answer);
  const { objective } = answer;
  const plans = answer.candidates.map((/** @type {any} */ plan, /** @type {number} */ index) => {
    const sizes = plan.stages.map((/** @type {any} */ stage) => stage.layers.length);
    return choice(String(index + 1), `Plan ${index + 1}`, amount(objective, valueOf(objective, plan.metrics)), sizes, plan.schedule.kind);
  });
  const rules = Object.entries(answer.baselines).map(([name, rule]) => {
    const fits = rule.fits ? "" : "does not fit";
    return choice(name, ruleName(name), amount(objective, valueOf(objective, rule.metrics)), rule.stage_sizes, fits);
  });
  return [...plans, ...rules];
}

/**
 * @param {Answer} front
 * @returns {Choice[]}
 */
function pointsOf(front) {
  return front.points.map((/** @type {any} */ { values, plan }, /** @type {number} */ index) => {
    const value = values.map((/** @type {number} */ each, /** @type {number} */ which) => metric(front.metrics[which], each)).join(", ");
    const sizes = plan.stages.map((/** @type {any} */ stage) => stage.layers.length);
    return choice(pointSide(index + 1), `Point ${index + 1}`, value, sizes, plan.schedule.kind);
  });
}

/**
 * @param {string} id
 * @param {string} title
 * @param {string} value
 * @param {number[]} sizes
 * @param {string} more
 * @returns {Choice}
 */
function choice(id, title, value, sizes, more) {
  const layers = sizes.length > 16 ? counted(sizes.length, "stage") : `layers ${sizes.join(" ")}`;
  return { id, title, text: [`${title}: ${value}`, layers, more].filter(Boolean).join(", ") };
}

/**
 * Call what a simple rule made by its rule.
 * @param {string} name
 */
export function ruleName(name) {
  return `Plan ${RULES[/** @type {keyof typeof RULES} */ (name)] ?? name}`;
}

/**
 * Give a plan of an answer; null where there is no such one.
 * @param {Answer} answer With its problem.
 * @param {string} id
 * @returns {Side | null}
 */
export function sideOf(answer, id) {
  const number = Number(isPoint(id) ? id.slice(POINT.length) : id);
  const plan = plansOf(answer)[number - 1];
  if (plan) {
    const stages = plan.stages.map((/** @type {any} */ stage) => ({ ...stage, stage }));
    return { title: `${isPoint(id) ? "Point" : "Plan"} ${number}`, metrics: plan.metrics, stages };
  }
  const rule = Object.entries(answer.baselines ?? {}).find(([name]) => name === id)?.[1];
  if (!rule) return null;
  const names = answer.problem.model.layers.map((/** @type {any} */ layer) => layer.name);
  let at = 0;
  const stages = rule.stage_sizes.map((/** @type {number} */ size) => {
    const layers = names.slice(at, (at += size));
    return { layers, devices: null, recompute: null, stage: null };
  });
  return { title: ruleName(id), metrics: rule.metrics, stages };
}
