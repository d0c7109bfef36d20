// Generated from the OpenAPI document. Do not edit.

/**
 * An email address or a phone number.
 */
export type Contact = EmailContact | PhoneContact;
/**
 * The stage of the lead; initially `new`.
 */
export type LeadStage = 'new' | 'contacted' | 'trial_booked' | 'trial_attended' | 'won' | 'lost';
/**
 * The kind of problem, for programs.
 */
export type ProblemCode =
  | 'integration_invalid_request'
  | 'integration_source_invalid'
  | 'integration_key_invalid'
  | 'subscription_suspended'
  | 'integration_scope_forbidden'
  | 'integration_issuer_forbidden'
  | 'integration_lead_not_found'
  | 'integration_idempotency_conflict'
  | 'integration_lead_already_open'
  | 'integration_rate_limited'
  | 'integration_rate_unavailable'
  | 'route_not_found'
  | 'method_not_allowed'
  | 'internal_error'
  | 'integration_unavailable';

export interface LeadCapture {
  /**
   * Name of the person. Lengths count Unicode code points; text is stored and returned unchanged.
   */
  displayName: string;
  contact: Contact;
  /**
   * The UUID of an enabled lead source of the key's studio; null or left out: none.
   */
  sourceId?: string | null;
  /**
   * A message of the visitor, or other information; null or left out: none.
   */
  note?: string | null;
}
export interface EmailContact {
  type: 'email';
  /**
   * Email address.
   */
  value: string;
}
export interface PhoneContact {
  type: 'phone';
  /**
   * Phone number as people type it, with at least 3 digits.
   */
  value: string;
}
export interface Lead {
  /**
   * A UUID in lower case.
   */
  id: string;
  /**
   * Name of the person. Lengths count Unicode code points; text is stored and returned unchanged.
   */
  displayName: string;
  stage: LeadStage;
  /**
   * The UUID of the lead source; null: none.
   */
  sourceId: string | null;
  note: string | null;
  /**
   * When the lead was created; UTC, ending in Z.
   */
  createdAt: string;
  /**
   * When the lead was last changed; UTC, ending in Z.
   */
  updatedAt: string;
}
export interface LeadResponse {
  lead: Lead;
}
export interface LeadList {
  /**
   * @maxItems 100
   */
  leads: Lead[];
  /**
   * Pass it unchanged as `cursor` to get the next page; null on the last page.
   */
  nextCursor: string | null;
}
export interface ProblemDetails {
  /**
   * The address of the page about the code.
   */
  type: string;
  /**
   * The meaning of the code; always the same.
   */
  title: string;
  status: number;
  code: ProblemCode;
  /**
   * An explanation of this occurrence, for people.
   */
  detail?: string;
  /**
   * The faults, by header, parameter, or path into the body such as `contact.value`.
   */
  fields?: {
    /**
     * @minItems 1
     */
    [k: string]: string[];
  };
  /**
   * The same as in `X-Request-Id`.
   */
  requestId: string;
}
