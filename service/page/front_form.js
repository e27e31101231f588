// Ask for the Pareto front of the problem that is written.

import { restrict } from "./access.js";
import { Problem, freshName, send, why } from "./api.js";
import { h } from "./dom.js";
import { METRICS } from "./objective.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./api.js").Place} Place */

const PROBLEM = "/problem";

/**
 * Offer to find a front.
 * @param {Page} page
 * @param {() => string} textOf Gives the problem as it is written.
 * @param {(faults: Place[]) => void} onRefused Told what is wrong in the problem.
 */
export function frontForm(page, textOf, onRefused) {
  const one = metricChoice("iteration_time_s");
  const other = metricChoice("peak_memory_bytes");
  const points = h("input", { type: "number", min: 2, max: 1000, value: 20 });
  const note = h("p", { role: "alert" });
  const button = h("button", { type: "button" }, "Find the front");
  void restrict(button);
  const ask = async () => {
    button.disabled = true;
    note.textContent = "";
    onRefused([]);
    try {
      const problem = textOf();
      JSON.parse(problem);
      // As it was written: a number or a key that stands twice is for the server to judge.
      const rest = JSON.stringify({ metrics: [one.value, other.value], points: points.valueAsNumber });
      const body = `{"problem": ${problem}, ${rest.slice(1)}`;
      const headers = { Prefer: "wait=1", "Idempotency-Key": freshName() };
      const response = await send("/v1/frontiers", { method: "POST", body, headers, signal: page.signal });
      location.hash = `#/frontiers/${(response.headers.get("Location") ?? "").split("/").pop()}`;
    } catch (error) {
      if (page.signal.aborted) return;
      note.textContent = error instanceof SyntaxError ? `The problem is no JSON: ${error.message}` : said(error, onRefused);
    } finally {
      button.disabled = false;
    }
  };
  button.addEventListener("click", () => void ask());
  points.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // it would press the form's own button
    button.click();
  });
  return h(
    "details",
    null,
    h("summary", null, "Or find the front of two metrics"),
    h("p", null, "The plans than which no other is better in one of them and at least as good in the other."),
    h("div", { class: "row" }, h("label", null, "Metric ", one), h("label", null, "against ", other), h("label", null, "Points ", points), button),
    note,
  );
}

/**
 * Mark what is wrong in the problem, and give the rest in words.
 * @param {unknown} error
 * @param {(faults: Place[]) => void} onRefused
 */
function said(error, onRefused) {
  const places = error instanceof Problem ? error.places : [];
  const inside = places.filter(({ pointer }) => pointer === PROBLEM || pointer.startsWith(`${PROBLEM}/`));
  if (inside.length) onRefused(inside.map((place) => ({ ...place, pointer: place.pointer.slice(PROBLEM.length) })));
  const others = places.filter((place) => !inside.includes(place));
  return places.length ? others.map(({ detail }) => detail).join("; ") : why(error);
}

/** @param {string} chosen */
function metricChoice(chosen) {
  const options = Object.entries(METRICS).map(([field, name]) => h("option", { value: field, selected: field === chosen }, name));
  return h("select", null, options);
}
