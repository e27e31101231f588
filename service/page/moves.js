// What changes between two plans: layers that move, places that move, layers that are recomputed in one alone.

/**
 * A plan as far as it is compared: of a plan that a simple rule made, only the layers are known.
 * @typedef {object} Side
 * @property {{ layers: string[], devices: string[] | null, recompute: string[] | null }[]} stages
 */

/**
 * @typedef {object} LayerMove Layers, in the order of the first plan, that go from one stage to another together.
 * @property {string[]} layers
 * @property {number} from
 * @property {number} to
 */

/**
 * Give the layers that are on other stages, those together that are neighbors and go the same way.
 * @param {Side} one
 * @param {Side} other
 * @returns {LayerMove[]}
 */
export function layerMoves(one, other) {
  const places = placesOf(other);
  /** @type {LayerMove[]} */
  const moves = [];
  /** @type {LayerMove | null} */
  let last = null;
  one.stages.forEach(({ layers }, from) => {
    for (const layer of layers) {
      const to = places.get(layer);
      if (to === undefined || to === from) last = null;
      else if (last && last.from === from && last.to === to) last.layers.push(layer);
      else moves.push((last = { layers: [layer], from, to }));
    }
  });
  return moves;
}

/**
 * Give the layers of one plan that the other does not have.
 * @param {Side} one
 * @param {Side} other
 */
export function missing(one, other) {
  const places = placesOf(other);
  return one.stages.flatMap(({ layers }) => layers).filter((layer) => !places.has(layer));
}

/**
 * Give the stages that both plans have, and that run on other devices.
 * @param {Side} one
 * @param {Side} other
 */
export function placeMoves(one, other) {
  return one.stages.flatMap(({ devices }, stage) => {
    const others = other.stages[stage]?.devices;
    const moves = devices && others && devices.join() !== others.join();
    return moves ? [{ stage, from: devices, to: others }] : [];
  });
}

/**
 * Give the layers that are recomputed in one plan and not in the other, where both are known.
 * @param {Side} one
 * @param {Side} other
 */
export function recomputedOnly(one, other) {
  const theirs = new Set(other.stages.flatMap(({ recompute }) => recompute ?? []));
  const known = other.stages.every(({ recompute }) => recompute);
  return known ? one.stages.flatMap(({ recompute }) => recompute ?? []).filter((layer) => !theirs.has(layer)) : [];
}

/** @param {Side} side */
function placesOf(side) {
  return new Map(side.stages.flatMap(({ layers }, stage) => layers.map((layer) => [layer, stage])));
}
