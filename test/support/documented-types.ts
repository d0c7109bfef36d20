import { document } from './documented.ts';

interface Schema {
  readonly properties?: Readonly<Record<string, object>>;
  readonly enum?: readonly string[];
}

const schemas = document.components.schemas as Readonly<Record<string, Schema>>;

const propertiesOf = (name: string): string[] => Object.keys(schemas[name]?.properties ?? {}).toSorted();
const valuesOf = (name: string): string[] => [...(schemas[name]?.enum ?? [])].toSorted();

/** The field names and values, sorted, that the types of a client must have according to the OpenAPI document. */
export const DOCUMENTED_TYPES = {
  LeadCapture: propertiesOf('LeadCapture'),
  EmailContact: propertiesOf('EmailContact'),
  PhoneContact: propertiesOf('PhoneContact'),
  Lead: propertiesOf('Lead'),
  LeadList: propertiesOf('LeadList'),
  ProblemDetails: propertiesOf('ProblemDetails'),
  LeadStage: valuesOf('LeadStage'),
  ProblemCode: valuesOf('ProblemCode'),
};
