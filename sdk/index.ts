export {
  type CreatedLead,
  type CreationOptions,
  createLeadIntakeClient,
  type LeadIntakeClient,
  type LeadIntakeClientOptions,
  type ListOptions,
  type RequestOptions,
} from './client.ts';
export type { EmailContact, Lead, LeadCapture, LeadList, PhoneContact, ProblemDetails } from './contract.ts';
export {
  IdempotencyConflictError,
  LeadAlreadyOpenError,
  LeadIntakeError,
  NoAnswerError,
  ProblemError,
  type Written,
} from './errors.ts';
