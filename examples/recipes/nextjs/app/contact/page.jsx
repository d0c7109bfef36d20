import { randomUUID } from 'node:crypto';
import { connection } from 'next/server';

/** The form. It needs no JavaScript. */
export default async function ContactPage() {
  // Rendered per request, not in the build: each form has a unique key, so that submitting it twice creates one lead.
  await connection();
  return (
    <main>
      <h1>Contact us</h1>
      <form action="/contact/send" method="post">
        <input type="hidden" name="formKey" value={randomUUID()} />
        <p>
          <label>
            Name <input name="name" required maxLength={160} autoComplete="name" />
          </label>
        </p>
        <p>
          <label>
            E-mail <input name="email" type="email" required maxLength={254} autoComplete="email" />
          </label>
        </p>
        <p>
          <label>
            Message <textarea name="note" maxLength={2000} />
          </label>
        </p>
        <button type="submit">Send</button>
      </form>
    </main>
  );
}
