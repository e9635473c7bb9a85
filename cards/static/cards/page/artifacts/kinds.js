/** How a file is previewed, by its type and name. Pure. */

/** Pictures that browsers draw and that cannot run script; SVG is no such one. */
const IMAGES = new Set([
  'image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp',
]);

/** Text that is not called so, by its MIME type's end. */
const TEXT_TYPES =
  /^text\/|[/+](?:json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-sh|x-shellscript|sql|x-sql|x-python|x-ndjson|graphql|x-tex)$/;

/** What languages are called where the name does not tell. */
const LANGUAGE_OF_TYPE = {
  'application/json': 'json',
  'application/xml': 'xml',
  'application/javascript': 'javascript',
  'application/x-sh': 'bash',
  'image/svg+xml': 'xml',
  'text/css': 'css',
  'text/html': 'xml',
  'text/javascript': 'javascript',
  'text/xml': 'xml',
  'text/x-python': 'python',
};

/**
 * @typedef {'markdown'|'table'|'code'|'text'|'image'|'pdf'|'none'} PreviewKind
 *
 * @param {string} mimeType As the server found it; parameters are left out.
 * @param {string} name
 * @returns {PreviewKind} `none`: it can only be downloaded.
 */
export function previewKind(mimeType, name) {
  const type = bare(mimeType);
  if (IMAGES.has(type)) return 'image';
  if (type === 'application/pdf') return 'pdf';
  if (!TEXT_TYPES.test(type)) return 'none';
  if (type === 'text/markdown' || hasEnding(name, 'md', 'markdown')) return 'markdown';
  if (/^text\/(csv|tab-separated-values)$/.test(type) || hasEnding(name, 'csv', 'tsv')) return 'table';
  return type === 'text/plain' && !hasLanguage(name) ? 'text' : 'code';
}

/** Tell whether two versions can be compared line by line. */
export function isText(mimeType) {
  return TEXT_TYPES.test(bare(mimeType));
}

/** @returns {string} The language for the highlighter by the type; may be empty. */
export function languageOfType(mimeType) {
  return LANGUAGE_OF_TYPE[bare(mimeType)] ?? '';
}

function bare(mimeType) {
  return String(mimeType ?? '').split(';')[0].trim().toLowerCase();
}

function hasLanguage(name) {
  return /\.[a-z0-9]+$/i.test(name) && !hasEnding(name, 'txt', 'text', 'log');
}

function hasEnding(name, ...endings) {
  return endings.some((ending) => name.toLowerCase().endsWith(`.${ending}`));
}
