import type { Logger } from 'pino';
import { bearerToken } from '../common/settings.ts';
import { watchFiles } from '../common/watched-files.ts';
import type { GatewayConfig } from './config.ts';

/** What the gateway presents to the core, as its file has it, which may change. */
export class CoreToken {
  readonly #file: GatewayConfig['coreTokenFile'];
  #authorization: string | undefined;

  constructor({ CORE_TOKEN, coreTokenFile }: Pick<GatewayConfig, 'CORE_TOKEN' | 'coreTokenFile'>) {
    this.#file = coreTokenFile;
    // What is followed is what is presented: the file may have changed since the other settings were read.
    const token = coreTokenFile ? bearerToken(coreTokenFile.contents.reveal().trim()) : CORE_TOKEN;
    this.#authorization = token && `Bearer ${token.reveal()}`;
  }

  /** The header of every call from now on; undefined: none. */
  get authorization(): string | undefined {
    return this.#authorization;
  }

  /**
   * Takes what the file has whenever that changes, and can be a token.
   *
   * @returns ends that
   */
  follow(log: Logger): () => void {
    const take = (text: string) => {
      this.#authorization = `Bearer ${bearerToken(text.trim()).reveal()}`;
      return {};
    };
    return watchFiles({ what: 'tokens for the core', files: this.#file ? [this.#file] : [], take }, log);
  }
}
