// What jobs turned out to be, so that lists can tell them apart; kept until the tab is closed.

const PREFIX = "headline of ";

/**
 * Keep the headline of a job.
 * @param {string} job
 * @param {string} headline
 */
export function remember(job, headline) {
  try {
    sessionStorage.setItem(PREFIX + job, headline);
  } catch {
    // Where the browser has no room or allows no storage, lists show the jobs by their identities alone.
  }
}

/**
 * Give the headline of a job; empty where this tab has not shown it.
 * @param {string} job
 */
export function remembered(job) {
  try {
    return sessionStorage.getItem(PREFIX + job) ?? "";
  } catch {
    return "";
  }
}
