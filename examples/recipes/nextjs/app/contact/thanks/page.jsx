export default function ThanksPage() {
  return (
    <main>
      <h1>Thank you</h1>
      <p>We have your message, and will be in touch.</p>
    </main>
  );
}
