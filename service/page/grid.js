// A table of any length that sorts by its columns: only the rows in sight are elements.

import { fill, h } from "./dom.js";
import { sorted } from "./sorting.js";

const ROW = 34; // as --grid-row in views.css, in pixels
const AROUND = 12; // rows above and below those in sight, so that the keyboard finds a next one

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} title
 * @property {string} width A class of views.css.
 * @property {(row: Row) => import("./sorting.js").Value} value
 * @property {(row: Row) => import("./dom.js").Child} show
 */

/** @typedef {{ column: number, descending: boolean }} Order */

/** @template Row */
export class Grid {
  /**
   * @param {string} caption
   * @param {Column<Row>[]} columns
   * @param {Order} order The first order; kept up to date.
   */
  constructor(caption, columns, order) {
    this.columns = columns;
    this.order = order;
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Map<Row, HTMLTableRowElement>} */
    this.drawn = new Map();
    this.heads = columns.map((column, index) => {
      const button = h("button", { type: "button", class: "sorter", onclick: () => this.sortBy(index) }, column.title);
      return h("th", { scope: "col", class: column.width }, button);
    });
    const head = h("thead", null, h("tr", { "aria-rowindex": 1 }, this.heads));
    this.above = spacer(columns.length);
    this.below = spacer(columns.length);
    this.body = h("tbody", null, this.above, this.below);
    this.table = h("table", { class: "grid" }, h("caption", { class: "unseen" }, caption), head, this.body);
    this.element = h("div", { class: "grid-scroll", tabindex: "0", role: "region", "aria-label": caption }, this.table);
    this.element.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.mark();
  }

  /**
   * Show other rows.
   * @param {Row[]} rows
   */
  show(rows) {
    const { value } = /** @type {Column<Row>} */ (this.columns[this.order.column]);
    this.rows = sorted(rows, value, this.order.descending);
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    this.draw();
  }

  /**
   * Sort by a column, and the other way round where that is so already.
   * @param {number} column
   */
  sortBy(column) {
    this.order.descending = column === this.order.column && !this.order.descending;
    this.order.column = column;
    this.mark();
    this.element.scrollTop = 0;
    this.show(this.rows);
  }

  /** Say by which column it is sorted. */
  mark() {
    this.heads.forEach((head, index) => {
      if (index !== this.order.column) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", this.order.descending ? "descending" : "ascending");
    });
  }

  /** Make the rows in sight, and leave those that are there already, one of which may have the focus. */
  draw() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW) - AROUND);
    const last = Math.min(this.rows.length, first + Math.ceil(this.element.clientHeight / ROW) + 2 * AROUND);
    const wanted = this.rows.slice(first, last);
    const kept = new Set(wanted);
    for (const [row, element] of this.drawn) {
      if (kept.has(row)) continue;
      element.remove();
      this.drawn.delete(row);
    }
    let next = this.above.nextElementSibling;
    wanted.forEach((row, index) => {
      const element = this.drawn.get(row) ?? this.make(row);
      element.setAttribute("aria-rowindex", String(first + index + 2));
      if (element === next) next = next.nextElementSibling;
      else this.body.insertBefore(element, next);
    });
    stretch(this.above, first);
    stretch(this.below, this.rows.length - last);
  }

  /** @param {Row} row */
  make(row) {
    const cells = this.columns.map((column, index) => {
      const shown = column.show(row);
      const element = index ? h("td", { class: column.width }) : h("th", { scope: "row", class: column.width });
      fill(element, shown);
      if (element.textContent) element.title = element.textContent; // a long one is cut off
      return element;
    });
    const element = h("tr", null, cells);
    this.drawn.set(row, element);
    return element;
  }
}

/** @param {number} columns */
function spacer(columns) {
  return h("tr", { "aria-hidden": "true", class: "spacer" }, h("td", { colspan: columns }));
}

/**
 * @param {HTMLTableRowElement} element
 * @param {number} rows
 */
function stretch(element, rows) {
  element.hidden = rows <= 0;
  element.style.height = `${Math.max(0, rows) * ROW}px`;
}
