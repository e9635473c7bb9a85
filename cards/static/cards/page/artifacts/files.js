/** Reading files from the server. Same origin, the browser's own cookie. */

import { errorSentence } from '../api.js';

/**
 * @typedef {Object} Version
 * @property {number} version
 * @property {string} mime_type
 * @property {number} size_bytes
 * @property {string} role
 * @property {string} description
 * @property {string} created_at
 *
 * @typedef {Object} ArtifactFacts
 * @property {string} artifact_id
 * @property {string} name
 * @property {string} source `assistant` or `user`.
 * @property {number} version The newest.
 * @property {Version[]} versions Oldest first.
 */

/** There is no such file, or it is somebody else's. */
export class NotAvailable extends Error {}

/** @param {string} artifactId */
function pathOf(artifactId) {
  return `/v1/artifacts/${encodeURIComponent(artifactId)}`;
}

/** @param {string} artifactId @param {number} version */
export function contentUrl(artifactId, version, { isDownload = false } = {}) {
  return `${pathOf(artifactId)}/content?version=${version}${isDownload ? '&download=1' : ''}`;
}

/**
 * Return where a file's small picture is.
 * @param {any} path As the server names it.
 * @returns {string} Empty when it names none of ours.
 */
export function thumbnailUrl(path) {
  return typeof path === 'string' && /^\/v1\/artifacts\/[\w-]+\/thumbnail(\?version=\d+)?$/.test(path)
    ? path
    : '';
}

/**
 * @param {string} artifactId
 * @param {AbortSignal} [signal]
 * @returns {Promise<ArtifactFacts>}
 * @throws {NotAvailable}
 * @throws {Error} With a sentence for the user.
 */
export async function fetchArtifact(artifactId, signal) {
  const headers = { Accept: 'application/json' };
  return (await answered(fetch(pathOf(artifactId), { headers, signal }))).json();
}

/**
 * Read the beginning of a text.
 * @param {string} artifactId
 * @param {Version} version
 * @param {number} maxBytes
 * @param {AbortSignal} [signal]
 * @returns {Promise<{text: string, isCut: boolean}>}
 */
export async function fetchText(artifactId, { version, size_bytes: size }, maxBytes, signal) {
  // A range of nothing cannot be satisfied.
  if (size === 0) return { text: '', isCut: false };
  const headers = { Range: `bytes=0-${maxBytes - 1}` };
  const response = await answered(fetch(contentUrl(artifactId, version), { headers, signal }));
  const isCut = size > maxBytes;
  return { text: decode(await firstBytes(response.body, maxBytes), isCut), isCut };
}

/**
 * Read a whole file as something that the browser can show.
 * @returns {Promise<Blob>} Of the type that is asked for, whatever the answer says.
 */
export async function fetchBlob(artifactId, version, type, signal) {
  const response = await answered(fetch(contentUrl(artifactId, version), { signal }));
  return new Blob([await response.arrayBuffer()], { type });
}

async function answered(request) {
  const response = await request;
  if (response.status === 404) throw new NotAvailable('This file is not available.');
  if (!response.ok) throw new Error(await errorSentence(response));
  return response;
}

/** A server that knows no ranges sends everything; the rest is not waited for. */
async function firstBytes(stream, maxBytes) {
  const reader = stream.getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
    if (length >= maxBytes) {
      await reader.cancel();
      break;
    }
  }
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return bytes.subarray(0, maxBytes);
}

/** @param {Uint8Array} bytes @param {boolean} isCut The last character may be half. */
export function decode(bytes, isCut) {
  const [first, second] = bytes;
  const isLittle = first === 0xff && second === 0xfe;
  const isBig = first === 0xfe && second === 0xff;
  const decoder = new TextDecoder(isLittle ? 'utf-16le' : isBig ? 'utf-16be' : 'utf-8');
  return decoder.decode(bytes, { stream: isCut });
}
