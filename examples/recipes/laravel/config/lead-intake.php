<?php

return [
    'url' => env('LEAD_INTAKE_URL'),
    'key' => env('LEAD_INTAKE_KEY'),
    // Who reads what could not be delivered.
    'report_to' => env('LEAD_INTAKE_REPORT_TO', 'you@example.com'),
];
