/** How long a hidden page waits instead of an animation frame, in ms. */
const HIDDEN_FRAME_MS = 250;

/**
 * Run something with the next animation frame; a hidden page has none and goes on
 * more slowly, so that nothing piles up.
 * @param {() => void} action
 */
export function afterFrame(action) {
  if (document.hidden) setTimeout(action, HIDDEN_FRAME_MS);
  else requestAnimationFrame(action);
}
