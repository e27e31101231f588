// The plans of an answer that can be compared: its candidates, and what simple rules would have given.

import { amount, counted } from "./format.js";
import { valueOf } from "./objective.js";

/** @typedef {any} Answer */

/** The simple rules, as service/reports/report.py has them. */
export const RULES = { uniform: "with equal numbers of layers", balanced_time: "with balanced stage times" };

/**
 * @typedef {object} Choice
 * @property {string} id The number of a candidate, or the name of a rule.
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
 * List what can be compared, the candidates first.
 * @param {Answer} answer
 * @returns {Choice[]}
 */
export function choicesOf(answer) {
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
  const plan = answer.candidates[Number(id) - 1];
  if (plan) {
    const stages = plan.stages.map((/** @type {any} */ stage) => ({ ...stage, stage }));
    return { title: `Plan ${Number(id)}`, metrics: plan.metrics, stages };
  }
  const rule = Object.entries(answer.baselines).find(([name]) => name === id)?.[1];
  if (!rule) return null;
  const names = answer.problem.model.layers.map((/** @type {any} */ layer) => layer.name);
  let at = 0;
  const stages = rule.stage_sizes.map((/** @type {number} */ size) => {
    const layers = names.slice(at, (at += size));
    return { layers, devices: null, recompute: null, stage: null };
  });
  return { title: ruleName(id), metrics: rule.metrics, stages };
}
