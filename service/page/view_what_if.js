// A plan of an answer or of a point of a front whose cuts are moved, with its price at once.

import { maySolve } from "./access.js";
import { showWords } from "./answer.js";
import { Problem, json, pause, why } from "./api.js";
import { after, cutsOf, withCuts } from "./cuts.js";
import { fill, h, table } from "./dom.js";
import { amount, metric, percent, ranges, seconds, sized } from "./format.js";
import { METRICS, difference, fieldOf, moreIsBetter, objectiveName, valueOf } from "./objective.js";
import { plansOf } from "./sides.js";
import { Strip } from "./strip.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {any} Answer An answer or a front. */

/**
 * @typedef {object} Goal What plans are judged by.
 * @property {string} name
 * @property {string} against What is said of its difference to the reference.
 * @property {number | null} reference
 * @property {(metrics: import("./objective.js").Metrics) => number | null} value
 * @property {(value: number | null) => string} text
 * @property {boolean} more Whether more of it is better.
 */

const SETTLED_MS = 120; // a cut that is dragged is priced where it rests
const MOST_S = 5; // for single moves, which are measured in a part of it

/**
 * @param {Page} page
 * @param {string} kind `plans` or `frontiers`.
 * @param {string} name
 * @param {string} [candidate] Which plan or point, from 1.
 */
export async function show(page, kind, name, candidate) {
  const number = Number(candidate || 1);
  page.title("What if");
  const { answer, state } = await json(`/v1/${kind}/${name}?include=problem`, { signal: page.signal });
  const plan = answer && plansOf(answer)[number - 1];
  const called = kind === "plans" ? `Plan ${number}` : `the plan of point ${number}`;
  const back = h("a", { href: `#/${kind}/${name}/${number}` }, called);
  if (!plan) {
    page.main.append(h("p", null, answer ? "There is no such plan to change." : `The job is ${state}; it has no plan to change.`));
    return;
  }
  page.main.append(h("p", null, "Move the cuts of ", back, " and see what that costs."));
  if (!(await maySolve())) {
    page.main.append(h("p", null, "Prices need a key with the role solve."));
    return;
  }
  const trial = new Trial(page, answer.problem, plan, goalsOf(answer, number));
  page.main.append(trial.element);
  await trial.price();
}

/**
 * Give what other cuts are judged by: the objective against the best plan, or the metrics of a front against the point.
 * @param {Answer} answer
 * @param {number} number
 * @returns {Goal[]}
 */
function goalsOf(answer, number) {
  if (answer.points) {
    const { metrics } = answer.points[number - 1].plan;
    return answer.metrics.map((/** @type {keyof typeof METRICS} */ field) => ({
      name: METRICS[field],
      against: `${METRICS[field]} against point ${number}`,
      reference: metrics[field],
      value: (/** @type {import("./objective.js").Metrics} */ found) => found[field] ?? null,
      text: (/** @type {number | null} */ value) => (value === null ? "" : metric(field, value)),
      more: moreIsBetter(field),
    }));
  }
  const { objective } = answer;
  return [
    {
      name: objectiveName(objective),
      against: "Against the best plan",
      reference: valueOf(objective, answer.candidates[0].metrics),
      value: (found) => valueOf(objective, found),
      text: (value) => amount(objective, value),
      more: moreIsBetter(fieldOf(objective)),
    },
  ];
}

/** A plan with other cuts. */
class Trial {
  /**
   * @param {Page} page
   * @param {any} problem
   * @param {any} plan
   * @param {Goal[]} goals
   */
  constructor(page, problem, plan, goals) {
    this.page = page;
    this.problem = problem;
    this.plan = plan;
    this.goals = goals;
    const { layers, cuts } = cutsOf(plan);
    this.first = cuts;
    const given = new Map(problem.model.layers.map((/** @type {any} */ layer) => [layer.name, layer]));
    const times = layers.map((layer) => (given.get(layer)?.forward_s ?? 0) + (given.get(layer)?.backward_s ?? 0));
    this.strip = new Strip(layers, times, cuts, () => void this.price());
    /** @type {AbortController | null} */
    this.asking = null;
    this.reset = h("button", { type: "button", onclick: () => this.put(this.first) }, "Put the cuts back");
    this.state = h("span", { class: "note" });
    this.result = h("section", { "aria-label": "Price" });
    this.element = h("div", null, this.strip.element, h("div", { class: "row" }, this.reset, this.state), this.result);
  }

  /** @param {number[]} cuts */
  put(cuts) {
    const changed = cuts.findIndex((cut, index) => cut !== this.strip.cuts[index]);
    this.strip.put(cuts);
    this.strip.handles[changed]?.focus(); // the button that was pressed is about to go
    void this.price();
  }

  /** Ask for the price of the cuts as they are; whatever was asked before is given up. */
  async price() {
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    this.page.signal.addEventListener("abort", () => asking.abort(), { once: true });
    this.state.textContent = "Being priced …";
    this.result.setAttribute("aria-busy", "true");
    this.reset.disabled = this.strip.cuts.join() === this.first.join();
    await pause(SETTLED_MS, asking.signal);
    if (asking.signal.aborted) return;
    try {
      const priced = await json("/v1/evaluations?include=report", { method: "POST", body: this.body(), signal: asking.signal });
      if (!asking.signal.aborted) this.show(priced);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.refused(error);
    }
    this.state.textContent = "";
    this.result.removeAttribute("aria-busy");
  }

  body() {
    const { keep, keep_if_within, ...search } = this.problem.search; // a plan to keep matters to a search alone
    search.time_limit_s = Math.min(MOST_S, search.time_limit_s);
    const plan = withCuts(this.plan, this.strip.cuts);
    return JSON.stringify({ problem: { ...this.problem, search }, plan, solve: false });
  }

  /** @param {unknown} error */
  refused(error) {
    const places = error instanceof Problem ? error.places.map((each) => h("li", null, each.detail)) : [];
    fill(this.result, h("p", { class: "failure", role: "alert" }, why(error)), h("ul", null, places));
  }

  /** @param {{ answer: Answer, report: import("./answer.js").Report }} priced */
  show({ answer: priced, report }) {
    const [plan] = priced.candidates;
    const judged = this.goals.map(({ name, against, reference, value, text, more }) => {
      const found = plan ? value(plan.metrics) : null;
      const far = found === null || reference === null ? "" : difference(found, reference, more);
      return { name, against, found: text(found), far, reference: reference === null ? "" : `${far} (${text(reference)})` };
    });
    const said = judged.map(({ name, found, far }) => `${name} ${found}, ${far}`).join("; ");
    this.page.announce(`${said}${priced.infeasibility ? "; it breaks limits" : ""}.`);
    const rest = [
      ["Bottleneck", plan ? `${report.bottleneck}: ${seconds(plan.metrics.bottleneck_time_s)} per microbatch` : ""],
      [METRICS.peak_memory_bytes, plan ? sized(plan.metrics.peak_memory_bytes) : ""],
    ].filter(([name]) => judged.every((goal) => goal.name !== name));
    const figures = [...judged.flatMap(({ name, against, found, reference }) => [[name, found], [against, reference]]), ...rest];
    fill(
      this.result,
      h("dl", { class: "figures" }, figures.map(([name, text]) => h("div", null, h("dt", null, name), h("dd", null, text)))),
      showWords(report),
      this.offer(priced.comparison.move),
      plan && stageTable(plan),
    );
  }

  /**
   * Offer to make the move that the report names, where it moves a cut.
   * @param {any} move As models/answer.py has it; null where there is none.
   */
  offer(move) {
    const cuts = move && after(this.strip.cuts, move);
    return cuts && h("button", { type: "button", onclick: () => this.put(cuts) }, "Make this move");
  }
}

/** @param {any} plan */
function stageTable(plan) {
  /** @type {Map<number, number>} */
  const totals = new Map(); // stages of one rank share its devices
  for (const { rank, memory } of plan.stages) totals.set(rank, (totals.get(rank) ?? 0) + memory.total_bytes);
  const rows = plan.stages.map((/** @type {any} */ { index, rank, layers, forward_s, backward_s, memory, devices }) => {
    const used = memory.capacity_bytes ? Number(totals.get(rank)) / memory.capacity_bytes : 0;
    const text = `${percent(used)}${used > 1 ? " – does not fit" : ""}`;
    return [
      `Stage ${index}`,
      String(layers.length),
      layers.length > 1 ? `${layers[0]} … ${layers[layers.length - 1]}` : layers[0],
      seconds(forward_s),
      seconds(backward_s),
      sized(memory.total_bytes),
      sized(memory.capacity_bytes),
      h("span", null, h("meter", { value: Math.min(1, used), "aria-hidden": "true" }), " ", text),
      ranges(devices),
    ];
  });
  const headings = ["Stage", "Layers", "from … to", "Forward", "Backward", "Its memory", "Device has", "Used by all its stages", "Devices"];
  return table("Stages, for one microbatch and on each of their devices", headings, rows, { class: "tight" });
}
