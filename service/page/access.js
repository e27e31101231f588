// Whose key this tab uses, what it may do, and the form in which it is given.

import { json, key, useKey, why } from "./api.js";
import { byId } from "./dom.js";

/**
 * Who asks, as GET /v1/key has it.
 * @typedef {object} Caller
 * @property {string | null} name
 * @property {"read" | "solve" | "admin"} role
 */

const NEEDED = "This server asks for an API key. Whoever runs it makes one with partita keys create.";

/** @type {Promise<Caller | null> | null} */
let asked = null;

/** Give who asks; null where the server lets nobody in like this. */
export function caller() {
  asked ??= json("/v1/key").catch(() => null);
  return asked;
}

/**
 * Leave a button to keys that may change something; others see why they cannot use it.
 * @param {HTMLButtonElement} button
 */
export async function restrict(button) {
  if (await maySolve()) return;
  button.disabled = true;
  button.title = "This needs a key with the role solve.";
}

/** Tell whether the key may ask for plans and change jobs, or only look. */
export async function maySolve() {
  const found = await caller();
  return found !== null && found.role !== "read";
}

/**
 * Let the user give a key.
 * @param {() => void} onChange Called when another key is used.
 */
export function watchAccess(onChange) {
  const form = byId("access-form", HTMLFormElement);
  const field = byId("key", HTMLInputElement);
  const button = byId("access", HTMLButtonElement);
  const reason = byId("access-reason", HTMLElement);
  /** @param {boolean} open */
  const show = (open) => {
    form.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
  };
  /** @param {string} text */
  const use = (text) => {
    useKey(text);
    asked = null;
    field.value = "";
    reason.textContent = "";
    show(false);
    tell(button);
    onChange();
  };
  button.addEventListener("click", () => {
    show(form.hidden);
    if (!form.hidden) field.focus();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    use(field.value.trim());
  });
  byId("forget", HTMLButtonElement).addEventListener("click", () => use(""));
  addEventListener("refused", (event) => {
    const problem = /** @type {CustomEvent<import("./api.js").Problem>} */ (event).detail;
    reason.textContent = problem.status === 401 && !key() ? NEEDED : why(problem);
    show(true);
    field.focus();
  });
  tell(button);
}

/**
 * Write on the button whose key is used.
 * @param {HTMLButtonElement} button
 */
async function tell(button) {
  const found = await caller();
  button.textContent = found?.name ? `Key: ${found.name} (${found.role})` : "Key";
}
