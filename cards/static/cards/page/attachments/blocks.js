/**
 * Files as they go with a message. Pure.
 *
 * @typedef {Object} Attached A file that the server has.
 * @property {string} artifactId
 * @property {string} name
 * @property {string} mimeType
 * @property {number} sizeBytes
 * @property {string} thumbnail Empty for none.
 */

import { isArtifactId } from '../artifacts/names.js';

/** @param {Object} facts As the server answers an upload. @returns {Attached} */
export function attachedOf({ artifact_id: artifactId, name, mime_type: mimeType, size_bytes: sizeBytes, thumbnail }) {
  return { artifactId, name, mimeType, sizeBytes, thumbnail: thumbnail ?? '' };
}

/** @param {Attached} attached @returns {Object} A block of `user.message`. */
export function blockOf({ artifactId, name, mimeType }) {
  return { type: blockType(mimeType), source: { type: 'artifact', artifact_id: artifactId }, name };
}

function blockType(mimeType) {
  if (mimeType.startsWith('image/')) return 'image';
  return mimeType === 'application/pdf' ? 'pdf' : 'file';
}

/**
 * Return a block of a message as it may be sent again, under a new version or none.
 * @param {Object} block As the log has it.
 * @returns {Object|null} Null when it names no file that the server has.
 */
export function blockAgain({ type, source, name }) {
  if (source?.type !== 'artifact' || !isArtifactId(source.artifact_id)) return null;
  const known = name ?? source.name;
  return { type, source: { type: 'artifact', artifact_id: source.artifact_id }, ...(known && { name: known }) };
}
