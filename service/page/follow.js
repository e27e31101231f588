// A job as it goes on, whatever becomes of the connection.

import { Away, Problem, events, pause } from "./api.js";

const SILENT_MS = 15_000; // the server shows a sign of life every 5 s
const RETRY_MS = [250, 500, 1000, 2000];

/**
 * A job, as service/replies.py has it.
 * @typedef {object} Job
 * @property {string} id
 * @property {"plan" | "frontier"} kind
 * @property {"queued" | "running" | "succeeded" | "failed" | "cancelled"} state
 * @property {string | null} batch
 * @property {string | null} name
 * @property {string} created_at
 * @property {string | null} started_at
 * @property {string | null} finished_at
 * @property {number | null} ahead
 * @property {Progress | null} progress
 * @property {import("./api.js").ProblemDocument | null} failure
 * @property {any} answer
 */

/**
 * @typedef {object} Progress
 * @property {string} phase
 * @property {number | null} incumbent
 * @property {number | null} best_bound
 * @property {number | null} relative_gap
 * @property {number | null} points
 * @property {"improving" | "searching" | "silent"} activity
 */

/** @typedef {{ job: Job, ended: boolean } | { away: true }} News */

/**
 * Follow a job to its end; where the server is away, say so and ask again until it is back.
 * @param {string} path The path of the job, such as `/v1/plans/ID`.
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<News>}
 * @throws {Problem} Where the server refuses.
 */
export async function* follow(path, signal) {
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      for await (const event of heard(path, signal)) {
        failures = 0;
        yield { job: event.data, ended: event.name === "end" };
        if (event.name === "end") return;
      }
    } catch (error) {
      if (signal.aborted) return;
      const passing = error instanceof Away || (error instanceof Problem && (error.status >= 500 || error.status === 429));
      if (!passing) throw error;
    }
    yield { away: true };
    await pause(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 0, signal);
  }
}

/**
 * Give events until there is no sign of life any more.
 * @param {string} path
 * @param {AbortSignal} signal
 */
async function* heard(path, signal) {
  const silence = new AbortController();
  const end = () => silence.abort();
  signal.addEventListener("abort", end, { once: true });
  let timer = setTimeout(end, SILENT_MS);
  const onPart = () => {
    clearTimeout(timer);
    timer = setTimeout(end, SILENT_MS); // anew with every part: a long answer takes its time on a slow line
  };
  try {
    yield* events(`${path}/events`, { signal: silence.signal, onPart });
  } catch (error) {
    throw silence.signal.aborted && !signal.aborted ? new Away() : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    end();
  }
}
