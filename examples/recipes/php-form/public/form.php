<?php

// A contact form: it stores the submission, shows the next page, and then immediately tries to send the lead.

declare(strict_types=1);

use LeadIntake\Contact;
use LeadIntake\LeadCapture;
use LeadIntake\Outbox\Outbox;

require __DIR__ . '/../website.php';

$form = [];
foreach (['name', 'email', 'note', 'page'] as $field) {
    $form[$field] = is_string($_POST[$field] ?? null) ? $_POST[$field] : '';
}
// A byte that is not UTF-8 becomes U+FFFD.
$form = json_decode(json_encode($form, JSON_INVALID_UTF8_SUBSTITUTE), true);
[$status, $fault] = $_SERVER['REQUEST_METHOD'] === 'POST' ? store(...$form) : [200, ''];
if ($status !== 303) {
    showForm($form, $status, $fault);
    exit;
}
header('Location: thanks.html', true, $status);
sendThePage();
try {
    outbox()->deliver(client(deadlineSeconds: 5), limit: 1);
} catch (\Throwable) {
    // The cron job sends what fails here, and says why.
}

/**
 * Stores an enquiry once, even if its form is submitted several times.
 *
 * @return array{int, string} the status, and the fault
 */
function store(string $name, string $email, string $note, string $page): array
{
    $capture = new LeadCapture(trim($name), Contact::email(trim($email)), note: $note);
    foreach ($capture->faults() as $field => [$fault]) {
        $labels = ['displayName' => 'Name', 'contact.value' => 'Email', 'note' => 'Message'];
        return [422, "$labels[$field] $fault."];
    }
    try {
        $website = database();
        $website->beginTransaction();
        // Store other data of the enquiry in the same transaction.
        $website->prepare('INSERT INTO enquiries (received_at) VALUES (?)')->execute([time()]);
        outbox()->add($capture, Outbox::keyFor("contact $page", $capture));
        $website->commit();
        return [303, ''];
    } catch (\Throwable $error) {
        error_log("An enquiry could not be stored: {$error->getMessage()}");
        return [500, 'That could not be stored. Please send it again later.'];
    }
}

/** Completes the response, so that the visitor does not wait while the lead is sent. */
function sendThePage(): void
{
    ignore_user_abort(true);
    if (function_exists('fastcgi_finish_request')) {
        // PHP-FPM
        fastcgi_finish_request();
        return;
    }
    header('Content-Length: 0');
    header('Connection: close');
    flush();
}

/** @param array<string, string> $form the entered texts, which stay in the form */
function showForm(array $form, int $status, string $fault): void
{
    http_response_code($status);
    // Each visitor gets a different random text.
    header('Cache-Control: no-store');
    ?>
    <!doctype html>
    <html lang="en">
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>Contact</title>
    <h1>Contact</h1>
    <p role="alert"><?= $fault ?></p>
    <form method="post">
        <input type="hidden" name="page" value="<?= htmlspecialchars($form['page']) ?: bin2hex(random_bytes(16)) ?>">
        <p><label>Name <input name="name" maxlength="160" required value="<?= htmlspecialchars($form['name']) ?>"></label></p>
        <p><label>Email <input name="email" inputmode="email" maxlength="254" required value="<?= htmlspecialchars($form['email']) ?>"></label></p>
        <p><label>Message <textarea name="note" maxlength="2000"><?= htmlspecialchars($form['note']) ?></textarea></label></p>
        <p><button>Send</button></p>
    </form>
    </html>
    <?php
}
