// Pictures: each is specified by the server, drawn here, and can be kept as SVG or PNG.

import { json, why } from "./api.js";
import { fill, h, save } from "./dom.js";

/**
 * @typedef {object} View The part of a view of Vega that is used here.
 * @property {() => Promise<string>} toSVG
 * @property {(scale: number) => Promise<HTMLCanvasElement>} toCanvas
 * @property {(name: string, handler: (event: Event, item: { datum?: any } | null) => void) => void} addEventListener
 * @property {() => void} finalize
 */

/**
 * @typedef {object} Wanted
 * @property {string} path The path of the picture's call, without its query.
 * @property {Record<string, string | number>} [query] What else the call takes.
 * @property {string} title
 * @property {string} summary
 * @property {string} file The name of files that are kept, without their endings.
 * @property {AbortSignal} signal
 * @property {import("./dom.js").Child} [table] The same figures, for those who do not see the picture.
 * @property {(datum: any) => void} [onClick] Told what was clicked on.
 */

const LIBRARY = "/page/vega.js"; // a mebibyte, so it is loaded with the first picture
const DARK = matchMedia("(prefers-color-scheme: dark)");
const SHARP = 2;

let pictures = 0;

export class Picture {
  /** @param {Wanted} wanted */
  constructor(wanted) {
    this.wanted = wanted;
    /** @type {View | null} */
    this.view = null;
    this.turn = 0;
    const id = `picture-${(pictures += 1)}`;
    this.place = h("div", { class: "drawing", tabindex: "0", role: "group", "aria-labelledby": id, "aria-busy": "true" }, "Drawing …");
    this.note = h("p", { role: "alert" });
    this.buttons = h("div", { class: "row" }, this.keep("SVG"), this.keep("PNG"), this.note);
    this.buttons.hidden = true;
    const table = wanted.table && h("details", null, h("summary", null, "Its figures as a table"), wanted.table);
    this.element = h(
      "section",
      { class: "picture", "aria-labelledby": id },
      h("h3", { id }, wanted.title),
      h("p", { class: "faint" }, wanted.summary),
      this.place,
      this.buttons,
      table,
    );
    DARK.addEventListener("change", () => void this.draw(), { signal: wanted.signal });
    wanted.signal.addEventListener("abort", () => this.view?.finalize(), { once: true });
  }

  /** Draw, again where the colors have changed; where that cannot be, say why. */
  async draw() {
    const { path, query, signal } = this.wanted;
    const turn = (this.turn += 1); // what was asked for before this comes too late
    this.place.setAttribute("aria-busy", "true");
    const asked = new URLSearchParams({ theme: DARK.matches ? "dark" : "light" });
    for (const [name, value] of Object.entries(query ?? {})) asked.set(name, String(value));
    try {
      const [specification] = await Promise.all([json(`${path}?${asked}`, { signal }), import(LIBRARY)]);
      if (signal.aborted || turn !== this.turn) return;
      await this.embed(specification);
    } catch (error) {
      if (signal.aborted || turn !== this.turn) return;
      fill(this.place, why(error));
      this.buttons.hidden = true;
    }
    this.place.removeAttribute("aria-busy");
  }

  /** @param {Record<string, unknown>} specification */
  async embed(specification) {
    this.view?.finalize();
    const frame = h("div");
    fill(this.place, frame);
    // Expressions are walked, not compiled, and styles are those of page.css: the policy allows nothing else.
    const options = { ast: true, actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true } };
    /** @type {{ view: View }} */
    const { view } = await /** @type {any} */ (window).vegaEmbed(frame, specification, { ...options, renderer: "canvas" });
    this.view = view;
    view.addEventListener("click", (_, item) => item?.datum && this.wanted.onClick?.(item.datum));
    this.buttons.hidden = false;
  }

  /** @param {"SVG" | "PNG"} format */
  keep(format) {
    const name = `${this.wanted.file}.${format.toLowerCase()}`;
    const text = `${format} of ${this.wanted.title.toLowerCase()}`;
    return h("button", { type: "button", class: "quiet", "aria-label": `Save ${text}`, onclick: () => void this.save(name) }, format);
  }

  /** @param {string} name */
  async save(name) {
    if (!this.view) return;
    this.note.textContent = "";
    try {
      save(await (name.endsWith(".svg") ? svgOf(this.view) : pngOf(this.view)), name);
    } catch (error) {
      this.note.textContent = why(error);
    }
  }
}

/** @param {View} view */
async function svgOf(view) {
  return new Blob([await view.toSVG()], { type: "image/svg+xml" });
}

/**
 * @param {View} view
 * @returns {Promise<Blob>}
 */
async function pngOf(view) {
  const canvas = await view.toCanvas(SHARP);
  const content = await new Promise((/** @type {(content: Blob | null) => void} */ made) => canvas.toBlob(made, "image/png"));
  if (!content) throw new Error("The browser cannot make a PNG of this size; keep it as SVG.");
  return content;
}
