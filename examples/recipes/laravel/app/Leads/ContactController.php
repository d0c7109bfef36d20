<?php

declare(strict_types=1);

namespace App\Leads;

use Illuminate\Http\RedirectResponse;
use Illuminate\Http\Request;
use Illuminate\Http\Response;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Str;
use LeadIntake\Contact;
use LeadIntake\LeadCapture;
use LeadIntake\Outbox\Outbox;

final class ContactController
{
    public function show(): Response
    {
        // Each visitor gets a different random text.
        return self::page(200, ['name' => '', 'email' => '', 'message' => '', 'page' => Str::random(32)], []);
    }

    public function store(Request $request): Response|RedirectResponse
    {
        // A byte that is not UTF-8 becomes U+FFFD.
        $posted = json_decode(json_encode($request->all(), JSON_INVALID_UTF8_SUBSTITUTE), true);
        $form = array_map(fn ($value) => is_string($value) ? $value : '', $posted)
            + ['name' => '', 'email' => '', 'message' => '', 'page' => ''];
        $capture = new LeadCapture(trim($form['name']), Contact::email(trim($form['email'])), note: $form['message']);
        $faults = $capture->faults();
        if ($faults !== []) {
            return self::page(422, $form, $faults);
        }
        try {
            DB::transaction(function () use ($capture, $form): void {
                // Store other data of the submission here.
                app(Outbox::class)->add($capture, Outbox::keyFor("contact $form[page]", $capture));
            });
        } catch (\Throwable $error) {
            report($error);
            return self::page(500, $form, ['form' => ['could not be stored: please send it again later']]);
        }
        return redirect('contact/thanks', 303);
    }

    /**
     * @param array<string, string> $form the entered texts, which stay in the form
     * @param array<string, list<string>> $faults
     */
    private static function page(int $status, array $form, array $faults): Response
    {
        return response()->view('contact', ['form' => $form, 'faults' => $faults], $status)->header('Cache-Control', 'no-store');
    }
}
