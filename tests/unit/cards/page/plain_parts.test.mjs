/** The page's parts that need no document. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { parseAnsi } from '../../../../cards/static/cards/page/ansi.js';
import { parseHits } from '../../../../cards/static/cards/page/cards/search_hits.js';
import {
  budgetRows, formatAge, formatBytes, formatCost, formatCount, formatDuration, humanize, metricParts,
} from '../../../../cards/static/cards/page/format.js';
import { offsetOfLine, settledLines } from '../../../../cards/static/cards/page/markdown_blocks.js';
import markdownIt from '../../../../cards/static/cards/vendor/markdown-it/markdown-it.js';

describe('numbers', () => {
  it('are short', () => {
    assert.deepEqual([48, 2340, 41_400, 59_990, 252_000, 7_380_000].map(formatDuration), [
      '48 ms', '2.3 s', '41 s', '1 min 0 s', '4 min 12 s', '2 h 3 min',
    ]);
    assert.deepEqual([12, 2048, 1_572_864].map(formatBytes), ['12 B', '2 kB', '1.5 MB']);
    assert.deepEqual([999, 12_034, 2_000_000].map(formatCount), ['999', '12k', '2M']);
    assert.deepEqual([0, 0.00234, 1.5].map(formatCost), ['$0', '$0.0023', '$1.50']);
    assert.equal(humanize('in_progress'), 'In progress');
  });

  it('tell the age of a session', () => {
    const at = (minutes) => Date.parse('2026-01-01T00:00:00Z') + minutes * 60_000;
    const age = (minutes) => formatAge('2026-01-01T00:00:00Z', at(minutes));

    assert.deepEqual([0, 5, 180, 2880].map(age), ['now', '5 min', '3 h', '2 d']);
    assert.equal(formatAge('nonsense', 0), '');
  });

  it('leave out metrics that are not there', () => {
    assert.deepEqual(metricParts(null), []);
    assert.deepEqual(metricParts({ tokens_in: 0, model: 'm' }), ['0 tokens in', 'm']);
  });

  it('tell how much of a budget is used', () => {
    const rows = budgetRows({ tokens: 60_000, calls: 3 }, { tokens: 50_000, usd: 1 });

    assert.deepEqual(rows, [
      { name: 'tokens', text: '60k of 50k tokens', ratio: 1 },
      { name: 'calls', text: '3 calls', ratio: null },
      { name: 'usd', text: '$0 of $1.00', ratio: 0 },
    ]);
  });
});

describe('terminal text', () => {
  it('turns colours into styles and drops other codes', () => {
    const runs = parseAnsi('a\x1b[1;31mb\x1b[0m\x1b[2Kc\x1b]0;title\x07d');

    assert.deepEqual(runs, [
      { text: 'a', style: '' },
      { text: 'b', style: 'ansi-bold ansi-red' },
      { text: 'c', style: '' },
      { text: 'd', style: '' },
    ]);
  });

  it('keeps every character that is not a code', () => {
    const text = 'x\x1b[38;5;200my\x1b[39mz\x1b';

    assert.equal(parseAnsi(text).map((run) => run.text).join(''), 'xyz\x1b');
  });
});

describe('search output', () => {
  it('is grouped by file', () => {
    const found = parseHits('a.py:3: x = 1\na.py:9:4:y\nb.py:1:z\n2 files\n');

    assert.deepEqual(found.files.map(({ path, count }) => [path, count]), [['a.py', 2], ['b.py', 1]]);
    assert.deepEqual(found.files[0].rows, [
      { path: 'a.py', line: 3, text: 'x = 1', isHit: true },
      { path: 'a.py', line: 9, text: 'y', isHit: true },
    ]);
    assert.equal(found.rest, '2 files');
  });

  it('keeps the lines around a hit with their file', () => {
    const found = parseHits('my-1-file.py-2- a-3-b\nmy-1-file.py:3: hit\n--\nother-9-x');

    assert.deepEqual(
      found.files[0].rows.map(({ line, text, isHit }) => [line, text, isHit]),
      [[2, 'a-3-b', false], [3, 'hit', true]],
    );
    assert.equal(found.rest, 'other-9-x');
  });

  it('does not take a line around a hit for a hit', () => {
    const found = parseHits('log-1-\nlog-2- at 12:30:00\nlog:3: failed\nlog-4--1- x');

    assert.deepEqual(
      found.files.map(({ path, count, rows }) => [path, count, rows.map((row) => row.text)]),
      [['log', 1, ['', 'at 12:30:00', 'failed', '-1- x']]],
    );
    assert.equal(found.rest, '');
  });

  it('finds the end of a path that looks like a line number', () => {
    const found = parseHits('part-1:2:hit\npart-1-3-near');

    assert.deepEqual(found.files[0].rows.map((row) => [row.line, row.isHit]), [[2, true], [3, false]]);
  });

  it('is left alone when it holds no hit', () => {
    assert.equal(parseHits('nothing found'), null);
  });
});

describe('growing Markdown', () => {
  const markdown = markdownIt({ html: false });

  /** Render as the page does: settled blocks once, the rest again and again. */
  function renderGrowing(text, step) {
    const references = {};
    let settledHtml = '';
    let offset = 0;
    let html = '';
    for (let end = step; end < text.length + step; end += step) {
      const rest = text.slice(offset, end);
      const tokens = markdown.parse(rest, references);
      const { line, tokenIndex } = settledLines(tokens, rest);
      const render = (part) => markdown.renderer.render(part, markdown.options, references);
      settledHtml += render(tokens.slice(0, tokenIndex));
      offset += offsetOfLine(rest, line);
      html = settledHtml + render(tokens.slice(tokenIndex));
    }
    return html;
  }

  const texts = {
    'loose list': '1. a\n\n2. b\n\n3. c\n\nend\n',
    'list with code': '- a\n\n  ```js\n  x\n  ```\n\n- b\n\ntext',
    'setext heading': 'Title\n===\n\ntext\n---\nmore',
    table: 'a\n\n| x | y |\n|---|--:|\n| 1 | 2 |\n\nb',
    'open fence': 'a\n\n```python\ndef f():\n\n    pass\n\n# no heading\n',
    'nested quote': '> a\n> > b\n\nc\n\n> d\n',
    'indented code': 'a\n\n    one\n\n    two\n\nb',
    'windows lines': 'a\r\n\r\n- b\r\n- c\r\n\r\nd\r\n',
    'rule after list': '- a\n\n---\n\n- b\n',
  };

  for (const [name, text] of Object.entries(texts)) {
    it(`looks the same as whole, whatever the chunks: ${name}`, () => {
      for (const step of [1, 2, 3, 7, 1000]) {
        assert.equal(renderGrowing(text, step), markdown.render(text), `step ${step}`);
      }
    });
  }

  it('settles what is before the last block', () => {
    const text = 'one\n\ntwo\n\nthr';

    const { line } = settledLines(markdown.parse(text, {}), text);

    assert.equal(text.slice(offsetOfLine(text, line)), 'two\n\nthr');
  });
});
