// Whose key this tab uses, what it may do, and the form in which it is given.

import { Problem, json, key, useKey, why } from "./api.js";
import { byId } from "./dom.js";

/**
 * Who asks, as GET /v1/key has it.
 * @typedef {object} Caller
 * @property {string | null} name
 * @property {"read" | "solve" | "admin"} role
 */

const SENDABLE = /^[\x21-\x7e]*$/; // what a header can hold
const NOT_A_KEY = "This is no key: it has spaces, or letters that no key has. Copy it again.";
const NEEDED = "This server asks for an API key. Whoever runs it makes one with partita keys create.";

/** @type {Promise<Caller | null | undefined> | null} */
let asked = null;

/** Give who asks; null where the server lets nobody in like this, undefined where it is away. */
function caller() {
  asked ??= json("/v1/key").catch((error) => {
    if (error instanceof Problem && error.status < 500) return null;
    asked = null; // it may be back when this is needed next
    return undefined;
  });
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

/** Tell whether the key may ask for plans and change jobs, or only look; yes while the server cannot say. */
export async function maySolve() {
  const found = await caller();
  return found === undefined || (found !== null && found.role !== "read");
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
    const text = field.value.trim();
    if (SENDABLE.test(text)) return use(text);
    reason.textContent = NOT_A_KEY;
    return field.focus();
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
