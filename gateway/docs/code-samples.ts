import { CAPTURE, OLDER_LEAD } from './examples.ts';

type Operation = 'createLead' | 'getLead' | 'listLeads';

/** How programs in a language call the operations, by the client that there is for it. */
interface Client {
  /** As the reference knows it, to colour it. */
  readonly lang: string;
  readonly label: string;
  /** A program that has a client, and then does something. */
  readonly program: (publicUrl: string, does: string) => string;
  readonly does: Readonly<Record<Operation, string>>;
}

const { displayName, contact } = CAPTURE;

const CLIENTS: readonly Client[] = [
  {
    lang: 'javascript',
    label: 'JavaScript, TypeScript',
    program: (publicUrl, does) => `\
import { createLeadIntakeClient } from 'lead-intake-sdk';

const leads = createLeadIntakeClient({
  baseUrl: '${publicUrl}',
  apiKey: process.env.LEAD_INTAKE_KEY ?? '',
});
${does}`,
    does: {
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
    program: (publicUrl, does) => `\
<?php

require 'vendor/autoload.php';

use LeadIntake\\{Contact, LeadCapture, LeadIntakeClient};

$leads = new LeadIntakeClient(
    baseUrl: '${publicUrl}',
    apiKey: getenv('LEAD_INTAKE_KEY'),
);
${does}`,
    does: {
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
    program: (publicUrl, does) => `\
import os

from lead_intake import EmailContact, LeadCapture, LeadIntakeClient

with LeadIntakeClient(
    base_url="${publicUrl}",
    api_key=os.environ["LEAD_INTAKE_KEY"],
) as leads:
${does.replaceAll(/^/gm, '    ')}`,
    does: {
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

/** How programs call an operation by the clients that there are; what only curl shows, the reference makes itself. */
export function codeSamples(publicUrl: string, operation: Operation): object[] {
  return CLIENTS.map(({ lang, label, program, does }) => ({
    lang,
    label,
    source: program(publicUrl, does[operation]),
  }));
}
