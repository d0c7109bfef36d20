import { connection } from 'next/server';
import { ContactForm } from '../../lib/contact-form.jsx';

export default async function ContactPage() {
  // Rendered per request, not in the build: each form has a key of its own.
  await connection();
  return <ContactForm />;
}
