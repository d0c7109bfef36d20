import { keyFor } from 'lead-intake-sdk/outbox';
import { openWebsite, outbox } from '../../../lib/website.mjs';

/** Stores the lead. The worker sends it, so no visitor waits for another server, and this one does not hold the API key. */
export async function POST(request) {
  const form = await request.formData();
  const [formKey, name, email, note] = ['formKey', 'name', 'email', 'note'].map((field) =>
    String(form.get(field) ?? '').trim(),
  );
  if (name === '' || email === '') return new Response('A name and an e-mail address are needed.', { status: 400 });

  const database = await openWebsite();
  const capture = { displayName: name, contact: { type: 'email', value: email }, note: note || null };
  database.exec('BEGIN IMMEDIATE');
  try {
    // Store other data of the enquiry here.
    outbox.add(database, capture, { idempotencyKey: keyFor(formKey, capture) });
    database.exec('COMMIT');
  } catch (error) {
    database.exec('ROLLBACK');
    // An invalid form key, or text that cannot be stored: the request does not come from the unmodified form.
    if (error instanceof TypeError) return new Response('This is not our form.', { status: 400 });
    throw error;
  }
  return new Response(null, { status: 303, headers: { location: '/contact/thanks' } });
}
