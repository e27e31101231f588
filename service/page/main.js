// The page: one view for every address behind the #, so that each has a permanent link.

import { Away, Problem, why } from "./api.js";
import { watchAccess } from "./access.js";
import { byId, fill, h } from "./dom.js";

/**
 * What a view gets besides the parts of its address.
 * @typedef {object} Page
 * @property {HTMLElement} main Where it shows itself.
 * @property {HTMLElement} heading At its top.
 * @property {AbortSignal} signal Aborted when another view is shown; whatever goes on must end then.
 * @property {(text: string) => void} title Names the view, in the window and at its top.
 * @property {(text: string) => void} announce Tells a screen reader what happened.
 */

/** @typedef {{ show: (page: Page, ...parts: string[]) => Promise<void> }} View */

/**
 * The patterns of the addresses, and the modules that show them. What they capture becomes part of the paths of calls, so
 * a name holds nothing that would lead out of its call: a link must not make this tab send something else with its key.
 * @type {[RegExp, () => Promise<View>][]}
 */
const VIEWS = [
  [/^\/$/, () => import("./view_home.js")],
  [/^\/plans\/([\w-]+)(?:\/(\d+))?$/, () => import("./view_plan.js")],
  [/^\/(plans|frontiers)\/([\w-]+)(?:\/(\d+))?\/what-if$/, () => import("./view_what_if.js")],
  [/^\/compare\/([\w-]+(?:,\w+)?)(?:\/([\w-]+(?:,\w+)?))?$/, () => import("./view_compare.js")],
  [/^\/frontiers\/([\w-]+)(?:\/(\d+))?$/, () => import("./view_front.js")],
  [/^\/batches$/, () => import("./view_batches.js")],
  [/^\/batches\/([\w-]+)$/, () => import("./view_batch.js")],
];

const main = byId("main", HTMLElement);
const status = byId("status", HTMLElement);
let leaving = new AbortController();

/** Show the view of the address. */
async function show() {
  leaving.abort();
  leaving = new AbortController();
  const signal = leaving.signal;
  const address = location.hash.slice(1) || "/";
  const page = makePage(signal);
  try {
    await showing(page, address);
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof Problem && error.status === 401) {
      page.main.append(h("p", null, "Nothing can be shown without a valid key.")); // the form for keys says why
      return;
    }
    if (error instanceof Problem && error.status === 404) {
      fill(page.main, page.heading); // what was begun for it waits in vain
    }
    page.main.append(h("p", { class: "failure", role: "alert" }, why(error)));
    if (!(error instanceof Problem || error instanceof Away)) console.error(error);
  }
}

/**
 * @param {AbortSignal} signal
 * @returns {Page}
 */
function makePage(signal) {
  const heading = h("h1");
  const title = (/** @type {string} */ text) => {
    heading.textContent = text;
    document.title = `${text} – Partita`;
    announce(text);
  };
  return { main: h("div", { class: "view" }, heading), heading, signal, announce, title };
}

/**
 * @param {Page} page
 * @param {string} address
 */
async function showing(page, address) {
  for (const [pattern, load] of VIEWS) {
    const found = pattern.exec(address);
    if (!found) continue;
    const view = await load();
    if (page.signal.aborted) return;
    fill(main, page.main);
    await view.show(page, ...found.slice(1).map((part) => part ?? ""));
    return;
  }
  fill(main, page.main);
  page.title("Nothing here");
  page.main.append(h("p", null, "This page has no such view. ", h("a", { href: "#/" }, "Plan")));
}

/** @param {string} text */
function announce(text) {
  status.textContent = text;
}

/** Show the view of a new address, and let the keyboard and the screen reader begin at its top. */
function moved() {
  announce("");
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
  void show();
}

byId("skip", HTMLButtonElement).addEventListener("click", () => main.focus());
addEventListener("hashchange", moved);
watchAccess(() => void show());
void show();
