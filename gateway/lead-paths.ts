/** Where leads are, and where one is. @rule 9.version */
export const LEADS_PATH = '/v1/integrations/leads';
export const LEAD_PATH = `${LEADS_PATH}/:id`;
