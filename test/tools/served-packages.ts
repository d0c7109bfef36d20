import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll } from 'vitest';
import { sharedFolder } from './processes.ts';
import { aServedService, type ServedService } from './served-service.ts';

/** A service whose gateway serves packages, behind a proxy that serves it under a path prefix. */
export interface ServiceWithPackages {
  readonly service: ServedService;
  /** The folder with the packages. */
  folder(): string;
  /** The public address of the service, with the proxy's path. */
  url(): string;
  /** Returns a page of `/docs`, as the gateway serves it in Markdown. */
  readPage(page: string): Promise<string>;
  /** Returns the code blocks of such a page, with their languages. */
  readBlocks(page: string): Promise<{ readonly lang: string; readonly text: string }[]>;
}

/**
 * Starts the service for all tests of a file.
 *
 * @param build puts packages into a folder
 */
export function aServiceWithPackages(build: (folder: string) => void): ServiceWithPackages {
  const folder = sharedFolder();
  // Connections stay open longer than a test, because a busy process could send a request on one that was just closed.
  const proxy = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
    if (!request.url?.startsWith('/lead-api/')) return void response.writeHead(404).end();
    const { hostname, port } = new URL(service.url);
    const path = request.url.slice('/lead-api'.length);
    const options = { hostname, port, path, method: request.method, headers: request.headers };
    const passed = httpRequest(options, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    request.pipe(passed);
  });
  const url = () => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/lead-api`;
  beforeAll(async () => {
    build(folder());
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
  });
  afterAll(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  const service = aServedService(() => ({ KEPT_PACKAGES_FOLDER: folder(), PUBLIC_URL: url() }));
  const readPage = async (page: string) => (await fetch(`${url()}/docs/${page}.md`)).text();
  return {
    service,
    folder,
    url,
    readPage,
    async readBlocks(page) {
      return [...(await readPage(page)).matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(([, lang = '', text = '']) => ({
        lang,
        text,
      }));
    },
  };
}
