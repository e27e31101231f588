// Where the stages of a plan end among its layers, and how that can be changed.

/** @typedef {any} Candidate A plan, as models/answer.py has it. */

/**
 * Give the layers of a plan in the order of its stages, and where each stage but the last ends among them.
 * @param {Candidate} plan
 */
export function cutsOf(plan) {
  /** @type {string[]} */
  const layers = [];
  /** @type {number[]} */
  const cuts = [];
  for (const stage of plan.stages) {
    layers.push(...stage.layers);
    cuts.push(layers.length);
  }
  return { layers, cuts: cuts.slice(0, -1) };
}

/**
 * Give the first and the last place of a cut at which every stage keeps a layer.
 * @param {number[]} cuts
 * @param {number} index
 * @param {number} count How many layers there are.
 */
export function limits(cuts, index, count) {
  return { least: (cuts[index - 1] ?? 0) + 1, most: (cuts[index + 1] ?? count) - 1 };
}

/**
 * Move a cut, as far as its neighbors let it.
 * @param {number[]} cuts
 * @param {number} index
 * @param {number} place
 * @param {number} count
 */
export function moved(cuts, index, place, count) {
  const { least, most } = limits(cuts, index, count);
  return cuts.map((cut, each) => (each === index ? Math.min(most, Math.max(least, place)) : cut));
}

/**
 * Give the cuts after a move that the service names; null where it moves no cut alone.
 * @param {number[]} cuts
 * @param {any} move As models/answer.py has it.
 */
export function after(cuts, move) {
  if (move.kind !== "boundary" || Math.abs(move.from_stage - move.to_stage) !== 1) return null;
  const forth = move.to_stage < move.from_stage; // the earlier stage gets what the later one gives
  const index = Math.min(move.from_stage, move.to_stage);
  const by = forth ? move.layers.length : -move.layers.length;
  return cuts.map((cut, each) => (each === index ? cut + by : cut));
}

/**
 * Write the plan with other cuts as POST /v1/evaluations takes it: stages keep their devices, layers their options.
 * @param {Candidate} plan
 * @param {number[]} cuts
 */
export function withCuts(plan, cuts) {
  const { layers } = cutsOf(plan);
  // A map: a layer may have the name of a member that every object has.
  const options = new Map(plan.stages.flatMap((/** @type {any} */ stage) => Object.entries(stage.options)));
  const ends = [...cuts, layers.length];
  const stages = plan.stages.map((/** @type {any} */ stage, /** @type {number} */ index) => {
    const own = layers.slice(ends[index - 1] ?? 0, ends[index]);
    const chosen = own.filter((layer) => options.has(layer)).map((layer) => [layer, options.get(layer)]);
    return { layers: own, devices: stage.devices, options: Object.fromEntries(chosen) };
  });
  const { schedule, tensor_parallel, data_parallel, replicas_per_node, num_microbatches, microbatch_size } = plan;
  const configuration = { schedule, tensor_parallel, data_parallel, replicas_per_node, num_microbatches, microbatch_size };
  return { stages, configuration };
}

/**
 * Give where each layer begins and the last one ends, from 0 to 1: as wide as its time, and a little more, so that layers
 * which take no time can be seen.
 * @param {number[]} times
 */
export function edges(times) {
  const total = times.reduce((sum, time) => sum + time, 0);
  const least = 0.25 / times.length;
  const edge = [0];
  for (const time of times) edge.push((edge[edge.length - 1] ?? 0) + least + (total ? (0.75 * time) / total : 3 * least));
  return edge;
}

/**
 * Give the number of layers before the edge that is closest to a place from 0 to 1.
 * @param {number[]} edge
 * @param {number} place
 */
export function closest(edge, place) {
  let [low, high] = [0, edge.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (/** @type {number} */ (edge[middle]) <= place) low = middle;
    else high = middle;
  }
  return place - Number(edge[low]) <= Number(edge[high]) - place ? low : high;
}
