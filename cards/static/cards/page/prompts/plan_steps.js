/**
 * Editing the steps of a plan. Pure; every function returns new steps.
 *
 * @typedef {Object} Step As on the wire. Spec: EMIT 7.1.
 * @property {string} id
 * @property {string} description
 * @property {string} [subagent_type]
 * @property {string} [prompt]
 * @property {string[]} [depends_on]
 */

/** @param {Step[]} steps @param {string} id @param {Partial<Step>} fields */
export function withFields(steps, id, fields) {
  return steps.map((step) => (step.id === id ? { ...step, ...fields } : step));
}

/**
 * Take a step out; what waited for it waits for what it waited for.
 * @param {Step[]} steps
 * @param {string} id
 */
export function withoutStep(steps, id) {
  const { depends_on: inherited = [] } = steps.find((step) => step.id === id);
  return steps
    .filter((step) => step.id !== id)
    .map((step) => (needs(step, id) ? { ...step, depends_on: replaced(step, id, inherited) } : step));
}

/** @param {Step[]} steps @param {string} id @param {string} needed */
export function withoutNeed(steps, id, needed) {
  const { depends_on: all } = steps.find((step) => step.id === id);
  return withFields(steps, id, { depends_on: all.filter((each) => each !== needed) });
}

/** @param {Step[]} steps @param {string} id @param {-1|1} by Places towards the end. */
export function withMoved(steps, id, by) {
  const from = steps.findIndex((step) => step.id === id);
  const rest = steps.filter((step) => step.id !== id);
  return [...rest.slice(0, from + by), steps[from], ...rest.slice(from + by)];
}

/**
 * Add an empty step at the end, which waits for the one before it.
 * @param {Step[]} steps
 * @param {Step[]} proposed Their ids are not used again for something else.
 */
export function withNewStep(steps, proposed) {
  const taken = new Set([...steps, ...proposed].map((step) => step.id));
  let number = steps.length + 1;
  while (taken.has(`s${number}`)) number += 1;
  const before = steps.at(-1);
  const depends_on = before ? [before.id] : [];
  return [...steps, { id: `s${number}`, description: '', depends_on }];
}

/** @returns {string[]} What a step waits for although it comes later, or never. */
export function lateNeeds(steps, place) {
  const earlier = new Set(steps.slice(0, place).map((step) => step.id));
  return (steps[place].depends_on ?? []).filter((id) => !earlier.has(id));
}

/**
 * Return the plan as it goes to the server, if it was changed.
 * @param {Step[]} steps
 * @param {Step[]} proposed
 * @returns {Step[]|undefined}
 */
export function updatedSteps(steps, proposed) {
  const updated = steps.map(wireStep);
  const isSame = JSON.stringify(updated) === JSON.stringify(proposed.map(wireStep));
  return isSame ? undefined : updated;
}

function wireStep({ id, description = '', subagent_type, prompt, depends_on }) {
  return {
    id,
    description: description.trim(),
    ...(subagent_type && { subagent_type }),
    ...(prompt && { prompt }),
    ...(depends_on?.length && { depends_on }),
  };
}

function needs({ depends_on: all = [] }, id) {
  return all.includes(id);
}

function replaced({ depends_on: all }, id, others) {
  return [...new Set(all.flatMap((each) => (each === id ? others : [each])))];
}
