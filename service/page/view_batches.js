// Many problems at once: begin a batch, and those so far.

import { restrict } from "./access.js";
import { Problem, described, freshName, json, send, why } from "./api.js";
import { droppedFile, fill, h, table } from "./dom.js";
import { Editor } from "./editor.js";
import { counted, moment, sized } from "./format.js";

/** @typedef {import("./main.js").Page} Page */
/** @typedef {import("./batch_follow.js").Batch} Batch */

const NDJSON = "application/x-ndjson";
const MOST_SHOWN = 2 ** 20; // characters of a file; a longer one is sent without being shown

/** What the user has written, while other views are shown. */
const draft = { text: "" };

/** @param {Page} page */
export async function show(page) {
  page.title("Batches");
  const list = h("div", null, h("p", null, "Looking …"));
  page.main.append(new Form(page).element, h("h2", null, "Batches so far"), list);
  const found = await json("/v1/batches?limit=50", { signal: page.signal });
  fill(list, found.batches.length ? listOf(found.batches) : h("p", null, "None yet."));
}

/** @param {Batch[]} batches */
function listOf(batches) {
  const rows = batches.map((batch) => [
    h("a", { href: `#/batches/${batch.id}` }, `Batch ${batch.id.slice(0, 8)}`),
    counted(batch.total, "problem"),
    String(batch.queued + batch.running),
    String(batch.failed),
    moment(batch.created_at),
  ]);
  return table("The newest first", ["Batch", "Size", "To go", "Failed", "Asked for"], rows);
}

/**
 * Tell whether a text is a batch in one JSON document; otherwise it is taken as NDJSON.
 * @param {string} text
 */
function isDocument(text) {
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object") return false;
    // A value of several lines cannot be a line; the server says what is missing in it.
    return ["problems", "base", "variants"].some((member) => member in value) || text.trim().includes("\n");
  } catch {
    // A brace that stands alone, or one of the members, begins a document with a mistake in it.
    return /^\s*\{\s*(\n|"(problems|base|variants)")/.test(text);
  }
}

class Form {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    /** @type {File | null} */
    this.file = null;
    this.wrong = h("div", { class: "wrong-list", role: "alert" });
    this.editor = new Editor("batch", draft.text, (marks) => this.list(marks));
    this.editor.field.addEventListener("input", () => this.wrote());
    this.button = h("button", { type: "submit", class: "main" }, "Plan all");
    this.note = h("span", { class: "note" });
    const file = h("input", { type: "file", accept: ".ndjson,.jsonl,.json", id: "batch-file" });
    file.addEventListener("change", () => void this.open(file.files?.[0]));
    const example = h("button", { type: "button", class: "quiet", onclick: () => void this.example() }, "Example");
    this.element = h(
      "form",
      {
        onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), void this.ask()),
        ondragover: (/** @type {Event} */ event) => event.preventDefault(),
        ondrop: (/** @type {DragEvent} */ event) => this.dropped(event),
      },
      h(
        "p",
        null,
        "Paste or drop problems as NDJSON, one on every line, or one JSON document: ",
        h("code", null, '{"problems": […]}'),
        " or ",
        h("code", null, '{"base": {…}, "variants": [{"name": …, "patch": {…}}]}'),
        ", with merge patches of the base.",
      ),
      h("div", { class: "row" }, example, h("label", { for: "batch-file" }, "File ", file)),
      h("label", { for: "batch" }, "Problems"),
      this.editor.element,
      this.wrong,
      h("div", { class: "row" }, this.button, this.note),
    );
    void restrict(this.button);
  }

  wrote() {
    draft.text = this.editor.text;
    this.file = null;
    this.note.textContent = "";
  }

  /** Begin with the first example of the call. */
  async example() {
    const { examples } = (await described()).paths["/v1/batches"].post.requestBody.content["application/json"];
    const [first] = /** @type {{ value: unknown }[]} */ (Object.values(examples));
    this.editor.text = JSON.stringify(first?.value, null, 1);
    this.wrote();
  }

  /** @param {File | undefined} file */
  async open(file) {
    if (!file) return;
    const short = file.size <= MOST_SHOWN;
    this.editor.text = short ? await file.text() : "";
    this.wrote();
    if (short) return;
    this.file = file;
    this.note.textContent = `${file.name} (${sized(file.size)}) is too long to be shown; it is sent as it is.`;
  }

  /** @param {DragEvent} event */
  dropped(event) {
    void this.open(droppedFile(event));
  }

  async ask() {
    const text = this.file ? await this.file.text() : this.editor.text;
    const type = isDocument(text) ? "application/json" : NDJSON;
    this.button.disabled = true;
    this.note.textContent = "Sending …";
    this.editor.mark([]);
    try {
      const headers = { "Content-Type": type, "Idempotency-Key": freshName() };
      const response = await send("/v1/batches", { method: "POST", body: text, headers, signal: this.page.signal });
      location.hash = `#/batches/${(await response.json()).id}`;
    } catch (error) {
      if (this.page.signal.aborted) return;
      this.note.textContent = "";
      if (error instanceof Problem && error.places.length && !this.file) this.refused(error.places);
      else fill(this.wrong, h("p", null, why(error)));
    } finally {
      this.button.disabled = false;
    }
  }

  /** @param {import("./api.js").Place[]} faults */
  refused(faults) {
    this.editor.mark(faults);
    const [first] = this.editor.marks;
    if (first) this.editor.show(first);
  }

  /** @param {import("./editor.js").Mark[]} marks */
  list(marks) {
    const items = marks.map((mark) => {
      const where = `Line ${mark.line + 1}${mark.fault.pointer && `, ${mark.fault.pointer}`}`;
      const button = h("button", { type: "button", class: "link", onclick: () => this.editor.show(mark) }, where);
      return h("li", null, button, ": ", mark.fault.detail);
    });
    fill(this.wrong, h("ol", null, items));
    this.wrong.hidden = !items.length;
  }
}
