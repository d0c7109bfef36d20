import { ContactForm } from '../../lib/contact-form.jsx';

/** The page is built once for all visitors, so it has no key of its own. */
export default function ContactPage() {
  return <ContactForm />;
}
