// Ask for a plan: a problem as JSON, what is wrong in it, and the jobs so far.

import { maySolve } from "./access.js";
import { Problem, described, freshName, json, send, why } from "./api.js";
import { droppedFile, fill, h } from "./dom.js";
import { Editor } from "./editor.js";
import { counted } from "./format.js";
import { frontForm } from "./front_form.js";
import { recent } from "./recent.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./editor.js").Mark} Mark */
/** @typedef {import("./api.js").Place} Place */

const TEMPLATE = { training: { schedule: "1f1b", num_stages: null, num_microbatches: 8 } };

/**
 * The problems that were sent from here, by their jobs: what is wrong in one may show only after a while.
 * @type {Map<string, string>}
 */
export const sent = new Map();

/** What the user has written, while other views are shown; with what was wrong in it where a job failed. */
const draft = { text: "", faults: /** @type {Place[]} */ ([]) };

/**
 * Let the user go on with a problem.
 * @param {string} text
 */
export function edit(text) {
  draft.text = text;
  draft.faults = [];
  location.hash = "#/";
}

/**
 * Show what is wrong in a problem where it was written, in place of the view of its job, unless it was changed since.
 * @param {string} text
 * @param {Place[]} faults
 * @returns {boolean} Whether it is shown.
 */
export function correct(text, faults) {
  if (draft.text !== text) return false;
  draft.faults = faults;
  location.replace("#/"); // or the button that leads back would lead to the job, and that here again
  return true;
}

/** @param {Page} page */
export async function show(page) {
  page.title("Plan pipeline parallelism");
  const form = new Form(page);
  page.main.append(form.element, h("h2", null, "Jobs"), recent(page.signal));
  if (draft.faults.length) form.refused(draft.faults);
  await Promise.all([form.offer(), form.restrict()]);
}

class Form {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.wrong = h("div", { class: "wrong-list", role: "alert" });
    this.editor = new Editor("problem", draft.text, (marks) => this.list(marks));
    this.choices = h("div", { class: "row" });
    this.button = h("button", { type: "submit", class: "main" }, "Plan");
    this.note = h("span", { class: "note" });
    this.element = h(
      "form",
      {
        onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), void this.ask()),
        ondragover: (/** @type {Event} */ event) => event.preventDefault(),
        ondrop: (/** @type {DragEvent} */ event) => this.dropped(event),
      },
      h("p", null, "Paste a problem as JSON, drop its file here, or begin with an example."),
      this.choices,
      h("label", { for: "problem" }, "Problem"),
      this.editor.element,
      this.wrong,
      h("div", { class: "row" }, this.button, this.note),
      frontForm(page, () => this.editor.text, (faults) => this.refused(faults)),
    );
    this.editor.field.addEventListener("input", () => (draft.text = this.editor.text));
  }

  /** Offer a file, the examples, and what is stored on the server. */
  async offer() {
    const signal = this.page.signal;
    const file = h("input", { type: "file", accept: ".json,application/json", id: "file" });
    file.addEventListener("change", () => void this.open(file.files?.[0]));
    fill(this.choices, h("label", { for: "file" }, "File ", file));
    const [description, models, clusters] = await Promise.all([
      described(),
      json("/v1/profiles", { signal }),
      json("/v1/clusters", { signal }),
    ]);
    const body = description.paths["/v1/plans"].post.requestBody.content["application/json"];
    /** @type {[string, { summary: string, value: unknown }][]} */
    const examples = Object.entries(body.examples);
    const example = choice("Example", examples.map(([name, { summary }]) => [name, summary]), (name) => {
      this.put(examples.find(([each]) => each === name)?.[1].value);
    });
    const stored = [["model", "Stored model", models], ["cluster", "Stored cluster", clusters]].map(
      ([member, label, list]) => {
        const names = list.documents.map((/** @type {{ name: string }} */ each) => [each.name, each.name]);
        return names.length ? choice(label, names, (name) => this.refer(member, name)) : null;
      },
    );
    fill(this.choices, example, ...stored, h("label", { for: "file" }, "File ", file));
  }

  /** Say so where the key may only look. */
  async restrict() {
    if (await maySolve()) return;
    this.button.disabled = true;
    this.note.textContent = "Planning needs a key with the role solve.";
  }

  /** @param {unknown} value */
  put(value) {
    this.editor.text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
    draft.text = this.editor.text; // the field has ends of lines of its own
  }

  /**
   * Let the problem name a stored model or cluster in place of its own.
   * @param {string} member
   * @param {string} name
   */
  refer(member, name) {
    try {
      const problem = this.editor.text.trim() ? JSON.parse(this.editor.text) : TEMPLATE;
      this.put({ ...problem, [member]: { ref: name } });
    } catch {
      this.note.textContent = "The text is no JSON yet; correct it first.";
    }
  }

  /** @param {File | undefined} file */
  async open(file) {
    if (file) this.put(await file.text());
  }

  /** @param {DragEvent} event */
  dropped(event) {
    void this.open(droppedFile(event));
  }

  /** Send the problem; what is wrong in it is shown here, and what is searched in a view of its own. */
  async ask() {
    if (this.button.disabled) return;
    const text = this.editor.text;
    this.button.disabled = true;
    this.note.textContent = "Sending …";
    this.editor.mark([]);
    try {
      const headers = { Prefer: "wait=1", "Idempotency-Key": freshName() };
      const response = await send("/v1/plans", { method: "POST", body: text, headers, signal: this.page.signal });
      const job = (response.headers.get("Location") ?? "").split("/").pop() ?? "";
      sent.set(job, text);
      location.hash = `#/plans/${job}`;
    } catch (error) {
      if (this.page.signal.aborted) return;
      this.note.textContent = "";
      if (error instanceof Problem && error.places.length) this.refused(error.places);
      else this.complain(h("p", null, why(error)));
    } finally {
      this.button.disabled = false;
    }
  }

  /** @param {Place[]} faults */
  refused(faults) {
    draft.faults = [];
    this.editor.mark(faults);
    const first = this.editor.marks[0];
    if (first) this.editor.show(first);
  }

  /** @param {Mark[]} marks */
  list(marks) {
    const items = marks.map((mark) => {
      const where = `Line ${mark.line + 1}${mark.fault.pointer && `, ${mark.fault.pointer}`}`;
      const got = mark.fault.value ? ` (got ${mark.fault.value})` : "";
      const button = h("button", { type: "button", class: "link", onclick: () => this.editor.show(mark) }, where);
      return h("li", null, button, ": ", mark.fault.detail, got);
    });
    if (items.length) this.complain(h("p", null, `${counted(items.length, "thing")} to correct:`), h("ol", null, items));
    else this.complain();
  }

  /** @param {...HTMLElement} children Nothing where all is well. */
  complain(...children) {
    fill(this.wrong, ...children);
    this.wrong.hidden = !children.length;
  }
}

/**
 * Make a list to choose from, which does something with what is chosen.
 * @param {string} label
 * @param {string[][]} options
 * @param {(name: string) => void} onChoice
 */
function choice(label, options, onChoice) {
  const list = h(
    "select",
    { id: label.toLowerCase().replace(" ", "-") },
    h("option", { value: "" }, "choose …"),
    options.map(([value, text]) => h("option", { value }, text)),
  );
  list.addEventListener("change", () => list.value && onChoice(list.value));
  return h("label", null, `${label} `, list);
}
