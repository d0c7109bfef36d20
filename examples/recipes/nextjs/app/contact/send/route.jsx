import { faultsOf } from 'lead-intake-sdk';
import { keyFor } from 'lead-intake-sdk/outbox';
import { ContactForm } from '../../../lib/contact-form.jsx';
import { openWebsite, outbox } from '../../../lib/website.mjs';
import Layout from '../../layout.jsx';

/** Stores the lead. The worker sends it, so no visitor waits for another server, and this process has no API key. */
export async function POST(request) {
  const form = await request.formData();
  const typed = Object.fromEntries(['name', 'email', 'note'].map((name) => [name, `${form.get(name) ?? ''}`]));
  const capture = {
    displayName: typed.name.trim(),
    contact: { type: 'email', value: typed.email.trim() },
    note: typed.note,
  };
  const faults = faultsOf(capture);
  if (Object.keys(faults).length > 0) return again(422, { typed, faults });

  const database = await openWebsite();
  database.exec('BEGIN IMMEDIATE');
  try {
    // Store other data of the enquiry here. The key is derived from the data, so a form sent twice within an hour is one lead.
    outbox.add(database, capture, { idempotencyKey: keyFor('contact', capture) });
    database.exec('COMMIT');
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
  return new Response(null, { status: 303, headers: { location: '/contact/thanks' } });
}

/** Returns the form with the visitor's texts. */
async function again(status, parts) {
  // Next.js permits this import only here, where it renders no page.
  const { renderToStaticMarkup } = await import('react-dom/server');
  const html = renderToStaticMarkup(
    <Layout>
      <ContactForm {...parts} />
    </Layout>,
  );
  return new Response(`<!doctype html>${html}`, { status, headers: { 'content-type': 'text/html; charset=utf-8' } });
}
