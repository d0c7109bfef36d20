import type { Problem } from '../problems.ts';
import { leadCaptureSchema, leadListSchema, leadResponseSchema } from '../schemas.ts';
import { failure, success } from './answers.ts';
import { codeSamples } from './code-samples.ts';
import { CAPTURE, CURSOR, exampleOf, FULL_CAPTURE, INVALID, LEAD, OLDER_LEAD } from './examples.ts';
import {
  cursorParameter,
  idempotencyKeyParameter,
  idParameter,
  limitParameter,
  requestIdParameter,
} from './parameters.ts';

/** The responses of every operation, by status. */
type CommonAnswers = Readonly<Record<number, object>>;

export function createLeadOperation(publicUrl: string, common: CommonAnswers): object {
  const problems = (...all: [Problem, ...Problem[]]) => failure(publicUrl, all);
  return {
    operationId: 'createLead',
    summary: 'Create a lead',
    description:
      'Repeating the request with the same `Idempotency-Key` and the same data is safe: there is one lead, and the same ' +
      'response. Requires the scope `leads.create`.',
    tags: ['Leads'],
    security: [{ apiKey: ['leads.create'] }],
    parameters: [idempotencyKeyParameter, requestIdParameter],
    requestBody: {
      required: true,
      description: 'JSON in UTF-8, at most 32 KiB, not compressed. Nothing is stripped, coerced or trimmed.',
      content: {
        'application/json': {
          schema: leadCaptureSchema,
          examples: {
            email: { summary: 'A name and an e-mail address', value: CAPTURE },
            phone: { summary: 'A phone number, with source and note', value: FULL_CAPTURE },
          },
        },
      },
    },
    'x-codeSamples': codeSamples(publicUrl, 'createLead'),
    responses: {
      201: success(
        'The lead, created by this request or an earlier one.',
        leadResponseSchema,
        { lead: LEAD },
        {
          always: ['Location'],
          sometimes: ['Idempotent-Replayed'],
          links: { lead: { operationId: 'getLead', parameters: { id: '$response.body#/lead/id' } } },
        },
      ),
      400: problems(INVALID.createLead, exampleOf('integration_source_invalid')),
      409: problems(exampleOf('integration_idempotency_conflict'), exampleOf('integration_lead_already_open')),
      ...common,
    },
  };
}

export function getLeadOperation(publicUrl: string, common: CommonAnswers): object {
  return {
    operationId: 'getLead',
    summary: 'Read a lead',
    description: 'Returns the current state of the lead. Requires the scope `leads.read`.',
    tags: ['Leads'],
    security: [{ apiKey: ['leads.read'] }],
    parameters: [idParameter, requestIdParameter],
    'x-codeSamples': codeSamples(publicUrl, 'getLead'),
    responses: {
      200: success('The lead.', leadResponseSchema, { lead: OLDER_LEAD }),
      400: failure(publicUrl, [INVALID.getLead]),
      404: failure(publicUrl, [exampleOf('integration_lead_not_found')]),
      ...common,
    },
  };
}

export function listLeadsOperation(publicUrl: string, common: CommonAnswers): object {
  return {
    operationId: 'listLeads',
    summary: 'List leads',
    description: 'Returns one page of the leads of the studio, newest first. Requires the scope `leads.read`.',
    tags: ['Leads'],
    security: [{ apiKey: ['leads.read'] }],
    parameters: [limitParameter, cursorParameter, requestIdParameter],
    'x-codeSamples': codeSamples(publicUrl, 'listLeads'),
    responses: {
      200: success('The page.', leadListSchema, { leads: [LEAD, OLDER_LEAD], nextCursor: CURSOR }),
      400: failure(publicUrl, [INVALID.listLeads]),
      ...common,
    },
  };
}
