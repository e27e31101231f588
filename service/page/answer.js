// An answer: how good the plan is, what it costs, its pictures, the other plans, and its forms for other programs.

import { choices, json, why } from "./api.js";
import { Picture } from "./chart.js";
import { fill, h, save } from "./dom.js";
import { exportsOf } from "./exports.js";
import { readable } from "./format.js";
import { remember } from "./remembered.js";
import { FIGURES, candidateTable } from "./tables.js";
import { edit } from "./view_home.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./follow.js").Job} Job */

/**
 * The words of an answer, as service/replies.py has them.
 * @typedef {object} Report
 * @property {string} headline
 * @property {string | null} refusal
 * @property {string[]} explanation
 * @property {{ name: string, text: string, part: boolean }[]} figures
 * @property {string | null} bottleneck
 */

/**
 * Show the answer of a job.
 * @param {Page} page
 * @param {HTMLElement} body
 * @param {Job} job
 * @param {number} number Which candidate, from 1.
 */
export async function showAnswer(page, body, job, number) {
  const path = `/v1/plans/${job.id}`;
  const { answer } = job;
  const plan = answer.candidates[number - 1];
  /** @type {Report} */
  const report = await json(`${path}/report?candidate=${number}`, { signal: page.signal });
  remember(job.id, report.headline);
  const pictures = plan ? await picturesOf(page, path, job, number) : [];
  fill(
    body,
    h("p", { class: "headline" }, report.headline),
    showWords(report),
    notes("Warnings", answer.warnings, "warnings"),
    h(
      "div",
      { class: "beside" },
      plan && figures(report, number, answer.candidates.length),
      answer.candidates.length > 1 && h("section", { class: "plans" }, h("h2", null, "Plans"), candidateTable(job, number)),
    ),
    plan && further(`#/plans/${job.id}/${number}`, `${job.id},${number}`),
    pictures.length > 0 &&
      h("section", null, h("h2", null, "Pictures"), scenarioChoice(plan, pictures), pictures.map((each) => each.element)),
    notes("Assumptions", answer.assumptions),
    h("h2", null, "Take it along"),
    actions(page, path, job),
    plan && exportsOf(page, "plans", job.id, number),
  );
  await drawAll(pictures);
}

/**
 * Draw one after the other: each takes a process of the server's.
 * @param {Picture[]} pictures
 */
async function drawAll(pictures) {
  for (const picture of pictures) await picture.draw();
}

/**
 * Let the user choose a scenario where a plan has several; at first the longest is shown.
 * @param {any} plan
 * @param {Picture[]} pictures
 */
function scenarioChoice(plan, pictures) {
  if (!plan.scenarios.length) return null;
  const options = plan.scenarios.map((/** @type {{ name: string }} */ { name }) =>
    h("option", { value: name, selected: name === plan.scenario }, name),
  );
  const list = h("select", null, options);
  list.addEventListener("change", () => {
    for (const picture of pictures) picture.wanted.query = { ...picture.wanted.query, scenario: list.value };
    void drawAll(pictures);
  });
  return h("label", null, "Scenario ", list);
}

/**
 * Say what is proven, or why there is no plan.
 * @param {Report} report
 */
export function showWords(report) {
  const lines = report.explanation.map((line) => h("p", { class: line.startsWith("- ") ? "item" : null }, readable(line.replace(/^- /, ""))));
  const heading = report.refusal && h("h2", { class: "failure" }, report.refusal);
  return h("section", { class: "proof", "aria-label": "What is proven" }, heading, lines);
}

/**
 * @param {Report} report
 * @param {number} number
 * @param {number} count
 */
function figures(report, number, count) {
  const rows = report.figures.map(({ name, text, part }) =>
    h("div", { class: part ? "part" : null }, h("dt", null, name), h("dd", null, text)),
  );
  const title = count > 1 ? `Plan ${number} of ${count}` : "The plan";
  return h("section", null, h("h2", null, title), h("dl", { class: "list" }, rows));
}

/**
 * Lead to the views in which a plan is changed and compared.
 * @param {string} address That of the plan.
 * @param {string} side What it is in a comparison: its job, and which of its plans.
 */
export function further(address, side) {
  const change = h("a", { href: `${address}/what-if` }, "Move its cuts and see what that costs");
  const compare = h("a", { href: `#/compare/${side}` }, "Compare it with another plan");
  return h("p", { class: "row" }, change, compare);
}

/**
 * List what has to be known beside an answer; nothing where that is nothing.
 * @param {string} title
 * @param {string[]} lines
 * @param {string} [kind]
 */
export function notes(title, lines, kind) {
  if (!lines.length) return null;
  return h("section", { class: kind ?? null }, h("h2", null, title), h("ul", null, lines.map((line) => h("li", null, readable(line)))));
}

/**
 * @param {Page} page
 * @param {string} path
 * @param {Job} job
 * @param {number} number
 */
async function picturesOf(page, path, job, number) {
  const offered = await choices("/v1/plans/{job}/charts/{name}", "name");
  return offered.map(({ name, title, summary }) => {
    const table = FIGURES[name]?.(job.answer, number);
    const file = `${name}-${job.id.slice(0, 8)}-${number}`;
    const query = { candidate: number };
    return new Picture({ path: `${path}/charts/${name}`, query, title, summary, file, signal: page.signal, table });
  });
}

/**
 * @param {Page} page
 * @param {string} path
 * @param {Job} job
 */
function actions(page, path, job) {
  const note = h("span", { role: "alert" });
  /** @param {(whole: Job) => void} use */
  const withProblem = (use) => () => {
    json(`${path}?include=problem`, { signal: page.signal }).then(use, (error) => {
      if (!page.signal.aborted) note.textContent = why(error);
    });
  };
  const keep = withProblem(({ answer }) => {
    save(new Blob([JSON.stringify(answer, null, 1)], { type: "application/json" }), `answer-${job.id.slice(0, 8)}.json`);
  });
  const again = withProblem(({ answer }) => edit(JSON.stringify(answer.problem, null, 1)));
  return h(
    "div",
    { class: "row" },
    h("button", { type: "button", onclick: keep }, "Answer as JSON"),
    h("button", { type: "button", onclick: again }, "Change the problem"),
    note,
  );
}
