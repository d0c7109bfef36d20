import { STATUS_CODES } from 'node:http';
import { wholeDocument } from './openapi.ts';

/** The parts of the OpenAPI document that the page shows. */
interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly description?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description: string;
  readonly schema: Schema;
}

interface Media {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
}

interface Response {
  readonly description: string;
  readonly content: Readonly<Record<string, Media>>;
}

interface Operation {
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly description: string; readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Response>>;
  readonly 'x-codeSamples': readonly { readonly label: string; readonly lang: string; readonly source: string }[];
}

interface OpenApi {
  readonly info: { readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** Returns the OpenAPI document as a Markdown page: each operation with its samples, data and responses. */
export function referencePage(publicUrl: string): string {
  const { info, paths } = wholeDocument(publicUrl) as OpenApi;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => operationText(method.toUpperCase(), path, operation)),
  );
  // Links to pages are relative, as on every other page.
  return `# Reference\n\n${info.description}\n\n${operations.join('\n')}`.replaceAll(`](${publicUrl}/`, '](/');
}

function operationText(method: string, path: string, operation: Operation): string {
  const { summary, description, parameters, requestBody, responses } = operation;
  const samples = operation['x-codeSamples'].map(
    ({ label, lang, source }) => `In ${label.split(', ').at(-1)}:\n\n${block(lang, source)}`,
  );
  const body = requestBody
    ? Object.values(requestBody.content).map(
        ({ schema, examples = {} }) =>
          `### Body\n\n${requestBody.description}\n\n${renderPropertyTable(schema)}\n\n${Object.values(examples)
            .map((example) => `${example.summary}:\n\n${json(example.value)}`)
            .join('\n\n')}\n`,
      )
    : [];
  return [
    `## ${summary}\n`,
    `\`${method} ${path}\`\n`,
    `${description}\n`,
    `${samples.join('\n\n')}\n`,
    '### Parameters\n',
    '| Name | In | Required | What it is |\n|---|---|---|---|',
    `${parameters.map((each) => row([`\`${each.name}\``, each.in, each.required ? 'yes' : '', describeValue(each.schema, each.description)])).join('\n')}\n`,
    ...body,
    '### Responses\n',
    '| Status | When |\n|---|---|',
    `${Object.entries(responses)
      .map(([status, response]) =>
        row([`${status} ${STATUS_CODES[status]}`, response.description.replaceAll('\n\n', '<br>')]),
      )
      .join('\n')}\n`,
    ...Object.entries(responses)
      .filter(([status]) => Number(status) < 300)
      .flatMap(([, { content }]) => Object.values(content))
      .map(({ schema, example }) => `${json(example)}\n\n${renderPropertyTable(schema)}\n`),
  ].join('\n');
}

/** Lists every property of an object, nested ones included. */
function renderPropertyTable(schema: Schema): string {
  return ['| Property | Required | What it is |', '|---|---|---|', ...renderPropertyRows(schema, '')].join('\n');
}

function renderPropertyRows({ properties = {}, required = [] }: Schema, within: string): string[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const isRequired = required.includes(name) ? 'yes' : '';
    return [
      row([`\`${within}${name}\``, isRequired, describeValue(schema, schema.description)]),
      ...(schema.properties ? renderPropertyRows(schema, `${within}${name}.`) : []),
      ...(schema.oneOf ? renderAlternatives(schema.oneOf, `${within}${name}.`) : []),
      ...(schema.items ? renderPropertyRows(schema.items, `${within}${name}[].`) : []),
    ];
  });
}

/** Lists the properties of an object with several forms, which all have the same names. */
function renderAlternatives(forms: readonly Schema[], within: string): string[] {
  return (forms[0]?.required ?? []).map((name) => {
    const schemas = forms.flatMap(({ properties }) => properties?.[name] ?? []);
    const separator = schemas.every((each) => each.const !== undefined) ? ' or ' : '<br>';
    return row([
      `\`${within}${name}\``,
      'yes',
      schemas.map((each) => describeValue(each, each.description)).join(separator),
    ]);
  });
}

/** Describes the allowed values in words. */
function describeValue(schema: Schema, description = ''): string {
  const { enum: values, const: constant, minLength, maxLength, minimum, maximum, default: fallback } = schema;
  const types = [schema.type ?? []].flat();
  return [
    description,
    constant === undefined ? '' : `\`${constant}\``,
    values ? `One of ${values.map((each) => `\`${each}\``).join(', ')}.` : '',
    maxLength === undefined ? '' : `${minLength ? `${minLength} to` : 'At most'} ${maxLength} characters.`,
    maximum === undefined ? '' : `${minimum ?? 0} to ${maximum}.`,
    fallback === undefined ? '' : `\`${fallback}\` if it is left out.`,
    types.includes('null') ? 'May be null.' : '',
  ]
    .filter(Boolean)
    .join(' ');
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
const block = (language: string, text: string): string => `\`\`\`${language}\n${text}\n\`\`\``;
const json = (value: unknown): string => block('json', JSON.stringify(value, null, 2));
