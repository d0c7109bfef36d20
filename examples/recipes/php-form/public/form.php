<?php

// A contact form: it stores the submission, shows the next page, and then immediately tries to send the lead.

declare(strict_types=1);

use LeadIntake\Contact;
use LeadIntake\LeadCapture;

require __DIR__ . '/../website.php';

$fault = '';
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    $fault = store($_POST);
    if ($fault === '') {
        header('Location: thanks.html', true, 303);
        sendThePage();
        // The cron job sends what fails here.
        outbox()->deliver(client(deadlineSeconds: 5), limit: 1);
        exit;
    }
}
showForm($_POST, $fault);

/**
 * Stores an enquiry once, even if its form is submitted several times.
 *
 * @param array<string, mixed> $form
 * @return string what is invalid; '' when nothing is
 */
function store(array $form): string
{
    [$name, $email, $note, $page] = array_map(
        static fn (string $field): string => is_string($form[$field] ?? null) ? trim($form[$field]) : '',
        ['name', 'email', 'note', 'page'],
    );
    if (preg_match('//u', $name . $email . $note) !== 1 || $name === '' || filter_var($email, FILTER_VALIDATE_EMAIL) === false) {
        return 'Please enter your name and your e-mail address.';
    }
    $capture = new LeadCapture($name, Contact::email($email), note: $note === '' ? null : $note);
    $website = database();
    $website->beginTransaction();
    // Store other data of the enquiry in the same transaction.
    $website->prepare('INSERT INTO enquiries (received_at) VALUES (?)')->execute([time()]);
    outbox()->add($capture, keyFor($page, $capture));
    $website->commit();
    return '';
}

/**
 * Returns the same key for a form that is submitted twice, and another one if the form was changed in between: the key of a
 * delivered lead identifies that lead, regardless of the data sent with it.
 *
 * @param string $page the random text of the page with the form
 * @return string UUID (version 8)
 */
function keyFor(string $page, LeadCapture $capture): string
{
    $hash = hash('sha256', $page . json_encode($capture, JSON_THROW_ON_ERROR));
    preg_match('/^(.{8})(.{4})(.{3})(.{3})(.{12})/', $hash, $parts);
    return "$parts[1]-$parts[2]-8$parts[3]-a$parts[4]-$parts[5]";
}

/** Completes the response, so that the visitor does not wait for what follows. */
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

/** @param array<string, mixed> $form the previous input */
function showForm(array $form, string $fault): void
{
    $entered = static fn (string $field): string => htmlspecialchars(is_string($form[$field] ?? null) ? $form[$field] : '');
    http_response_code($fault === '' ? 200 : 422);
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
        <input type="hidden" name="page" value="<?= bin2hex(random_bytes(16)) ?>">
        <p><label>Name <input name="name" maxlength="160" required value="<?= $entered('name') ?>"></label></p>
        <p><label>E-mail <input name="email" type="email" maxlength="254" required value="<?= $entered('email') ?>"></label></p>
        <p><label>Message <textarea name="note" maxlength="2000"><?= $entered('note') ?></textarea></label></p>
        <p><button>Send</button></p>
    </form>
    </html>
    <?php
}
