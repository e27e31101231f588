// A plan as a text for other programs.

import { choices, send, why } from "./api.js";
import { fill, h, save, table } from "./dom.js";

const ENDINGS = { "application/json": "json", "text/csv": "csv" };

/** @typedef {import("./main.js").Page} Page */

/**
 * Offer a plan in every format; which of them can express it is found out when that is looked at.
 * @param {Page} page
 * @param {"plans" | "frontiers"} kind
 * @param {string} job
 * @param {number} number Which candidate or point, from 1.
 */
export function exportsOf(page, kind, job, number) {
  const body = h("div", null, "Looking …");
  const element = h("details", { class: "exports" }, h("summary", null, "For other programs"), body);
  const look = () => {
    offers(page, kind, job, number).then(
      (rows) => fill(body, table("Formats", ["Format", "What it is", "File"], rows)),
      (error) => page.signal.aborted || fill(body, why(error)),
    );
  };
  element.addEventListener("toggle", look, { once: true });
  return element;
}

/**
 * @param {Page} page
 * @param {"plans" | "frontiers"} kind
 * @param {string} job
 * @param {number} number
 */
async function offers(page, kind, job, number) {
  const rows = [];
  for (const { name, summary } of await choices(`/v1/${kind}/{job}/export/{format}`, "format")) {
    rows.push([name, summary, await offer(page, `/v1/${kind}/${job}/export/${name}?candidate=${number}`, name)]);
  }
  return rows;
}

/**
 * Give a button that keeps the text, or the reason why there is none.
 * @param {Page} page
 * @param {string} path
 * @param {string} name
 */
async function offer(page, path, name) {
  try {
    const content = await (await send(path, { signal: page.signal })).blob();
    const type = content.type.split(";")[0] ?? "";
    const file = `${name}.${/** @type {Record<string, string>} */ (ENDINGS)[type] ?? "txt"}`;
    return h("button", { type: "button", class: "quiet", onclick: () => save(content, file) }, `Save ${file}`);
  } catch (error) {
    if (page.signal.aborted) throw error;
    return error instanceof Error ? error.message : String(error);
  }
}
