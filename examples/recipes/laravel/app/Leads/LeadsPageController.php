<?php

declare(strict_types=1);

namespace App\Leads;

use Illuminate\Http\Request;
use Illuminate\Http\Response;
use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\Outbox;
use LeadIntake\Outbox\OutboxPage;

/** Shows the leads that need attention to the people in the office. */
final class LeadsPageController
{
    public function __invoke(Request $request, Outbox $outbox): Response
    {
        $password = (string) config('lead-intake.page_password');
        if ($password === '') {
            return response('LEAD_INTAKE_PAGE_PASSWORD must be set.', 503);
        }
        if (!hash_equals($password, (string) $request->getPassword())) {
            return response('This page needs its password.', 401, ['WWW-Authenticate' => 'Basic realm="Leads", charset="UTF-8"']);
        }
        $key = config('lead-intake.read_key');
        // A function, so that a wrong key only stops comparing.
        $client = fn () => new LeadIntakeClient(config('lead-intake.url'), $key, deadlineSeconds: 10);
        $page = new OutboxPage($outbox, $key ? $client : null, report(...));
        $response = $page->respond($request->method(), $request->headers->all(), $request->getContent());
        return response($response->body, $response->status, $response->headers);
    }
}
