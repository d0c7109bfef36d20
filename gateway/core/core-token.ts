import type { Logger } from 'pino';
import { bearerToken } from '../../common/settings.ts';
import { watchFiles } from '../../common/watched-files.ts';
import type { GatewayConfig } from '../config.ts';

/** The token that the gateway presents to the core. Reloaded when its file changes. */
export class CoreToken {
  readonly #file: GatewayConfig['coreTokenFile'];
  #authorization: string | undefined;

  constructor({ CORE_TOKEN, coreTokenFile }: Pick<GatewayConfig, 'CORE_TOKEN' | 'coreTokenFile'>) {
    this.#file = coreTokenFile;
    // From the file contents rather than CORE_TOKEN: the file may have changed between the two reads.
    const token = coreTokenFile ? bearerToken(coreTokenFile.contents.reveal().trim()) : CORE_TOKEN;
    this.#authorization = token && `Bearer ${token.reveal()}`;
  }

  /** The `authorization` header of calls; undefined: none. */
  get authorization(): string | undefined {
    return this.#authorization;
  }

  /**
   * Reloads the token when its file changes, if the new contents have the form of a token.
   *
   * @returns stops watching
   */
  watch(log: Logger): () => void {
    const reload = (text: string) => {
      this.#authorization = `Bearer ${bearerToken(text.trim()).reveal()}`;
      return {};
    };
    return watchFiles({ what: 'tokens for the core', files: this.#file ? [this.#file] : [], reload }, log);
  }
}
