import { type KeyOperation, SCOPE_OF } from '../../common/rules/scopes.ts';
import { ApiKeyScope, type AuthenticateApiKeyResponse } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { Operation, PresentedKey } from '../request-state.ts';
import type { Bearer } from './core-client.ts';

/** Whether a key has the scope of an operation; other operations are for none. */
export const hasScopeFor = ({ scopes }: AuthenticateApiKeyResponse, operation: Operation | undefined): boolean =>
  scopes.includes(SCOPES[SCOPE_OF[operation as KeyOperation]]);

const SCOPES = { 'leads.read': ApiKeyScope.LEADS_READ, 'leads.create': ApiKeyScope.LEADS_CREATE } as const;

/** Marks a key as checked, for a call in which the core validates it, and returns its bearer. */
export function bearerToCheck(key: PresentedKey, requestId: string): Bearer {
  key.isChecked = true;
  return { secretSha256: key.secretSha256, requestId, studioId: key.caller.studioId };
}
