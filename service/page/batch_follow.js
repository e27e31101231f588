// A batch as it goes on: its state, and its results as they come, whatever becomes of the connection.

import { Away, Problem, json, pause, send, values } from "./api.js";

const LOOK_MS = 1000;
const RETRY_MS = 1000;

/**
 * A batch, as service/replies.py has it.
 * @typedef {object} Batch
 * @property {string} id
 * @property {string} created_at
 * @property {number} total
 * @property {number} queued
 * @property {number} running
 * @property {number} succeeded
 * @property {number} failed
 * @property {number} cancelled
 * @property {Forecast | null} forecast
 */

/**
 * @typedef {object} Forecast
 * @property {string} method
 * @property {number} backlog
 * @property {number} arrival_per_s
 * @property {number} service_per_s
 * @property {number | null} remaining_s
 * @property {string | null} finished_at
 */

/**
 * Tell how many problems of a batch have not ended.
 * @param {Batch} batch
 */
export function open(batch) {
  return batch.queued + batch.running;
}

/**
 * Give a batch as it stands, again and again until it has ended; null while the server is away.
 * @param {string} path
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Batch | null>}
 * @throws {Problem} Where the server refuses.
 */
export async function* states(path, signal) {
  while (!signal.aborted) {
    try {
      /** @type {Batch} */
      const batch = await json(path, { signal });
      yield batch;
      if (!open(batch)) return;
    } catch (error) {
      if (signal.aborted) return;
      if (!passing(error)) throw error;
      yield null;
    }
    await pause(LOOK_MS, signal);
  }
}

/**
 * Give every result of a batch once, as they come; a stream that breaks off begins anew.
 * @param {string} path
 * @param {number} total
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<any>}
 */
export async function* resultsOf(path, total, signal) {
  const seen = new Set();
  while (seen.size < total && !signal.aborted) {
    try {
      for await (const result of values(`${path}/results`, { signal })) {
        if (seen.has(result.index)) continue;
        seen.add(result.index);
        yield result;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!passing(error)) throw error;
    }
    if (seen.size < total) await pause(RETRY_MS, signal);
  }
}

/**
 * Give the first lines of the results, byte for byte as the server has them.
 * @param {string} path
 * @param {number} count
 * @param {AbortSignal} signal
 */
export async function lines(path, count, signal) {
  const broken = new AbortController();
  signal.addEventListener("abort", () => broken.abort(), { once: true });
  const { body } = await send(`${path}/results`, { signal: broken.signal });
  if (!body) return new Blob();
  const reader = body.getReader();
  const parts = [];
  for (let left = count; left > 0; ) {
    const { done, value } = await reader.read();
    if (done) break;
    const end = endOfLines(value, left);
    left -= end.lines;
    parts.push(value.slice(0, end.at));
  }
  broken.abort(); // a batch that goes on has no last line yet
  return new Blob(parts, { type: "application/x-ndjson" });
}

/**
 * Find where so many lines end in bytes; the end of the bytes where there are fewer.
 * @param {Uint8Array} bytes
 * @param {number} most
 */
function endOfLines(bytes, most) {
  let at = 0;
  for (let lines = 0; lines < most; lines += 1) {
    const found = bytes.indexOf(10, at);
    if (found < 0) return { at: bytes.length, lines };
    at = found + 1;
  }
  return { at, lines: most };
}

/** @param {unknown} error */
function passing(error) {
  return error instanceof Away || (error instanceof Problem && error.status >= 500);
}
