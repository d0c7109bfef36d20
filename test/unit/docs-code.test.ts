import { createMarkdownRenderer } from 'vitepress';
import { expect, onTestFinished, test, vi } from 'vitest';
import config from '../../gateway/docs/.vitepress/config.ts';

test('code on the pages of /docs gets its colours however busy the machine is', async () => {
  const renderer = await createMarkdownRenderer('.', config.markdown);
  let now = Date.now();
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(Date, 'now').mockImplementation(() => {
    now += 10_000;
    return now;
  });
  const rendered = renderer.render('```js\nconst { a } = await check(1);\n```');
  expect(rendered).toContain('<span class="code-token-keyword">const</span>');
});
