<?php

return [
    'url' => env('LEAD_INTAKE_URL'),
    'key' => env('LEAD_INTAKE_KEY'),
    // The page for the office: its password, and a key with only the scope leads.read, for comparing.
    'page_password' => env('LEAD_INTAKE_PAGE_PASSWORD'),
    'read_key' => env('LEAD_INTAKE_READ_KEY'),
    // The reader of the daily report on leads that need attention.
    'report_to' => env('LEAD_INTAKE_REPORT_TO', 'you@example.com'),
];
