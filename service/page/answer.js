// The answer of a job.

import { fill, h } from "./dom.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./follow.js").Job} Job */

/**
 * @param {Page} page
 * @param {HTMLElement} body
 * @param {Job} job
 * @param {number} candidate
 */
export function answered(page, body, job, candidate) {
  page.title(`Plan: ${job.answer.status}`);
  fill(body, h("p", null, candidate));
}
