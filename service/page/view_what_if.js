// A plan whose cuts are moved, with its price at once.

import { maySolve } from "./access.js";
import { Problem, json, pause, why } from "./api.js";
import { after, cutsOf, withCuts } from "./cuts.js";
import { fill, h, table } from "./dom.js";
import { amount, percent, ranges, seconds, sized } from "./format.js";
import { METRICS, difference, fieldOf, moreIsBetter, objectiveName, valueOf } from "./objective.js";
import { Strip } from "./strip.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {any} Answer */

const SETTLED_MS = 120; // a cut that is dragged is priced where it rests
const MOST_S = 5; // for single moves, which are measured in a part of it
const NEAR = 1e-6;

/**
 * @param {Page} page
 * @param {string} name
 * @param {string} [candidate]
 */
export async function show(page, name, candidate) {
  const number = Number(candidate || 1);
  page.title("What if");
  const { answer, state } = await json(`/v1/plans/${name}?include=problem`, { signal: page.signal });
  const plan = answer?.candidates[number - 1];
  const back = h("a", { href: `#/plans/${name}/${number}` }, `Plan ${number}`);
  if (!plan) {
    page.main.append(h("p", null, answer ? "There is no such plan to change." : `The job is ${state}; it has no plan to change.`));
    return;
  }
  page.main.append(h("p", null, "Move the cuts of ", back, " and see what that costs."));
  if (!(await maySolve())) {
    page.main.append(h("p", null, "Prices need a key with the role solve."));
    return;
  }
  const trial = new Trial(page, answer, plan);
  page.main.append(trial.element);
  await trial.price();
}

/** A plan with other cuts. */
class Trial {
  /**
   * @param {Page} page
   * @param {Answer} answer
   * @param {any} plan
   */
  constructor(page, answer, plan) {
    this.page = page;
    this.answer = answer;
    this.plan = plan;
    const { layers, cuts } = cutsOf(plan);
    this.first = cuts;
    const given = new Map(answer.problem.model.layers.map((/** @type {any} */ layer) => [layer.name, layer]));
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
    this.strip.put(cuts);
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
      const priced = await json("/v1/evaluations", { method: "POST", body: this.body(), signal: asking.signal });
      if (!asking.signal.aborted) this.show(priced);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.refused(error);
    }
    this.state.textContent = "";
    this.result.removeAttribute("aria-busy");
  }

  body() {
    const { problem } = this.answer;
    const { keep, keep_if_within, ...search } = problem.search; // a plan to keep matters to a search alone
    search.time_limit_s = Math.min(MOST_S, search.time_limit_s);
    const plan = withCuts(this.plan, this.strip.cuts);
    return JSON.stringify({ problem: { ...problem, search }, plan, solve: false });
  }

  /** @param {unknown} error */
  refused(error) {
    const places = error instanceof Problem ? error.places.map((each) => h("li", null, each.detail)) : [];
    fill(this.result, h("p", { class: "failure", role: "alert" }, why(error)), h("ul", null, places));
  }

  /** @param {Answer} priced */
  show(priced) {
    const [plan] = priced.candidates;
    const { objective } = this.answer;
    const best = valueOf(objective, this.answer.candidates[0].metrics);
    const value = plan ? valueOf(objective, plan.metrics) : null;
    const against = value === null || best === null ? "" : difference(value, best, moreIsBetter(fieldOf(objective)));
    this.page.announce(`${objectiveName(objective)} ${amount(objective, value)}, ${against}${priced.infeasibility ? "; it breaks limits" : ""}.`);
    const figures = [
      [objectiveName(objective), amount(objective, value)],
      ["Against the best plan", best === null ? "" : `${against} (${amount(objective, best)})`],
      ["Bottleneck", plan ? `${bottleneck(plan)}: ${seconds(plan.metrics.bottleneck_time_s)} per microbatch` : ""],
      [METRICS.peak_memory_bytes, plan ? sized(plan.metrics.peak_memory_bytes) : ""],
    ];
    fill(
      this.result,
      broken(priced),
      h("dl", { class: "figures" }, figures.map(([name, text]) => h("div", null, h("dt", null, name), h("dd", null, text)))),
      this.moveOf(priced),
      plan && stageTable(plan),
    );
  }

  /**
   * Name the single move that improves it most, and offer to make it where that moves a cut.
   * @param {Answer} priced
   */
  moveOf(priced) {
    const { move, all_moves: all, moves_measured: count } = priced.comparison;
    const rest = all ? "" : ` Only ${count} moves were measured.`;
    if (!move) return h("p", null, `No single move ${priced.infeasibility ? "makes it keep its limits" : "improves it"}.${rest}`);
    const aim = priced.infeasibility ? "A single move after which it breaks no limit" : "The single move that improves it most";
    const price = `${objectiveName(this.answer.objective).toLowerCase()} ${amount(this.answer.objective, move.objective_value)}`;
    const part = move.relative_gain === null ? "" : `, ${percent(Math.abs(move.relative_gain))} ${move.gain < 0 ? "worse" : "better"}`;
    const cuts = after(this.strip.cuts, move);
    const button = cuts && h("button", { type: "button", onclick: () => this.put(cuts) }, "Make this move");
    return h("p", null, `${aim}: ${move.message}: ${price}${part}.${rest} `, button);
  }
}

/**
 * Say what does not fit, in the words of the service.
 * @param {Answer} priced
 */
function broken({ infeasibility }) {
  if (!infeasibility) return null;
  const findings = infeasibility.findings.map((/** @type {any} */ each) => h("li", null, each.message));
  return h("div", { class: "warnings" }, h("h2", { class: "failure" }, "This plan breaks limits"), h("p", null, infeasibility.message), h("ul", null, findings));
}

/**
 * Name what the steady state waits for: the stages of the busiest rank, or the boundary whose transfer takes longer.
 * @param {any} plan
 */
export function bottleneck(plan) {
  const longest = plan.metrics.bottleneck_time_s;
  for (const { from_stage, to_stage, transfer_s, backward_transfer_s } of plan.boundaries) {
    const taken = Math.max(transfer_s, backward_transfer_s);
    if (taken > 0 && Math.abs(taken - longest) <= NEAR * longest) return `from stage ${from_stage} to stage ${to_stage}`;
  }
  /** @type {Map<number, { busy: number, stages: number[] }>} */
  const ranks = new Map();
  for (const { rank, index, forward_s, backward_s, data_parallel } of plan.stages) {
    const found = ranks.get(rank) ?? { busy: 0, stages: [] };
    found.busy += (forward_s + backward_s) / (data_parallel ?? 1);
    found.stages.push(index);
    ranks.set(rank, found);
  }
  const stages = [...ranks.values()].sort((one, other) => other.busy - one.busy)[0]?.stages ?? [];
  return `stage${stages.length > 1 ? "s" : ""} ${stages.join(", ")}`;
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
