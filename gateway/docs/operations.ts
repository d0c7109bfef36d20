import { type KeyOperation, SCOPE_OF } from '../../common/rules/public-api.ts';
import {
  cursorSchema,
  leadCaptureSchema,
  leadListSchema,
  leadResponseSchema,
  limitSchema,
  uuidSchema,
} from '../operations/schemas.ts';
import { failure, success } from './answers.ts';
import { codeSamples } from './code-samples.ts';
import { CAPTURE, CURSOR, exampleOf, FULL_CAPTURE, IDEMPOTENCY_KEY, INVALID, LEAD, OLDER_LEAD } from './examples.ts';

const idempotencyKeyParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: true,
  description: 'Your id for the lead, a UUID: the same in every repetition, a new one for other data.',
  schema: uuidSchema,
  example: IDEMPOTENCY_KEY,
};

const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The id of the lead, a UUID in any letter case.',
  schema: uuidSchema,
  example: OLDER_LEAD.id,
};

const limitParameter = {
  name: 'limit',
  in: 'query',
  description: 'The maximum number of leads on the page.',
  schema: limitSchema,
};

const cursorParameter = {
  name: 'cursor',
  in: 'query',
  description: 'The `nextCursor` of the previous page, unchanged; without it, the first page is returned.',
  schema: cursorSchema,
};

export const requestIdParameter = {
  name: 'X-Request-Id',
  in: 'header',
  description:
    'Your id for the request: 1 to 128 letters, digits, dots, underscores and hyphens. Any other value is replaced by ' +
    'a new id.',
  schema: { type: 'string' },
};

/** The responses of every operation, by status. */
type CommonAnswers = Readonly<Record<number, object>>;

/** Describes what all operations have. */
const operation = (id: KeyOperation, publicUrl: string, description: string, more: object): object => ({
  operationId: id,
  description: `${description} Requires the scope \`${SCOPE_OF[id]}\`.`,
  tags: ['Leads'],
  security: [{ apiKey: [SCOPE_OF[id]] }],
  'x-codeSamples': codeSamples(publicUrl, id),
  ...more,
});

export function createLeadOperation(publicUrl: string, common: CommonAnswers): object {
  const description =
    'Repeating the request with the same `Idempotency-Key` and the same data is safe: there is one lead, and the same ' +
    'response.';
  return operation('createLead', publicUrl, description, {
    summary: 'Create a lead',
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
      400: failure(publicUrl, [INVALID.createLead, exampleOf('integration_source_invalid')]),
      409: failure(publicUrl, [
        exampleOf('integration_idempotency_conflict'),
        exampleOf('integration_lead_already_open'),
      ]),
      ...common,
    },
  });
}

export const getLeadOperation = (publicUrl: string, common: CommonAnswers): object =>
  operation('getLead', publicUrl, 'Returns the current state of the lead.', {
    summary: 'Read a lead',
    parameters: [idParameter, requestIdParameter],
    responses: {
      200: success('The lead.', leadResponseSchema, { lead: OLDER_LEAD }),
      400: failure(publicUrl, [INVALID.getLead]),
      404: failure(publicUrl, [exampleOf('integration_lead_not_found')]),
      ...common,
    },
  });

export const listLeadsOperation = (publicUrl: string, common: CommonAnswers): object =>
  operation('listLeads', publicUrl, 'Returns one page of the leads of the studio, newest first.', {
    summary: 'List leads',
    parameters: [limitParameter, cursorParameter, requestIdParameter],
    responses: {
      200: success('The page.', leadListSchema, { leads: [LEAD, OLDER_LEAD], nextCursor: CURSOR }),
      400: failure(publicUrl, [INVALID.listLeads]),
      ...common,
    },
  });
