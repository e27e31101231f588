// One batch: how far it is, when it will have ended, and its results in a table.

import { restrict } from "./access.js";
import { json, why } from "./api.js";
import { lines, open, resultsOf, states } from "./batch_follow.js";
import { HEADINGS, amountOf, cellsOf, rowOf } from "./batch_rows.js";
import { csv } from "./csv.js";
import { fill, h, keepFocus, save } from "./dom.js";
import { counted, moment, percent, readable, roughly, seconds, significant } from "./format.js";
import { Grid } from "./grid.js";
import { matches } from "./sorting.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./batch_rows.js").Row} Row */
/** @typedef {import("./batch_follow.js").Batch} Batch */

const DRAW_MS = 200; // results may come far faster than anybody reads

/** @type {import("./grid.js").Column<Row>[]} */
const COLUMNS = [
  { title: "Name", width: "wide", value: (row) => row.name, show: (row) => h("a", { href: `#/plans/${row.job}` }, row.name) },
  { title: "Status", width: "narrow", value: (row) => row.status, show: (row) => row.status.replace("_", " ") },
  { title: "Objective", width: "figure", value: (row) => row.objective, show: (row) => amountOf(row, row.objective) },
  { title: "Bound", width: "figure", value: (row) => row.bound, show: (row) => amountOf(row, row.bound) },
  { title: "Gap", width: "figure", value: (row) => row.gap, show: (row) => (row.gap === null ? "" : percent(row.gap)) },
  { title: "Time", width: "figure", value: (row) => row.seconds, show: (row) => (row.seconds === null ? "" : seconds(row.seconds)) },
  { title: "Reason", width: "wider", value: (row) => row.reason || null, show: (row) => readable(row.reason) },
];

/**
 * How the table of each batch was looked at, for when the user comes back from a plan.
 * @type {Map<string, { order: import("./grid.js").Order, text: string, status: string }>}
 */
const looks = new Map();

/**
 * @param {Page} page
 * @param {string} name
 */
export async function show(page, name) {
  page.title("Batch");
  const path = `/v1/batches/${name}`;
  const progress = new Progress(page, path);
  page.main.append(progress.element);
  const results = new Results(page, path, name);
  let begun = false;
  for await (const batch of states(path, page.signal)) {
    if (batch === null) progress.away();
    else progress.update(batch);
    if (begun || batch === null) continue;
    begun = true;
    page.main.append(results.element);
    void results.read(batch.total);
  }
}

/** How far a batch is. */
class Progress {
  /**
   * @param {Page} page
   * @param {string} path
   */
  constructor(page, path) {
    this.page = page;
    this.state = "";
    this.line = h("p", { class: "headline" }, "Looking …");
    this.bar = h("progress", { "aria-label": "Problems that have ended", max: 1, value: 0 });
    this.figures = h("dl", { class: "figures" });
    this.forecast = h("p", { class: "faint" });
    this.note = h("p", { role: "alert" });
    this.cancel = h("button", { type: "button" }, "Cancel what has not ended");
    this.cancel.addEventListener("click", () => {
      this.cancel.disabled = true;
      keepFocus();
      json(path, { method: "DELETE", signal: page.signal }).then(
        (batch) => this.update(batch),
        (error) => {
          this.cancel.disabled = false;
          if (!page.signal.aborted) this.note.textContent = why(error);
        },
      );
    });
    void restrict(this.cancel);
    this.element = h("section", { "aria-label": "Progress" }, this.line, this.bar, this.figures, this.forecast, this.cancel, this.note);
  }

  away() {
    this.line.textContent = "The server is away. The batch is kept there; this page goes on when it is back.";
    this.say("away", "The server is away.");
  }

  /** @param {Batch} batch */
  update(batch) {
    const left = open(batch);
    const done = batch.total - left;
    this.line.textContent = left
      ? `${done} of ${counted(batch.total, "problem")} have ended.`
      : `All ${counted(batch.total, "problem")} have ended.`;
    this.bar.max = batch.total;
    this.bar.value = done;
    const states = ["queued", "running", "succeeded", "failed", "cancelled"];
    const counts = /** @type {Record<string, number>} */ (/** @type {unknown} */ (batch));
    fill(this.figures, states.map((state) => h("div", null, h("dt", null, state), h("dd", null, counts[state]))));
    this.forecast.textContent = left ? forecastText(batch) : `Asked for ${moment(batch.created_at)}.`;
    this.cancel.hidden = !left;
    this.say(left ? "going" : "ended", left ? "The batch goes on." : "The batch has ended.");
  }

  /**
   * @param {string} state
   * @param {string} text
   */
  say(state, text) {
    if (state === this.state) return;
    this.state = state;
    this.page.announce(text);
  }
}

/** @param {Batch} batch */
function forecastText({ forecast }) {
  if (!forecast) return "";
  const { remaining_s: remaining, finished_at: end } = forecast;
  const when =
    remaining === null || end === null
      ? "No end is in sight yet"
      : `About ${roughly(remaining)} to go, until ${moment(end)}`;
  const rates = `${counted(forecast.backlog, "job")} to solve, ${significant(forecast.service_per_s, 2)} solved and ${significant(forecast.arrival_per_s, 2)} new ones per second`;
  return `${when} (${forecast.method}: ${rates}).`;
}

/** The table of results. */
class Results {
  /**
   * @param {Page} page
   * @param {string} path
   * @param {string} name
   */
  constructor(page, path, name) {
    this.page = page;
    this.path = path;
    this.name = name;
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Row[]} */
    this.shown = [];
    const look = looks.get(name) ?? { order: { column: 0, descending: false }, text: "", status: "" };
    looks.set(name, look);
    this.look = look;
    this.grid = new Grid("Results", COLUMNS, look.order);
    this.text = h("input", { type: "search", value: look.text, autocomplete: "off" });
    this.status = h("select", null, h("option", { value: "" }, "all"));
    for (const field of [this.text, this.status]) field.addEventListener("input", () => this.filter());
    this.count = h("p", { class: "faint", role: "status" });
    this.note = h("p", { role: "alert" });
    this.element = h(
      "section",
      { "aria-label": "Results" },
      h("h2", null, "Results"),
      h("div", { class: "row" }, h("label", null, "Filter ", this.text), h("label", null, "Status ", this.status), this.keep("NDJSON"), this.keep("CSV")),
      this.count,
      this.note,
      this.grid.element,
    );
  }

  /**
   * Take results as they come; the table follows a few times a second.
   * @param {number} total
   */
  async read(total) {
    let waiting = false;
    const draw = () => {
      waiting = false;
      this.offer();
      this.filter();
    };
    draw();
    try {
      for await (const result of resultsOf(this.path, total, this.page.signal)) {
        this.rows.push(rowOf(result));
        if (!waiting) setTimeout(draw, DRAW_MS);
        waiting = true;
      }
    } catch (error) {
      if (!this.page.signal.aborted) this.note.textContent = why(error);
    }
  }

  /** Offer the statuses that there are. */
  offer() {
    const counts = new Map();
    for (const { status } of this.rows) counts.set(status, (counts.get(status) ?? 0) + 1);
    const offered = [...counts.keys()].sort();
    if (this.look.status && !counts.has(this.look.status)) offered.push(this.look.status);
    const options = [...this.status.options].slice(1).map((option) => option.value);
    if (options.join() === offered.join()) return;
    const choices = offered.map((status) => h("option", { value: status }, status.replace("_", " ")));
    fill(this.status, h("option", { value: "" }, "all"), choices);
    this.status.value = this.look.status;
  }

  /** Show the rows that are asked for. */
  filter() {
    this.look.text = this.text.value;
    this.look.status = this.status.value || (this.status.options.length > 1 ? "" : this.look.status);
    const { text, status } = this.look;
    this.shown = this.rows.filter((row) => (!status || row.status === status) && matches(row.text, text));
    this.grid.show(this.shown);
    this.count.textContent = this.shown.length === this.rows.length
      ? counted(this.rows.length, "result")
      : `${this.shown.length} of ${counted(this.rows.length, "result")}`;
  }

  /** @param {"NDJSON" | "CSV"} format */
  keep(format) {
    const content = {
      NDJSON: () => lines(this.path, this.rows.length, this.page.signal),
      // As shown: filtered and sorted.
      CSV: async () => new Blob([csv([HEADINGS, ...this.grid.rows.map(cellsOf)])], { type: "text/csv" }),
    }[format];
    const title = format === "CSV" ? "Save the rows of the table" : "Save all results with their answers";
    const button = h("button", { type: "button", class: "quiet", title }, format);
    button.addEventListener("click", () => {
      content().then(
        (blob) => save(blob, `batch-${this.name.slice(0, 8)}.${format.toLowerCase()}`),
        (error) => this.page.signal.aborted || (this.note.textContent = why(error)),
      );
    });
    return button;
  }
}
