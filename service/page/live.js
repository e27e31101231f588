// A job while it goes on: what is found, what is proven, and how both came closer.

import { fill, h } from "./dom.js";
import { amount, counted, percent, seconds } from "./format.js";

/** @typedef {import("./follow.js").Job} Job */
/** @typedef {import("./follow.js").Progress} Progress */

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [600, 120];
const LATEST_MS = 500; // so that what came last is seen too
const ACTIVITY = {
  improving: "something better was found or proven lately",
  searching: "the search is alive, but found nothing better lately",
  silent: "no sign of life; at its time limit it is ended",
};

export class Live {
  /** @param {unknown} objective That of the problem; undefined where it is not known here. */
  constructor(objective) {
    this.objective = objective;
    /** @type {{ at: number, found: number | null, proven: number | null }[]} */
    this.seen = [];
    this.figures = h("dl", { class: "figures" });
    this.plot = h("div", { class: "plot" });
    this.element = h("section", { "aria-label": "Progress" }, this.figures, this.plot);
  }

  /** @param {Job} job */
  update(job) {
    const progress = job.progress;
    const rows = progress ? this.rows(progress) : job.ahead ? [["Comes after", counted(job.ahead, "job of yours", "jobs of yours")]] : [];
    fill(this.figures, ...rows.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
    if (!progress || (progress.incumbent === null && progress.best_bound === null)) return;
    this.seen.push({ at: performance.now(), found: progress.incumbent, proven: progress.best_bound });
    fill(this.plot, ...this.drawn());
  }

  /**
   * @param {Progress} progress
   * @returns {string[][]}
   */
  rows(progress) {
    const gap = progress.relative_gap;
    const points = progress.points;
    const found =
      points === null
        ? [
            ["Best so far", amount(this.objective, progress.incumbent)],
            ["No plan is better than", amount(this.objective, progress.best_bound)],
            ["Gap", gap === null ? "not known yet" : percent(gap)],
          ]
        : [["Found", counted(points, "point")]];
    return [["Phase", progress.phase], ...found, ["Sign of life", ACTIVITY[progress.activity]]];
  }

  /** Draw what was found and what was proven over the time that this view has watched. */
  drawn() {
    const values = this.seen.flatMap(({ found, proven }) => [found, proven]).filter((value) => value !== null);
    const [least, most] = [Math.min(.../** @type {number[]} */ (values)), Math.max(.../** @type {number[]} */ (values))];
    const begin = this.seen[0]?.at ?? 0;
    const shown = performance.now() - begin + LATEST_MS;
    /** @param {"found" | "proven"} which */
    const line = (which) => {
      const steps = this.seen.filter((each) => each[which] !== null).map((each) => {
        const height = most === least ? 0.5 : (Number(each[which]) - least) / (most - least);
        return [((each.at - begin) / shown) * WIDTH, HEIGHT - 4 - height * (HEIGHT - 8)].map((place) => place.toFixed(1));
      });
      const path = steps.map(([x, y], index) => (index ? `H${x}V${y}` : `M${x} ${y}`)).join("");
      return shape("path", { d: path && `${path}H${WIDTH}`, class: which });
    };
    const picture = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true", preserveAspectRatio: "none" });
    picture.append(line("proven"), line("found"));
    const text = `The best value found (line) and the proven bound (dashes) in the last ${seconds(shown / 1000)}`;
    return [picture, h("p", { class: "faint" }, text)];
  }
}

/**
 * @param {string} name
 * @param {Record<string, string>} attributes
 */
function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
