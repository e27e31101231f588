// The Pareto front of two metrics: live while it is sought, then a picture and a table whose points lead to their plans.

import { choices, json } from "./api.js";
import { further, notes, showWords } from "./answer.js";
import { Picture } from "./chart.js";
import { fill, h, keepFocus } from "./dom.js";
import { exportsOf } from "./exports.js";
import { follow } from "./follow.js";
import { metric, percent } from "./format.js";
import { METRICS } from "./objective.js";
import { remember } from "./remembered.js";
import { pointSide } from "./sides.js";
import { FIGURES, pointTable } from "./tables.js";
import { Going, failed } from "./view_plan.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./follow.js").Job} Job */
/** @typedef {any} Front */

const CHARTS = "/v1/frontiers/{job}/charts/{name}";

/**
 * @param {Page} page
 * @param {string} name
 * @param {string} [point]
 */
export async function show(page, name, point) {
  page.title("Front");
  const path = `/v1/frontiers/${name}`;
  const body = h("div", null, h("p", null, "Looking …"));
  page.main.append(body);
  /** @type {Going | null} */
  let going = null;
  for await (const news of follow(path, page.signal)) {
    if ("job" in news && news.ended) {
      page.announce(`The job has ${news.job.state}.`);
      await ended(page, body, news.job, Number(point || 0));
      keepFocus();
      return;
    }
    going ??= new Going(page, path, body);
    if ("away" in news) going.away();
    else going.update(news.job);
  }
}

/**
 * @param {Page} page
 * @param {HTMLElement} body
 * @param {Job} job
 * @param {number} point Which point's plan, from 1; 0 for the whole front.
 */
async function ended(page, body, job, point) {
  if (job.state !== "succeeded") return failed(body, job);
  if (point) return showPoint(page, body, job, point);
  return showFront(page, body, job);
}

/**
 * @param {Page} page
 * @param {HTMLElement} body
 * @param {Job} job
 */
async function showFront(page, body, job) {
  /** @type {Front} */
  const front = job.answer;
  const path = `/v1/frontiers/${job.id}`;
  const report = await json(`${path}/report`, { signal: page.signal });
  const points = front.points.length ? pointTable(job.id, front) : null;
  const found = points ? (await choices(CHARTS, "name")).find(({ name }) => name === "front") : undefined;
  remember(job.id, report.headline);
  const open = (/** @type {any} */ datum) => {
    if (datum.point) location.hash = `#/frontiers/${job.id}/${datum.point}`;
  };
  const picture = found && new Picture({
    path: `${path}/charts/front`,
    title: found.title,
    summary: `${found.summary} Click on a point, or follow its link in the table, for its plan.`,
    file: `front-${job.id.slice(0, 8)}`,
    signal: page.signal,
    onClick: open,
  });
  fill(
    body,
    h("p", { class: "headline" }, report.headline),
    showWords(report),
    notes("Warnings", front.warnings, "warnings"),
    picture?.element,
    points,
    notes("Assumptions", front.assumptions),
  );
  await picture?.draw();
}

/**
 * Show the plan of one point.
 * @param {Page} page
 * @param {HTMLElement} body
 * @param {Job} job
 * @param {number} number
 */
async function showPoint(page, body, job, number) {
  /** @type {Front} */
  const front = job.answer;
  const back = h("a", { href: `#/frontiers/${job.id}` }, "All points of the front");
  const plan = front.points[number - 1]?.plan;
  if (!plan) return fill(body, h("p", null, `The front has ${front.points.length} points, and no number ${number}. `, back));
  page.title(`Plan of point ${number} of ${front.points.length}`);
  const drawn = (await choices(CHARTS, "name")).filter(({ name }) => name !== "front");
  const pictures = drawn.map(({ name, title, summary }) => {
    const table = FIGURES[name]?.({ candidates: [plan] }, 1);
    const file = `${name}-${job.id.slice(0, 8)}-${number}`;
    const wanted = { path: `/v1/frontiers/${job.id}/charts/${name}`, query: { candidate: number }, title, summary, file };
    return new Picture({ ...wanted, signal: page.signal, table });
  });
  fill(
    body,
    h("p", null, back),
    figures(plan),
    further(`#/frontiers/${job.id}/${number}`, `${job.id},${pointSide(number)}`),
    h("h2", null, "Pictures"),
    pictures.map((each) => each.element),
    h("h2", null, "Take it along"),
    exportsOf(page, "frontiers", job.id, number),
  );
  for (const picture of pictures) await picture.draw();
}

/** @param {any} plan */
function figures({ metrics }) {
  const known = Object.entries(METRICS).filter(([field]) => metrics[field] !== null);
  const rows = known.map(([field, name]) => [name, metric(field, metrics[field])]);
  if (metrics.bubble_fraction !== null) rows.push(["Bubble", percent(metrics.bubble_fraction)]);
  return h("dl", { class: "figures" }, rows.map(([name, text]) => h("div", null, h("dt", null, name), h("dd", null, text))));
}
