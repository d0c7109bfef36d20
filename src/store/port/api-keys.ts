import type { ApiKey } from '../../domain/api-key.ts';
import type { AuditContext, CallingProgram } from '../../domain/audit.ts';
import type { LeadSource, MemberRole, Studio } from '../../domain/studio.ts';
import type { Page } from './page.ts';

export interface ApiKeyCommand extends AuditContext {
  readonly studioId: string;
  readonly keyId: string;
}

/** Has no `requestId`, because a repeated request would have to return the secret, which is not stored. */
export interface ApiKeyReplacement extends ApiKeyCommand {
  readonly memberId: string;
  readonly secretSha256: Uint8Array;
  readonly secretHint: string;
  readonly expiresAt: Date | null;
}

export type ReplaceApiKeyOutcome =
  | { readonly kind: 'replaced'; readonly key: ApiKey }
  | { readonly kind: 'not-found' | 'revoked' | 'expired' | 'limit-reached' };

/** Everything that decides what a secret's bearer may do now. */
export interface Credential {
  readonly key: ApiKey;
  readonly studio: Studio;
  /** The issuer's role; null when the issuer is no longer a member. */
  readonly issuerRole: MemberRole | null;
  /** The requested source; null: none was requested, or the studio does not have it. */
  readonly source: LeadSource | null;
}

export interface ApiKeyStore {
  /**
   * createApiKey must store a new key and an event in one write, unless MAX_LIVE_KEYS keys of the studio are live at
   * `now`. The limit must hold for concurrent calls. An unreadable key counts as live until it is revoked, or until its
   * readable expiry has passed. Returns whether the key was stored.
   */
  createApiKey(key: ApiKey, now: Date, by?: CallingProgram): Promise<boolean>;

  /**
   * Returns the keys of the studio that hold one of its slots, highest id first, at most MAX_LIVE_KEYS. Every live key
   * must be among them; others may have expired. An unreadable key is returned with its readable parts: see API_KEY.
   */
  listLiveApiKeys(studioId: string): Promise<ApiKey[]>;

  /** Lists the other keys of the studio, highest id first; unreadable ones likewise. Skips keys with an invalid id. */
  listFormerApiKeys(studioId: string, before: string | null, limit: number): Promise<Page<ApiKey>>;

  /**
   * replaceApiKey must give a key a new secret and a new issuer, and store an event, in one write. Unless `expiresAt` is
   * null, the key also gets that expiry. The old secret must be invalid when the call resolves. A key that is revoked, or
   * would be expired at `now`, must not change. An expired key that becomes live counts towards the limit like a new one.
   *
   * @throws UnreadableRecord, without writing
   */
  replaceApiKey(replacement: ApiKeyReplacement): Promise<ReplaceApiKeyOutcome>;

  /**
   * revokeApiKey must revoke a key, even an unreadable one, and store an event, in one write. A revoked key is returned
   * unchanged. Returns null when the studio has no such key.
   */
  revokeApiKey(studioId: string, keyId: string, by: AuditContext): Promise<ApiKey | null>;

  /**
   * putApiKeyQuota must set the quota of a key, or remove it (null), and change nothing else. A changed quota must be
   * stored with an event in one write.
   *
   * @returns the key after the change; null when the studio has no such key
   * @throws UnreadableRecord, without writing
   */
  putApiKeyQuota(studioId: string, keyId: string, limit: number | null, by: AuditContext): Promise<ApiKey | null>;

  /**
   * Stores the time of a key's use, unless a use after `unlessSince` is stored already. A stored use after `now` must
   * be replaced, because it was stored before a clock was set back.
   */
  recordApiKeyUse(use: {
    readonly studioId: string;
    readonly keyId: string;
    readonly now: Date;
    readonly unlessSince: Date;
  }): Promise<void>;

  /**
   * Returns the key with this secret, and what its validity depends on. Must see every change that resolved before the call,
   * except `lastUsedAt`. An unreadable key is not returned; an unreadable studio is suspended; an unreadable member has no role.
   *
   * @param sourceId a source of the key's studio to read as well; a UUID in lower case
   */
  findCredential(secretSha256: Uint8Array, sourceId?: string): Promise<Credential | null>;
}
