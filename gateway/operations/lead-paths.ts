/** The paths of the list of leads and of one lead. @rule 9.version */
export const LEADS_PATH = '/v1/integrations/leads';
export const LEAD_PATH = `${LEADS_PATH}/:id`;
