// Two plans side by side, of one job or of two: what they cost, and what moves between them.

import { choices, json, why } from "./api.js";
import { Picture } from "./chart.js";
import { fill, h, table } from "./dom.js";
import { counted, metric, moment, percent, ranges, seconds, sized } from "./format.js";
import { layerMoves, missing, placeMoves, recomputedOnly } from "./moves.js";
import { METRICS, difference, moreIsBetter, signed } from "./objective.js";
import { remembered } from "./remembered.js";
import { choicesOf, isPoint, otherSide, plansOf, pointSide, sideOf } from "./sides.js";
import { matches } from "./sorting.js";
import { FIGURES, pointTable } from "./tables.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./sides.js").Side} Side */
/** @typedef {any} Answer */

const MOST_NAMES = 6;
const MOST_MOVES = 200;
const JOBS = 50;
const LOWER = { bubble_fraction: "Bubble" };

/**
 * @param {Page} page
 * @param {string} first The job and the plan on the left, with a comma between them; the best plan where it is left out.
 * @param {string} [second] Those on the right; the next plan of the same job where they are left out.
 */
export async function show(page, first, second) {
  page.title("Compare plans");
  const [job = "", plan = "1"] = first.split(",");
  const [otherJob = job, otherPlan = otherSide(plan)] = second ? second.split(",") : [];
  const left = new Choice(page, "Left");
  const right = new Choice(page, "Right");
  const comparison = new Comparison(page, left, right);
  await Promise.all([left.load(job, plan), right.load(otherJob, otherPlan)]);
  page.main.append(
    h("p", null, "Choose two plans, of one job or of two; what is said of the right one is said against the left one."),
    h("div", { class: "two" }, left.element, right.element),
    comparison.element,
  );
  comparison.show();
  await Promise.all([comparison.draw(), left.offerJobs(), right.offerJobs()]);
}

/** One side: its job, and which of its plans. */
class Choice {
  /**
   * @param {Page} page
   * @param {string} name
   */
  constructor(page, name) {
    this.page = page;
    this.job = "";
    this.id = "";
    /** @type {Answer} */
    this.answer = null;
    /** @type {import("./sides.js").Choice[]} */
    this.all = [];
    /** @type {Map<string, string>} */
    this.firsts = new Map(); // of each job that is offered, its first plan
    this.onChange = () => {};
    this.jobs = h("select");
    this.filter = h("input", { type: "search", autocomplete: "off", oninput: () => this.list() });
    this.plans = h("select", { size: 6, "aria-label": `Plan on the ${name.toLowerCase()}`, class: "plans-list" });
    this.note = h("p", { role: "alert" });
    this.jobs.addEventListener("change", () => {
      const job = this.jobs.value;
      this.load(job, this.firsts.get(job) ?? "1").then(() => this.onChange(), (error) => page.signal.aborted || (this.note.textContent = why(error)));
    });
    this.plans.addEventListener("change", () => {
      this.id = this.plans.value;
      this.onChange();
    });
    this.element = h(
      "fieldset",
      null,
      h("legend", null, name),
      h("label", null, "Job ", this.jobs),
      h("label", null, "Filter ", this.filter),
      this.plans,
      this.note,
    );
  }

  /**
   * @param {string} job
   * @param {string} id
   */
  async load(job, id) {
    const kind = isPoint(id) ? "frontiers" : "plans";
    const found = await json(`/v1/${kind}/${job}?include=problem`, { signal: this.page.signal });
    this.note.textContent = found.answer ? "" : `Job ${job.slice(0, 8)} is ${found.state}; it has no plans.`;
    this.job = job;
    this.id = id;
    this.answer = found.answer;
    this.all = found.answer ? choicesOf(found.answer) : [];
    if (!this.all.some((each) => each.id === id)) this.id = (this.all[1] ?? this.all[0])?.id ?? "";
    if (!this.firsts.has(job)) this.offer(found);
    this.jobs.value = job;
    this.list();
  }

  /** List the plans that the filter leaves. */
  list() {
    const shown = this.all.filter(({ text }) => matches(text, this.filter.value));
    fill(this.plans, shown.map(({ id, text }) => h("option", { value: id, selected: id === this.id }, text)));
  }

  /** Offer the newest jobs that have plans, those of fronts after the others. */
  async offerJobs() {
    for (const kind of ["plans", "frontiers"]) {
      const { jobs } = await json(`/v1/${kind}?state=succeeded&limit=${JOBS}`, { signal: this.page.signal });
      for (const job of jobs) if (!this.firsts.has(job.id)) this.offer(job);
    }
  }

  /** @param {{ id: string, kind: string, created_at: string }} job */
  offer({ id, kind, created_at }) {
    this.firsts.set(id, kind === "plan" ? "1" : pointSide(1));
    this.jobs.append(h("option", { value: id }, titled(id, kind, created_at)));
  }

  get side() {
    return this.answer && sideOf(this.answer, this.id);
  }
}

/**
 * Tell jobs apart: by what they turned out to be, where that is known.
 * @param {string} job
 * @param {string} kind
 * @param {string} at
 */
function titled(job, kind, at) {
  return [`${kind === "plan" ? "" : "front "}${job.slice(0, 8)}`, moment(at), remembered(job)].filter(Boolean).join(", ");
}

/** What two plans have otherwise. */
class Comparison {
  /**
   * @param {Page} page
   * @param {Choice} left
   * @param {Choice} right
   */
  constructor(page, left, right) {
    this.page = page;
    this.left = left;
    this.right = right;
    this.body = h("div");
    this.pictures = h("div");
    this.element = h("div", null, this.body, this.pictures);
    this.drawn = "";
    left.onChange = () => (this.show(), void this.draw());
    right.onChange = () => this.show();
  }

  /** Show the plans that are chosen, and keep the address to them. */
  show() {
    const [one, other] = [this.left.side, this.right.side];
    history.replaceState(null, "", `#/compare/${this.left.job},${this.left.id}/${this.right.job},${this.right.id}`);
    if (!one || !other) return fill(this.body, h("p", null, "There are no two plans to compare."));
    const titles = this.titles(one, other);
    this.page.announce(`${titles.join(" against ")}: ${headline(one, other)}.`);
    return fill(
      this.body,
      h("h2", null, "What they cost"),
      metricTable(one, other, titles),
      h("h2", null, "What moves"),
      moves(one, other, titles),
      h("h2", null, "Stages"),
      stageTable(one, other, titles),
    );
  }

  /**
   * @param {Side} one
   * @param {Side} other
   */
  titles(one, other) {
    if (this.left.job === this.right.job) return [one.title, other.title];
    return [`${one.title} of ${this.left.job.slice(0, 8)}`, `${other.title} of ${this.right.job.slice(0, 8)}`];
  }

  /** Draw all plans of the left answer, where that is not done. */
  async draw() {
    const { job, id, answer } = this.left;
    if (job === this.drawn) return;
    this.drawn = job;
    fill(this.pictures);
    if (!answer || !plansOf(answer).length) return;
    const [kind, drawn] = isPoint(id) ? ["frontiers", "front"] : ["plans", "comparison"];
    const chart = (await choices(`/v1/${kind}/{job}/charts/{name}`, "name")).find(({ name }) => name === drawn);
    if (!chart) return;
    const { title, summary } = chart;
    const table = isPoint(id) ? pointTable(job, answer) : FIGURES["comparison"]?.(answer, 1);
    const file = `${drawn}-${job.slice(0, 8)}`;
    const picture = new Picture({ path: `/v1/${kind}/${job}/charts/${drawn}`, title, summary, file, signal: this.page.signal, table });
    fill(this.pictures, picture.element);
    await picture.draw();
  }
}

/**
 * @param {Side} one
 * @param {Side} other
 */
function headline(one, other) {
  return `iteration time ${against("iteration_time_s", one.metrics["iteration_time_s"] ?? null, other.metrics["iteration_time_s"] ?? null)}`;
}

/**
 * Say by how much the second value is better or worse; empty where one is not known.
 * @param {string} field
 * @param {number | null} one
 * @param {number | null} other
 */
function against(field, one, other) {
  return one === null || other === null ? "" : difference(other, one, moreIsBetter(field));
}

/**
 * @param {number | null} one
 * @param {number | null} other
 */
function change(one, other) {
  return one === null || other === null ? "" : signed(other, one);
}

/**
 * @param {Side} one
 * @param {Side} other
 * @param {string[]} titles
 */
function metricTable(one, other, titles) {
  const rows = Object.entries({ ...METRICS, ...LOWER }).map(([field, name]) => {
    const values = [one, other].map((side) => side.metrics[field] ?? null);
    const [left = null, right = null] = values;
    const texts = values.map((value) => (value === null ? "" : field in LOWER ? percent(value) : metric(field, value)));
    return field in LOWER ? [name, ...texts, ...inPoints(left, right)] : [name, ...texts, change(left, right), against(field, left, right)];
  });
  return table("Metrics", ["Metric", ...titles, "Change", "The right one is"], rows);
}

/**
 * Give the change of a share of the time, of which less is better, in percentage points: percents of percents mislead.
 * @param {number | null} one
 * @param {number | null} other
 */
function inPoints(one, other) {
  if (one === null || other === null) return ["", ""];
  const points = `${(Math.abs(other - one) * 100).toFixed(1)} points`;
  if (points === "0.0 points") return ["", "the same"];
  return [`${other > one ? "+" : "−"}${points}`, `${points} ${other > one ? "worse" : "better"}`];
}

/**
 * @param {Side} one
 * @param {Side} other
 * @param {string[]} titles
 */
function moves(one, other, titles) {
  const [left, right] = titles;
  const found = [
    ...layerMoves(one, other).map(({ layers, from, to }) => [named(layers), counted(layers.length, "layer"), `stage ${from}`, `stage ${to}`]),
    ...placeMoves(one, other).map(({ stage, from, to }) => [`Stage ${stage}`, "devices", ranges(from), ranges(to)]),
    ...lists(missing(one, other), "only on the left", ""),
    ...lists(missing(other, one), "", "only on the right"),
    ...lists(recomputedOnly(one, other), "recomputed", "not recomputed"),
    ...lists(recomputedOnly(other, one), "not recomputed", "recomputed"),
  ];
  if (!found.length) return h("p", null, "Nothing: both have the same layers on the same stages and devices, as far as they are known.");
  const rest = found.length > MOST_MOVES && h("p", null, `${found.length - MOST_MOVES} more are not listed.`);
  return h("div", null, table("From the left to the right", ["What", "How much", left ?? "", right ?? ""], found.slice(0, MOST_MOVES)), rest);
}

/**
 * @param {string[]} layers
 * @param {string} left
 * @param {string} right
 */
function lists(layers, left, right) {
  return layers.length ? [[named(layers), counted(layers.length, "layer"), left, right]] : [];
}

/** @param {string[]} layers */
function named(layers) {
  if (layers.length <= MOST_NAMES) return layers.join(", ");
  return `${layers[0]}, ${layers[1]} … ${layers[layers.length - 1]}`;
}

/**
 * @param {Side} one
 * @param {Side} other
 * @param {string[]} titles
 */
function stageTable(one, other, titles) {
  const count = Math.max(one.stages.length, other.stages.length);
  const rows = Array.from({ length: count }, (_, stage) => [
    `Stage ${stage}`,
    ...[one, other].flatMap((side) => cells(side.stages[stage])),
  ]);
  const headings = titles.flatMap((title) => [`${title}: layers`, "time", "memory"]);
  return table("Forward and backward pass of one microbatch; memory on each device", ["Stage", ...headings], rows);
}

/** @param {Side["stages"][number] | undefined} found */
function cells(found) {
  if (!found) return ["", "", ""];
  const { layers, stage } = found;
  if (!stage) return [String(layers.length), "", ""];
  return [String(layers.length), seconds(stage.forward_s + stage.backward_s), sized(stage.memory.total_bytes)];
}
