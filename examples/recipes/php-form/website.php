<?php

// Shared by the pages and the command.

declare(strict_types=1);

use LeadIntake\LeadIntakeClient;
use LeadIntake\Outbox\Outbox;

require __DIR__ . '/vendor/autoload.php';

/** The website's own database: here SQLite; `mysql:host=…;dbname=…` and `pgsql:…` work as well. */
function database(): PDO
{
    static $database;
    return $database ??= new PDO(
        (string) getenv('DATABASE'),
        getenv('DATABASE_USER') ?: null,
        getenv('DATABASE_PASSWORD') ?: null,
        [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION],
    );
}

/** The outbox. Its table is named after this website: another one in the same database would send the leads of this one. */
function outbox(): Outbox
{
    static $outbox;
    return $outbox ??= new Outbox(database(), 'example_com_leads');
}

function client(float $deadlineSeconds): LeadIntakeClient
{
    return new LeadIntakeClient((string) getenv('LEAD_INTAKE_URL'), (string) getenv('LEAD_INTAKE_KEY'), $deadlineSeconds);
}
