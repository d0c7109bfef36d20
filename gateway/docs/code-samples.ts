import type { KeyOperation } from '../../common/rules/public-api.ts';
import { CAPTURE, OLDER_LEAD } from './examples.ts';

/** The code samples of one client library. */
interface Client {
  /** The language for syntax highlighting in the reference. */
  readonly lang: string;
  readonly label: string;
  /** Returns a program that creates a client and then runs the statements. */
  readonly program: (publicUrl: string, statements: string) => string;
  readonly statements: Readonly<Record<KeyOperation, string>>;
}

const { displayName, contact } = CAPTURE;

const CLIENTS: readonly Client[] = [
  {
    lang: 'javascript',
    label: 'JavaScript, TypeScript',
    program: (publicUrl, statements) => `\
import { createLeadIntakeClient } from 'lead-intake-sdk';

const leads = createLeadIntakeClient({
  baseUrl: '${publicUrl}',
  apiKey: process.env.LEAD_INTAKE_KEY ?? '',
});
${statements}`,
    statements: {
      createLead: `\
const { lead } = await leads.createLead({
  displayName: '${displayName}',
  contact: { type: '${contact.type}', value: '${contact.value}' },
});
console.log(lead.id);`,
      getLead: `\
const lead = await leads.getLead('${OLDER_LEAD.id}');
console.log(lead.stage);`,
      listLeads: `\
for await (const lead of leads.allLeads()) {
  console.log(lead.displayName);
}`,
    },
  },
  {
    lang: 'php',
    label: 'PHP',
    program: (publicUrl, statements) => `\
<?php

require 'vendor/autoload.php';

use LeadIntake\\{Contact, LeadCapture, LeadIntakeClient};

$leads = new LeadIntakeClient(
    baseUrl: '${publicUrl}',
    apiKey: getenv('LEAD_INTAKE_KEY'),
);
${statements}`,
    statements: {
      createLead: `\
$lead = $leads->createLead(new LeadCapture(
    '${displayName}',
    Contact::${contact.type}('${contact.value}'),
))->lead;
echo "$lead->id\\n";`,
      getLead: `\
$lead = $leads->getLead('${OLDER_LEAD.id}');
echo "$lead->stage\\n";`,
      listLeads: `\
foreach ($leads->allLeads() as $lead) {
    echo "$lead->displayName\\n";
}`,
    },
  },
  {
    lang: 'python',
    label: 'Python',
    program: (publicUrl, statements) => `\
import os

from lead_intake import EmailContact, LeadCapture, LeadIntakeClient

with LeadIntakeClient(
    base_url="${publicUrl}",
    api_key=os.environ["LEAD_INTAKE_KEY"],
) as leads:
${statements.replaceAll(/^/gm, '    ')}`,
    statements: {
      createLead: `\
lead = leads.create_lead(LeadCapture(
    "${displayName}",
    EmailContact("${contact.value}"),
)).lead
print(lead.id)`,
      getLead: `\
lead = leads.get_lead("${OLDER_LEAD.id}")
print(lead.stage)`,
      listLeads: `\
for lead in leads.all_leads():
    print(lead.display_name)`,
    },
  },
];

/** Returns a code sample per client library; the reference generates those for curl. */
export function codeSamples(publicUrl: string, operation: KeyOperation): object[] {
  return CLIENTS.map(({ lang, label, program, statements }) => ({
    lang,
    label,
    source: program(publicUrl, statements[operation]),
  }));
}
