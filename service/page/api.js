// Requests to this server, with the key of this tab: JSON, problem documents as errors, events and NDJSON as they come.

import { readable } from "./format.js";

const STORED = "partita.key";

/**
 * One thing that is wrong in a request, as service/problem_document.py has it.
 * @typedef {object} Place
 * @property {string} pointer
 * @property {string} detail
 * @property {string} code
 * @property {string | null} [value]
 * @property {string | null} [parameter]
 */

/**
 * A problem document (RFC 9457).
 * @typedef {object} ProblemDocument
 * @property {string} type
 * @property {string} title
 * @property {number} status
 * @property {string} detail
 * @property {Place[]} errors
 */

/** Why a request failed, in the words of the server. */
export class Problem extends Error {
  /** @param {ProblemDocument} document */
  constructor(document) {
    super(readable(document.detail));
    this.title = document.title;
    this.status = document.status;
    this.places = (document.errors ?? []).map((place) => ({ ...place, detail: readable(place.detail) }));
    this.kind = document.type.split("#")[1] ?? "";
  }
}

/** The server cannot be reached, or broke off. */
export class Away extends Error {
  constructor() {
    super("The server does not answer.");
  }
}

/**
 * Say why something failed.
 * @param {unknown} error
 */
export function why(error) {
  return error instanceof Problem ? `${error.title}: ${error.message}.` : error instanceof Error ? error.message : `${error}`;
}

/** Give the key of this tab; the empty text for none. */
export function key() {
  return sessionStorage.getItem(STORED) ?? "";
}

/**
 * Use a key from now on, until this tab is closed; the empty text for none.
 * @param {string} text
 */
export function useKey(text) {
  if (text) sessionStorage.setItem(STORED, text);
  else sessionStorage.removeItem(STORED);
}

/**
 * @typedef {object} Options
 * @property {string} [method]
 * @property {Record<string, string>} [headers]
 * @property {string | Blob} [body]
 * @property {AbortSignal} [signal]
 * @property {() => void} [onPart] Told whenever something has come of a response that is read as it comes.
 */

/**
 * Send a request.
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<Response>}
 * @throws {Problem} Where the server refuses it; for 401 and 403 the window also gets the event `refused`.
 * @throws {Away} Where there is no server.
 */
export async function send(path, options = {}) {
  /** @type {Record<string, string>} */
  const headers = { ...options.headers };
  if (key()) headers["Authorization"] = `Bearer ${key()}`;
  if (typeof options.body === "string") headers["Content-Type"] ??= "application/json";
  const response = await fetched(path, { ...options, headers });
  if (response.ok) return response;
  const problem = await problemIn(response);
  if (problem.status === 401 || problem.status === 403) {
    dispatchEvent(new CustomEvent("refused", { detail: problem }));
  }
  throw problem;
}

/**
 * @param {string} path
 * @param {RequestInit} options
 */
async function fetched(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    throw options.signal?.aborted ? error : new Away();
  }
}

/**
 * @param {Response} response
 * @returns {Promise<Problem>}
 */
async function problemIn(response) {
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/problem+json")) return new Problem(await response.json());
  const detail = `The server, or one before it, answered with ${response.status} ${response.statusText}.`;
  return new Problem({ type: "", title: "No answer", status: response.status, detail, errors: [] });
}

/**
 * Get JSON.
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<any>} The shape is that of the call's description under /docs.
 */
export async function json(path, options) {
  return (await send(path, options)).json();
}

/** @type {Promise<any> | null} */
let description = null;

/** Give the description of the service (OpenAPI), which names its examples, formats and pictures. */
export function described() {
  description ??= json("/openapi.json").catch((error) => {
    description = null; // the next view asks again
    throw error;
  });
  return description;
}

/**
 * Give the values that a parameter of a call may have, with their titles and what they mean.
 * @param {string} path The path as the description has it.
 * @param {string} parameter
 * @returns {Promise<{ name: string, title: string, summary: string }[]>}
 */
export async function choices(path, parameter) {
  const { parameters } = (await described()).paths[path].get;
  const { schema } = parameters.find((/** @type {{ name: string }} */ each) => each.name === parameter);
  return schema.enum.map((/** @type {string} */ name, /** @type {number} */ index) => ({
    name,
    title: schema["x-enum-varnames"]?.[index] ?? name,
    summary: schema["x-enum-descriptions"][index],
  }));
}

/**
 * Give the lines of a response as they come.
 * @param {Response} response
 * @param {Options} [options]
 * @returns {AsyncGenerator<string>}
 * @throws {Away} Where the response breaks off.
 */
async function* linesOf(response, options = {}) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      options.onPart?.();
      if (!value.includes("\n")) {
        rest += value; // a long line, which is not looked through again for each of its parts
        continue;
      }
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } catch (error) {
    throw options.signal?.aborted ? error : new Away();
  } finally {
    reader.cancel().catch(() => undefined);
  }
  if (rest) yield rest;
}

/**
 * Give the values of a response in NDJSON as they come.
 * @param {string} path
 * @param {Options} [options]
 * @returns {AsyncGenerator<any>}
 */
export async function* values(path, options) {
  for await (const line of linesOf(await send(path, options), options)) {
    if (line.trim()) yield JSON.parse(line);
  }
}

/**
 * Give the server-sent events of a response as they come; EventSource could not send a key.
 * @param {string} path
 * @param {Options} [options]
 * @returns {AsyncGenerator<{ name: string, data: any }>}
 */
export async function* events(path, options) {
  let name = "message";
  for await (const line of linesOf(await send(path, options), options)) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) yield { name, data: JSON.parse(line.slice(6)) };
  }
}

/** Give a name under which a request may be sent again without being done twice. */
export function freshName() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Wait.
 * @param {number} milliseconds
 * @param {AbortSignal} signal Ends the wait at once.
 * @returns {Promise<void>}
 */
export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
