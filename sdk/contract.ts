// Generated from the OpenAPI document. Do not edit.

export type Contact = EmailContact | PhoneContact;
/**
 * Where a lead stands; a new one is `new`.
 */
export type LeadStage = 'new' | 'contacted' | 'trial_booked' | 'trial_attended' | 'won' | 'lost';
/**
 * What happened, for programs.
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
   * Name of the person. Lengths count Unicode code points; text is kept and answered unchanged.
   */
  displayName: string;
  contact: Contact;
  /**
   * An enabled lead source of the key's studio, a UUID; null, or left out: none.
   */
  sourceId?: string | null;
  /**
   * What the visitor wrote, or what else there is to know; null, or left out: nothing.
   */
  note?: string | null;
}
export interface EmailContact {
  type: 'email';
  /**
   * E-mail address.
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
   * Name of the person. Lengths count Unicode code points; text is kept and answered unchanged.
   */
  displayName: string;
  stage: LeadStage;
  /**
   * The lead source, a UUID; null: none.
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
   * Pass it unchanged as `cursor` to get the next page; null: there is none.
   */
  nextCursor: string | null;
}
export interface ProblemDetails {
  /**
   * Where this code is explained.
   */
  type: string;
  /**
   * What the code means; always the same.
   */
  title: string;
  status: number;
  code: ProblemCode;
  /**
   * What happened this time, for people.
   */
  detail?: string;
  /**
   * What is wrong, by header, parameter, or path into the body such as `contact.value`.
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
