const LABELS = { displayName: 'Name', 'contact.value': 'E-mail', note: 'Message' };

/**
 * The form. It needs no JavaScript.
 *
 * @param typed the visitor's texts so far, with their faults as `faultsOf` returns them
 */
export function ContactForm({ typed = {}, faults = {} }) {
  return (
    <main>
      <h1>Contact us</h1>
      {Object.entries(faults).map(([field, [fault]]) => (
        <p key={field} role="alert">
          {LABELS[field]} {fault}.
        </p>
      ))}
      <form action="/contact/send" method="post">
        <p>
          <label>
            Name <input name="name" required maxLength={160} autoComplete="name" defaultValue={typed.name} />
          </label>
        </p>
        <p>
          <label>
            {/* Browsers refuse addresses such as jörg@müller.de in fields for email. */}
            E-mail{' '}
            <input
              name="email"
              inputMode="email"
              required
              maxLength={254}
              autoComplete="email"
              defaultValue={typed.email}
            />
          </label>
        </p>
        <p>
          <label>
            Message <textarea name="note" maxLength={2000} defaultValue={typed.note} />
          </label>
        </p>
        <button type="submit">Send</button>
      </form>
    </main>
  );
}
