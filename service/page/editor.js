// A field for JSON that shows what is wrong in it at the line that it is about.

import { fill, h } from "./dom.js";
import { lineOf, places } from "./json_places.js";

const LINE = 20; // as --row in page.css, in pixels
const SETTLED_MS = 250;

/** @typedef {import("./api.js").Place} Place */
/** @typedef {{ fault: Place, start: number, end: number, line: number }} Mark */

export class Editor {
  /**
   * @param {string} id
   * @param {string} text
   * @param {(marks: Mark[]) => void} onMarks Told when faults are marked, or have moved with the text.
   */
  constructor(id, text, onMarks) {
    this.onMarks = onMarks;
    /** @type {Mark[]} */
    this.marks = [];
    this.lines = 1;
    this.gutter = h("div", { class: "gutter", "aria-hidden": "true" });
    this.behind = h("div", { class: "behind", "aria-hidden": "true" });
    this.field = h("textarea", {
      id,
      wrap: "off",
      rows: 18,
      spellcheck: "false",
      autocapitalize: "off",
      oninput: () => this.changed(),
      onscroll: () => this.draw(),
    });
    this.element = h("div", { class: "editor" }, this.behind, this.gutter, this.field);
    this.text = text;
    new ResizeObserver(() => this.draw()).observe(this.field);
  }

  get text() {
    return this.field.value;
  }

  set text(text) {
    this.field.value = text;
    this.mark([]);
    this.changed();
  }

  changed() {
    this.lines = this.field.value.split("\n").length;
    this.draw();
    clearTimeout(this.settling);
    if (this.marks.length) this.settling = setTimeout(() => this.mark(this.marks.map((mark) => mark.fault)), SETTLED_MS);
  }

  /**
   * Mark what is wrong; none to mark nothing.
   * @param {Place[]} faults
   */
  mark(faults) {
    const text = this.text;
    this.marks = places(text, faults).map((span, index) => {
      return { fault: /** @type {Place} */ (faults[index]), ...span, line: lineOf(text, span.start) };
    });
    this.field.setAttribute("aria-invalid", String(faults.length > 0));
    this.draw();
    this.onMarks(this.marks);
  }

  /**
   * Show a mark: its text is selected and stands in the middle of the field.
   * @param {Mark} mark
   */
  show(mark) {
    this.field.focus();
    this.field.setSelectionRange(mark.start, mark.end);
    this.field.scrollTop = Math.max(0, mark.line * LINE - this.field.clientHeight / 2);
    this.field.scrollLeft = 0;
    this.draw();
  }

  /** Draw the numbers of the lines in sight, and the marks among them: a long text has too many for all. */
  draw() {
    const top = this.field.scrollTop;
    const first = Math.floor(top / LINE);
    const last = Math.min(this.lines, first + Math.ceil(this.field.clientHeight / LINE) + 1);
    const wrong = new Map(this.marks.map((mark) => [mark.line, mark.fault.detail]));
    const numbers = [];
    const bands = [];
    for (let line = first; line < last; line += 1) {
      numbers.push(at(line * LINE - top, h("span", { class: wrong.has(line) ? "wrong" : null }, line + 1)));
      const detail = wrong.get(line);
      if (detail) bands.push(at(line * LINE - top, h("div", { class: "band" }, h("span", null, detail))));
    }
    fill(this.gutter, numbers);
    fill(this.behind, bands);
  }
}

/**
 * @template {HTMLElement} Kind
 * @param {number} top
 * @param {Kind} element
 */
function at(top, element) {
  element.style.transform = `translateY(${top}px)`;
  return element;
}
