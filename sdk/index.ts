export type {
  Contact,
  EmailContact,
  Lead,
  LeadCapture,
  LeadList,
  LeadStage,
  PhoneContact,
  ProblemCode,
  ProblemDetails,
} from './api-types.ts';
export type { FaultCode } from './capture-rules.ts';
export { type CheckCode, type CheckFinding, type CheckReport, check } from './check.ts';
export {
  type CreatedLead,
  type CreationOptions,
  createLeadIntakeClient,
  type LeadIntakeClient,
  type LeadIntakeClientOptions,
  type ListOptions,
  type RequestOptions,
} from './client.ts';
export {
  IdempotencyConflictError,
  LeadAlreadyOpenError,
  LeadIntakeError,
  NoAnswerError,
  ProblemError,
  type Written,
} from './errors.ts';
export { faultCodesOf, faultsOf } from './faults.ts';
export type { Quota } from './quota.ts';
export type { AttemptReport } from './send.ts';
