// The newest jobs and batches, with links to them.

import { json, why } from "./api.js";
import { fill, h, table } from "./dom.js";
import { counted, moment } from "./format.js";
import { remembered } from "./remembered.js";

const MOST = 20;

/** @typedef {{ at: string, cells: import("./dom.js").Child[] }} Row */

/**
 * List what was asked for lately.
 * @param {AbortSignal} signal
 */
export function recent(signal) {
  const element = h("div", { class: "recent" }, h("p", null, "Looking …"));
  const listing = Promise.all([jobs("plan", signal), jobs("frontier", signal), batches(signal)]);
  listing.then(
    (found) => {
      const rows = found.flat().sort((one, other) => (one.at < other.at ? 1 : -1)).slice(0, MOST);
      if (!rows.length) return fill(element, h("p", null, "None yet."));
      const columns = ["What", "State", "Asked for", ...(rows.some((row) => row.cells[3]) ? ["Seen as"] : [])];
      return fill(element, table("The newest first", columns, rows.map((row) => row.cells.slice(0, columns.length))));
    },
    (error) => signal.aborted || fill(element, h("p", null, why(error))),
  );
  return element;
}

/**
 * @param {"plan" | "frontier"} kind
 * @param {AbortSignal} signal
 * @returns {Promise<Row[]>}
 */
async function jobs(kind, signal) {
  const list = await json(`/v1/${kind}s?limit=${MOST}`, { signal });
  return list.jobs.map((/** @type {import("./follow.js").Job} */ job) => {
    const link = h("a", { href: `#/${kind}s/${job.id}` }, `${kind === "plan" ? "Plan" : "Front"} ${job.id.slice(0, 8)}`);
    return { at: job.created_at, cells: [link, job.state, moment(job.created_at), remembered(job.id)] };
  });
}

/**
 * @param {AbortSignal} signal
 * @returns {Promise<Row[]>}
 */
async function batches(signal) {
  const list = await json(`/v1/batches?limit=${MOST}`, { signal });
  return list.batches.map((/** @type {any} */ batch) => {
    const link = h("a", { href: `#/batches/${batch.id}` }, `Batch ${batch.id.slice(0, 8)}`);
    const left = batch.queued + batch.running;
    const state = `${counted(batch.total, "problem")}, ${left ? `${left} to go` : "all done"}`;
    return { at: batch.created_at, cells: [link, state, moment(batch.created_at), ""] };
  });
}
