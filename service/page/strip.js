// The layers of a plan as a strip whose cuts are moved with the pointer or the keyboard.

import { closest, edges, limits, moved } from "./cuts.js";
import { fill, h } from "./dom.js";
import { counted } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const LEAST_STAGE = 26; // pixels: room for a stage's number and a finger
const WIDE = 1000; // of the picture's own coordinates
const FAR = 10; // layers at once with Page Up and Page Down

export class Strip {
  /**
   * @param {string[]} layers
   * @param {number[]} times
   * @param {number[]} cuts
   * @param {(cuts: number[]) => void} onMove
   */
  constructor(layers, times, cuts, onMove) {
    this.layers = layers;
    this.edge = edges(times);
    this.cuts = cuts;
    this.onMove = onMove;
    this.stages = Array.from({ length: cuts.length + 1 }, (_, index) => h("div", { class: "stage" }, index));
    this.handles = cuts.map((_, index) => this.handle(index));
    this.track = h("div", { class: "strip" }, this.stages, this.ticks(), this.handles);
    this.track.style.minWidth = `${LEAST_STAGE * this.stages.length}px`;
    this.said = h("p", { class: "faint" }, "Drag a cut, or choose one with Tab and move it with the arrow keys.");
    this.element = h("div", null, h("div", { class: "scroll strip-scroll" }, this.track), this.said);
    this.draw();
  }

  /** @param {number} index */
  handle(index) {
    const handle = h("div", { class: "cut", role: "slider", tabindex: "0", "aria-orientation": "horizontal" });
    handle.setAttribute("aria-label", `Cut between stage ${index} and stage ${index + 1}`);
    handle.addEventListener("keydown", (event) => this.pressed(event, index));
    handle.addEventListener("focus", () => this.say(index));
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      handle.focus();
      event.preventDefault();
    });
    handle.addEventListener("pointermove", (event) => {
      if (handle.hasPointerCapture(event.pointerId)) this.move(index, this.under(event));
    });
    return handle;
  }

  /** @param {PointerEvent} event */
  under(event) {
    const { left, width } = this.track.getBoundingClientRect();
    return closest(this.edge, (event.clientX - left) / width);
  }

  /**
   * @param {KeyboardEvent} event
   * @param {number} index
   */
  pressed(event, index) {
    const at = Number(this.cuts[index]);
    const { least, most } = limits(this.cuts, index, this.layers.length);
    /** @type {Record<string, number>} */
    const places = {
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      PageDown: at - FAR,
      PageUp: at + FAR,
      Home: least,
      End: most,
    };
    const place = places[event.key];
    if (place === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.move(index, place);
  }

  /**
   * @param {number} index
   * @param {number} place
   */
  move(index, place) {
    const cuts = moved(this.cuts, index, place, this.layers.length);
    if (cuts[index] === this.cuts[index]) return;
    this.put(cuts);
    this.say(index);
    this.onMove(cuts);
  }

  /**
   * Show other cuts.
   * @param {number[]} cuts
   */
  put(cuts) {
    this.cuts = cuts;
    this.draw();
  }

  draw() {
    const ends = [0, ...this.cuts, this.layers.length];
    const at = ends.map((end) => 100 * Number(this.edge[end]));
    this.stages.forEach((stage, index) => {
      stage.style.left = `${at[index]}%`;
      stage.style.width = `${Number(at[index + 1]) - Number(at[index])}%`;
    });
    this.handles.forEach((handle, index) => {
      const { least, most } = limits(this.cuts, index, this.layers.length);
      handle.style.left = `${at[index + 1]}%`;
      handle.setAttribute("aria-valuemin", String(least));
      handle.setAttribute("aria-valuemax", String(most));
      handle.setAttribute("aria-valuenow", String(this.cuts[index]));
      handle.setAttribute("aria-valuetext", this.where(index));
    });
  }

  /** @param {number} index */
  where(index) {
    const [start, at, end] = [this.cuts[index - 1] ?? 0, Number(this.cuts[index]), this.cuts[index + 1] ?? this.layers.length];
    const sizes = `stage ${index} has ${counted(at - start, "layer")}, stage ${index + 1} ${end - at}`;
    return `after ${this.layers[at - 1]}; ${sizes}`;
  }

  /** @param {number} index */
  say(index) {
    fill(this.said, `Cut ${this.where(index)}.`);
  }

  /** Draw where layers end, as one line each. */
  ticks() {
    const picture = document.createElementNS(SVG, "svg");
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", this.edge.slice(1, -1).map((edge) => `M${(edge * WIDE).toFixed(2)} 0v1`).join(""));
    for (const [name, value] of [["viewBox", `0 0 ${WIDE} 1`], ["preserveAspectRatio", "none"], ["aria-hidden", "true"]]) {
      picture.setAttribute(String(name), String(value));
    }
    picture.append(path);
    return picture;
  }
}
