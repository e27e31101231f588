// Elements, made without any markup: what users wrote is text, whatever it holds.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown>} Attributes */

/**
 * Make an element.
 *
 * Attributes whose names begin with `on` are listeners; true and false set or leave out an attribute; null leaves it out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...nodes(children));
  return element;
}

/**
 * Put other children into an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  return children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/**
 * Make a table with a caption and a row of headings; the first cell of a row is its heading.
 * @param {string} caption
 * @param {string[]} headings
 * @param {Child[][]} rows
 * @param {Attributes} [attributes]
 */
export function table(caption, headings, rows, attributes) {
  const head = h("tr", null, headings.map((text) => h("th", { scope: "col" }, text)));
  const body = rows.map((cells) =>
    h("tr", null, cells.map((cell, column) => (column ? h("td", null, cell) : h("th", { scope: "row" }, cell)))),
  );
  // A table that is wider than the window scrolls by itself, also with the keyboard.
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", attributes ?? null, h("caption", null, caption), h("thead", null, head), h("tbody", null, body)),
  );
}

/**
 * Let the user keep some content as a file.
 * @param {Blob} content
 * @param {string} name
 */
export function save(content, name) {
  const url = URL.createObjectURL(content);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Let the keyboard go on at the top of the view where what had the focus is no more, or can no longer be used. */
export function keepFocus() {
  const held = document.activeElement;
  if (!held || held === document.body || held.matches(":disabled")) byId("main", HTMLElement).focus({ preventScroll: true });
}

/**
 * Take a file that is dropped, in the place of what the browser does with it.
 * @param {DragEvent} event
 */
export function droppedFile(event) {
  const file = event.dataTransfer?.files[0];
  if (file) event.preventDefault();
  return file;
}

/**
 * Find an element that the page always has.
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export function byId(id, kind) {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`the page has no ${id}`);
  return element;
}
