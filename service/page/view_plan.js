// One job for a plan: how far it is while it goes on, and its answer.

import { restrict } from "./access.js";
import { json, why } from "./api.js";
import { showAnswer } from "./answer.js";
import { fill, h, keepFocus } from "./dom.js";
import { follow } from "./follow.js";
import { readable } from "./format.js";
import { Live } from "./live.js";
import { correct, sent } from "./view_home.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./follow.js").Job} Job */

/**
 * @param {Page} page
 * @param {string} name
 * @param {string} [candidate]
 */
export async function show(page, name, candidate) {
  page.title("Plan");
  const path = `/v1/plans/${name}`;
  const body = h("div", null, h("p", null, "Looking …"));
  page.main.append(body);
  /** @type {Going | null} */
  let going = null;
  for await (const news of follow(path, page.signal)) {
    if ("away" in news) {
      going ??= new Going(page, path, body);
      going.away();
    } else if (news.ended) {
      page.announce(`The job has ${news.job.state}.`);
      await ended(page, body, news.job, Number(candidate || 1));
      keepFocus();
    } else {
      going ??= new Going(page, path, body);
      going.update(news.job);
    }
  }
}

/** A job that has not ended. */
export class Going {
  /**
   * @param {Page} page
   * @param {string} path
   * @param {HTMLElement} body
   */
  constructor(page, path, body) {
    this.page = page;
    this.path = path;
    this.state = "";
    this.line = h("p", null, "Looking …");
    this.live = new Live(objectiveOf(sent.get(path.split("/").pop() ?? "")));
    const stop = this.verb("Stop and keep the best", `${path}/stop`, "POST");
    const cancel = this.verb("Cancel", path, "DELETE");
    this.note = h("p", { role: "alert" });
    fill(body, this.line, h("div", { class: "row" }, stop, cancel), this.note, this.live.element);
  }

  /**
   * @param {string} text
   * @param {string} path
   * @param {string} method
   */
  verb(text, path, method) {
    const button = h("button", { type: "button" }, text);
    button.addEventListener("click", () => {
      button.disabled = true;
      keepFocus();
      json(path, { method, signal: this.page.signal }).catch((error) => {
        button.disabled = false;
        if (!this.page.signal.aborted) this.note.textContent = why(error);
      });
    });
    void restrict(button);
    return button;
  }

  away() {
    this.state = "away";
    this.line.textContent = "The server is away. The job is kept there; this page goes on when it is back.";
    this.page.announce("The server is away.");
  }

  /** @param {Job} job */
  update(job) {
    if (job.state !== this.state) {
      this.state = job.state;
      this.line.textContent = job.state === "queued" ? "Waits for its turn." : "Being planned.";
      this.page.announce(this.line.textContent);
    }
    this.live.update(job);
  }
}

/**
 * Give the objective of a problem as it was written.
 * @param {string | undefined} text
 */
function objectiveOf(text) {
  try {
    return text && (JSON.parse(text).objective ?? "iteration_time");
  } catch {
    return undefined;
  }
}

/**
 * @param {Page} page
 * @param {HTMLElement} body
 * @param {Job} job
 * @param {number} candidate
 */
async function ended(page, body, job, candidate) {
  const text = sent.get(job.id);
  sent.delete(job.id); // who comes back to the job sees what became of it
  const failure = job.failure;
  if (failure && text && failure.errors.length && correct(text, failure.errors)) return;
  if (job.state === "succeeded") {
    await showAnswer(page, body, job, candidate);
  } else {
    failed(body, job);
  }
}

/**
 * Say why a job has no answer.
 * @param {HTMLElement} body
 * @param {Job} job
 */
export function failed(body, { failure }) {
  if (!failure) return fill(body, h("p", null, "The job was cancelled; it has no plan."));
  const places = failure.errors.map((each) => h("li", null, h("code", null, each.pointer), " ", readable(each.detail)));
  return fill(body, h("p", { class: "failure", role: "alert" }, readable(`${failure.title}: ${failure.detail}.`)), h("ul", null, places));
}
