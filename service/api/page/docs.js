"use strict";

// Sends the example of a call, as it stands in its text field, to this server, with the key where one is given, and shows what comes back.
async function send(example) {
  const field = example.querySelector("textarea");
  const state = example.querySelector("output");
  const shown = example.querySelector("pre");
  const request = { method: example.dataset.method, headers: {} };
  const key = document.getElementById("key").value.trim();
  if (key) request.headers["Authorization"] = `Bearer ${key}`;
  if (field) {
    request.headers["Content-Type"] = "application/json";
    request.body = field.value;
  }
  state.textContent = "…";
  const begin = performance.now();
  try {
    const response = await fetch(example.dataset.path, request);
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

for (const example of document.querySelectorAll(".example")) {
  example.querySelector("button").addEventListener("click", () => send(example));
}

// A link to a folded part opens it.
function open() {
  const part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (part instanceof HTMLDetailsElement) part.open = true;
}
addEventListener("hashchange", open);
open();
