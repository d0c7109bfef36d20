/** The scope of a key that each operation of the public API requires. @rule 5.3 5.9 */
export const SCOPE_OF = { createLead: 'leads.create', getLead: 'leads.read', listLeads: 'leads.read' } as const;

export type KeyOperation = keyof typeof SCOPE_OF;
