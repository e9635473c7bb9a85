/** Files on the page, as far as it needs no document. Spec: EMIT 13; Rulings E21, E28. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { changesBetween, changesInWords, MAX_LINES } from '../../../../cards/static/cards/page/artifacts/changes.js';
import { contentUrl, decode, thumbnailUrl } from '../../../../cards/static/cards/page/artifacts/files.js';
import { isText, previewKind } from '../../../../cards/static/cards/page/artifacts/kinds.js';
import { artifactIdOf, isArtifactUri, shownName } from '../../../../cards/static/cards/page/artifacts/names.js';
import { MAX_COLUMNS, MAX_ROWS, parseTable } from '../../../../cards/static/cards/page/artifacts/table.js';
import { attachedOf, blockAgain, blockOf } from '../../../../cards/static/cards/page/attachments/blocks.js';
import { sentenceOf } from '../../../../cards/static/cards/page/api.js';

describe('the address of a file', () => {
  it('names an id and nothing else', () => {
    assert.equal(artifactIdOf('artifact://art_0123456789abcdef'), 'art_0123456789abcdef');
    assert.equal(artifactIdOf('ARTIFACT:art_1'), 'art_1');
    const hostile = ['art_1', 'https://art_1', 'artifact://', 'artifact://a/../b', 'artifact://a?b', 'artifact://a"b',
      'artifact://a%2f', `artifact://${'a'.repeat(65)}`, ' artifact://a', 'artifact://a\n'];
    assert.deepEqual(hostile.map(artifactIdOf).filter(Boolean), []);
  });

  it('is known as ours however it is written', () => {
    assert.deepEqual(['artifact://a', ' ArtiFact:x', 'https://artifact:a'].map(isArtifactUri), [true, true, false]);
  });

  it('leads to this server', () => {
    assert.equal(contentUrl('art_1', 2), '/v1/artifacts/art_1/content?version=2');
    assert.equal(contentUrl('../x', 1, { isDownload: true }), '/v1/artifacts/..%2Fx/content?version=1&download=1');
  });

  it('is taken for a small picture only when it is one of ours', () => {
    const ours = '/v1/artifacts/art_1/thumbnail?version=1';
    const others = ['//evil.example/v1/artifacts/a/thumbnail', '/v1/artifacts/a/content', 'AAAA', null, 7, `${ours}&x`];

    assert.equal(thumbnailUrl(ours), ours);
    assert.deepEqual(others.map(thumbnailUrl).filter(Boolean), []);
  });
});

describe('a name', () => {
  it('hides nothing and turns nothing around', () => {
    assert.equal(shownName('invoice\u202Efdp.exe'), 'invoice[U+202E]fdp.exe');
    assert.equal(shownName('a\u0000\u2066b\n'), 'a[U+0000][U+2066]b[U+000A]');
    assert.equal(shownName('实验 记录 👩‍🔬.pdf'), '实验 记录 👩‍🔬.pdf');
    assert.equal(shownName(undefined), '');
  });
});

describe('the preview', () => {
  const kinds = [
    ['text/plain', 'a.txt', 'text'], ['text/plain', 'Makefile', 'text'], ['text/plain', 'a.py', 'code'],
    ['text/plain; charset=utf-8', 'NOTES.MD', 'markdown'], ['text/markdown', 'a', 'markdown'],
    ['text/csv', 'a', 'table'], ['text/plain', 'a.tsv', 'table'], ['application/json', 'a', 'code'],
    ['application/ld+json', 'a', 'code'], ['image/png', 'a', 'image'], ['application/pdf', 'a', 'pdf'],
    ['application/zip', 'a.md', 'none'], ['', 'a', 'none'],
  ];
  for (const [type, name, kind] of kinds) {
    it(`of ${type || 'nothing'} named ${name} is ${kind}`, () => assert.equal(previewKind(type, name), kind));
  }

  it('of markup is its source', () => {
    const markup = ['text/html', 'image/svg+xml', 'application/xhtml+xml', 'text/xml'];

    assert.deepEqual(markup.map((type) => previewKind(type, 'a')), ['code', 'code', 'code', 'code']);
    assert.equal(isText('image/svg+xml'), true);
    assert.equal(isText('image/png'), false);
  });

  it('reads the usual encodings, and no half character', () => {
    const bytes = (...values) => new Uint8Array(values);

    assert.equal(decode(bytes(0xef, 0xbb, 0xbf, 0x61), false), 'a');
    assert.equal(decode(bytes(0xff, 0xfe, 0x61, 0x00), false), 'a');
    assert.equal(decode(bytes(0x61, 0xc3), true), 'a');
    assert.equal(decode(bytes(0x61, 0xff), false), 'a\uFFFD');
  });
});

describe('a table', () => {
  it('keeps quoted cells whole and fills short rows', () => {
    const { head, rows } = parseTable('a,b,c\n"x, ""y""\nz",2\n\n');

    assert.deepEqual(head, ['a', 'b', 'c']);
    assert.deepEqual(rows, [['x, "y"\nz', '2', '']]);
  });

  it('finds what stands between the cells', () => {
    assert.deepEqual(parseTable('a;b\n1,5;2\n3,5;4').rows, [['1,5', '2'], ['3,5', '4']]);
    assert.deepEqual(parseTable('a\tb\n1\t2').rows, [['1', '2']]);
    assert.deepEqual(parseTable('a,b\t\n1\t2', { isTabbed: true }).rows, [['1', '2']]);
    assert.deepEqual(parseTable('one\ntwo').rows, [['two']]);
  });

  it('counts what it does not show', () => {
    const wide = Array.from({ length: MAX_COLUMNS + 3 }, (_, n) => n).join(',');
    const { rows, moreRows, moreColumns } = parseTable(`${wide}\n`.repeat(MAX_ROWS + 8));

    assert.equal(rows.length, MAX_ROWS);
    assert.equal(rows[0].length, MAX_COLUMNS);
    assert.equal(moreRows, 7);
    assert.equal(moreColumns, 3);
  });

  it('drops the row that was cut', () => {
    assert.deepEqual(parseTable('a,b\n1,2\n3', { isCut: true }).rows, [['1', '2']]);
  });

  it('is none when there is nothing in it', () => {
    assert.equal(parseTable('\n\n'), null);
  });
});

describe('changes', () => {
  it('stand in their context', () => {
    const before = Array.from({ length: 20 }, (_, n) => `line ${n}`);
    const after = before.with(9, 'other');
    const changes = changesBetween(`${before.join('\n')}\n`, `${after.join('\n')}\n`);

    assert.equal(changesInWords(changes), '1 line added, 1 removed');
    assert.deepEqual(changes.lines.map(({ kind }) => kind), [
      'hunk', 'same', 'same', 'same', 'removed', 'added', 'same', 'same', 'same',
    ]);
    assert.equal(changes.lines[0].text, 'Lines 7 to 13');
  });

  it('are none between equals', () => {
    const changes = changesBetween('a\n', 'a\n');

    assert.deepEqual(changes.lines, []);
    assert.equal(changesInWords(changes), 'No differences');
  });

  it('tell of a missing line end', () => {
    const { lines } = changesBetween('a\n', 'a');

    assert.deepEqual(lines.map(({ kind }) => kind), ['hunk', 'removed', 'added', 'note']);
  });

  it('are counted where there are too many', () => {
    const after = Array.from({ length: MAX_LINES + 99 }, (_, n) => `${n}\n`).join('');
    const { lines, added, moreLines } = changesBetween('', after);

    assert.equal(lines.length, MAX_LINES);
    assert.equal(added, MAX_LINES + 99);
    assert.equal(moreLines, 100);
  });
});

describe('a file of the user', () => {
  const facts = { artifact_id: 'art_1', name: 'a.png', mime_type: 'image/png', size_bytes: 3, thumbnail: null };

  it('goes with a message by its id', () => {
    const types = ['image/png', 'application/pdf', 'text/csv'].map(
      (mime_type) => blockOf(attachedOf({ ...facts, mime_type })).type,
    );

    assert.deepEqual(types, ['image', 'pdf', 'file']);
    assert.deepEqual(blockOf(attachedOf(facts)), {
      type: 'image', source: { type: 'artifact', artifact_id: 'art_1' }, name: 'a.png',
    });
  });

  it('goes again with the same message', () => {
    const source = { type: 'artifact', artifact_id: 'art_1', version: 1, name: 'a.png', size_bytes: 3 };

    assert.deepEqual(blockAgain({ type: 'image', source }), blockOf(attachedOf(facts)));
    assert.equal(blockAgain({ type: 'image', source: { type: 'path', path: '/etc/passwd' } }), null);
    assert.equal(blockAgain({ type: 'image', source: { type: 'artifact', artifact_id: '../x' } }), null);
  });
});

describe('an error of the server', () => {
  it('is told in its own words, or in ours', () => {
    assert.equal(sentenceOf(413, { error: { message: 'm', user_message: 'Too large.' } }), 'Too large.');
    assert.equal(sentenceOf(413, { error: { message: 'over 5 bytes' } }), 'over 5 bytes');
    assert.match(sentenceOf(507, null), /no room left/);
    assert.match(sentenceOf(500, 'x'), /HTTP 500/);
  });
});
