// Sends the example of a call, as it stands in its text field, to this server, with the key where one is given, and
// shows what comes back.

import { byId } from "./dom.js";

/** @param {HTMLElement} example */
async function send(example) {
  const field = example.querySelector("textarea");
  const state = example.querySelector("output");
  const shown = example.querySelector("pre");
  if (!state || !shown) return;
  const key = byId("key", HTMLInputElement).value.trim();
  /** @type {Record<string, string>} */
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  if (field) headers["Content-Type"] = "application/json";
  state.textContent = "…";
  const begin = performance.now();
  try {
    const request = { method: example.dataset["method"], headers, body: field?.value };
    const response = await fetch(example.dataset["path"] ?? "", request);
    const text = await response.text();
    state.textContent = `${response.status} after ${((performance.now() - begin) / 1000).toFixed(2)} s`;
    try {
      shown.textContent = JSON.stringify(JSON.parse(text), null, 1);
    } catch {
      shown.textContent = text;
    }
  } catch (error) {
    state.textContent = "no answer";
    shown.textContent = String(error);
  }
  shown.hidden = false;
}

for (const example of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".example"))) {
  example.querySelector("button")?.addEventListener("click", () => void send(example));
}

/** A link to a folded part opens it. */
function unfold() {
  const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (part instanceof HTMLDetailsElement) part.open = true;
}
addEventListener("hashchange", unfold);
unfold();
