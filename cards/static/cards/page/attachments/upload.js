/** One file on its way to the server. */

import { changeHeaders, sentenceOf } from '../api.js';

const BROKE_OFF =
  'The upload broke off: the connection is gone, or the file is too large for the server.';

/**
 * Send a file; only this kind of request tells how far it is.
 * @param {File} file
 * @param {string} sessionId
 * @param {(share: number) => void} onProgress From 0 to 1.
 * @returns {{done: Promise<import('../artifacts/files.js').ArtifactFacts>, cancel: () => void}}
 *   `done` fails with a sentence for the user; it never ends when it was cancelled.
 */
export function upload(file, sessionId, onProgress) {
  const request = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
    request.onerror = () => reject(new Error(BROKE_OFF));
    request.onload = () => {
      const { status, response } = request;
      if (status >= 200 && status < 300 && response?.artifact_id) resolve(response);
      else reject(new Error(sentenceOf(status, response)));
    };
  });
  request.open('POST', '/v1/artifacts');
  request.responseType = 'json';
  for (const [name, value] of Object.entries(changeHeaders())) request.setRequestHeader(name, value);
  const form = new FormData();
  // Before the file, so that a stranger's session is refused before all of it is sent.
  form.append('session_id', sessionId);
  form.append('file', file, file.name);
  request.send(form);
  return { done, cancel: () => request.abort() };
}
